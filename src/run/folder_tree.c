/* folder_tree.c: directories below an output directory: making, removing, naming them. */
#include "run/folder_internal.h"

#include <ctype.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

void lab_folder_remove(const char *path) {
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* '0' in the pattern is a digit. Returns what follows it, NULL where it doesn't match. */
static const char *match(const char *name, const char *pattern) {
    for (; *pattern; pattern++, name++)
        if (*pattern == '0' ? !isdigit((unsigned char)*name) : *name != *pattern)
            return NULL;
    return name;
}

bool folder_is_date(const char *name) {
    const char *rest = match(name, "0000-00-00");
    return rest && !*rest;
}

bool folder_is_time(const char *name) {
    const char *rest = match(name, "00-00-00");
    if (!rest || !*rest)
        return rest;
    if (*rest++ != '_' || !isdigit((unsigned char)*rest))
        return false;
    while (isdigit((unsigned char)*rest))
        rest++;
    return !*rest;
}

static long suffix_of(const char *name) {
    const char *mark = strchr(name, '_');
    return mark ? strtol(mark + 1, NULL, 10) : 1;
}

int folder_compare_times(const char *a, const char *b) {
    int order = strncmp(a, b, strlen("00-00-00"));
    if (order)
        return order;
    long first = suffix_of(a), second = suffix_of(b);
    return (first > second) - (first < second);
}
