/*
 * auto.h: variables that release themselves at the end of their scope, on every way out of it.
 *
 *     LAB_AUTO(str, text);      a struct lab_str, ready for use
 *     LAB_AUTO(arena, arena);   a struct lab_arena
 *     LAB_AUTO_FREE double *x = lab_mem_alloc(n, sizeof *x);
 *     LAB_AUTO_LOCK(&mutex);    held (cond.h)
 *     LAB_AUTO_CLOSE int fd = open(path, flags);   likewise LAB_AUTO_CLOSEDIR (file/file.h)
 *     LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));   a call's further ones
 *
 * Only for what the function itself owns to its end; what is returned or stored is initialised and
 * released by hand. A declaration inside a switch or after a label needs a block of its own.
 */
#pragma once

#include <stdarg.h>

#define LAB_AUTO(type, name)                                                                       \
    __attribute__((cleanup(lab_##type##_release))) struct lab_##type name;                         \
    lab_##type##_init(&(name))

#define LAB_AUTO_FREE __attribute__((cleanup(lab_mem_free_at)))

/* Calls what takes a va_list, under the name `args`; `last` is the parameter before the dots. */
#define LAB_WITH_ARGS(last, call)                                                                  \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, last);                                                                      \
        call;                                                                                      \
        va_end(args);                                                                              \
    } while (0)
