/*
 * failpoint.c: SIGKILL on request. The variable is read at each pass, not once: a place is passed a
 * few times a second at most, and tests change it.
 */
#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void lab_failpoint(const char *name) {
    static atomic_long passes;
    const char *wanted = getenv("GPULAB_FAILPOINT");
    size_t length = strlen(name);
    if (!wanted || strncmp(wanted, name, length) != 0 ||
        (wanted[length] != '\0' && wanted[length] != ':'))
        return;
    long turn = wanted[length] == ':' ? strtol(wanted + length + 1, NULL, 10) : 1;
    if (atomic_fetch_add(&passes, 1) + 1 == turn)
        raise(SIGKILL);
}
