/*
 * replay.c: gives a fuzz target every file of its corpus, without a fuzzer. So the seeds and the
 * inputs that once broke something are tests in every build, with any compiler.
 *
 *     replay_<target> FOLDER...      a folder without inputs is an error: it would prove nothing
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES (1 << 20) /* libFuzzer's own limit for files that it is given */

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    uint8_t *data = malloc(INPUT_BYTES);
    size_t size = data ? fread(data, 1, INPUT_BYTES, file) : 0;
    fclose(file);
    /* a copy of the exact size, so that the sanitizers see a read behind the end */
    uint8_t *exact = realloc(data, size ? size : 1);
    if (!exact) {
        free(data);
        return -1;
    }
    fprintf(stderr, "%s (%zu bytes)\n", path, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int replay_folder(const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return -1;
    }
    int status = 0, count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count++;
        if (replay_file(path) < 0)
            status = -1;
    }
    closedir(dir);
    if (count == 0) {
        fprintf(stderr, "%s: no inputs\n", folder);
        return -1;
    }
    return status;
}

int main(int argc, char **argv) {
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    int status = 0;
    for (int i = 1; i < argc; i++)
        if (replay_folder(argv[i]) < 0)
            status = 1;
    return status;
}
