/* folder_tree.c: directories below an output directory: naming, holding them. */
#include "run/folder_internal.h"

#include "base/file/own.h"
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* --- a study that has ended --- */

int folder_check(const char *folder, struct lab_err *err) {
    LAB_AUTO(str, database);
    struct stat info;
    lab_str_printf(&database, "%s/%s", folder, FOLDER_DATABASE);
    if (lab_own_check_folder(folder, err) < 0)
        return -1;
    if (lstat(database.text, &info) < 0 || !S_ISREG(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is not a study: it has no %s", folder,
                           FOLDER_DATABASE);
    return 0;
}

int folder_hold(const char *folder, struct lab_err *err) {
    LAB_AUTO(str, path);
    LAB_AUTO(str, who);
    lab_str_printf(&path, "%s/%s", folder, FOLDER_LOCK);
    int fd = lab_own_open(path.text, LAB_OWN_CHANGE, err);
    if (fd < 0)
        return -1;
    if (lab_lock_try(fd, path.text) == LAB_LOCK_TAKEN)
        return fd;
    struct lab_holder holder;
    lab_lock_read(fd, &holder);
    lab_holder_describe(&holder, &who);
    close(fd);
    return lab_err_set(err, LAB_ERR_USER, "%s is running: %s", folder, who.text);
}
