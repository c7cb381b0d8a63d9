/*
 * failpoint.c: SIGKILL on request. The variable is read at each pass, not once: a place is passed a
 * few times a second at most, and tests change it.
 */
#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether the environment names this place and it is its turn. */
static bool is_due(const char *name) {
    static atomic_long passes;
    const char *wanted = getenv("GPULAB_FAILPOINT");
    size_t length = strlen(name);
    if (!wanted || strncmp(wanted, name, length) != 0 ||
        (wanted[length] != '\0' && wanted[length] != ':'))
        return false;
    long turn = wanted[length] == ':' ? strtol(wanted + length + 1, NULL, 10) : 1;
    return atomic_fetch_add(&passes, 1) + 1 == turn;
}

void lab_failpoint(const char *name) {
    if (is_due(name))
        raise(SIGKILL);
}

int lab_failpoint_error(const char *name, struct lab_err *err) {
    if (!is_due(name))
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "it fails on purpose: GPULAB_FAILPOINT=%s", name);
}
