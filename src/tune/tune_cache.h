/* tune_cache.h: `gpulab cache … tuning`. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/tty/console.h"

int lab_cache_list_tuning(const struct lab_console *console, struct lab_arena *arena,
                          struct lab_err *err);
int lab_cache_clear_tuning(const struct lab_console *console, struct lab_arena *arena,
                           struct lab_err *err);
int lab_cache_export_tuning(const struct lab_console *console, struct lab_arena *arena,
                            const char *file, struct lab_err *err);
int lab_cache_import_tuning(const struct lab_console *console, struct lab_arena *arena,
                            const char *file, struct lab_err *err);
