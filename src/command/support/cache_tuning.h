/* support/cache_tuning.h: `gpulab cache … tuning`. */
#ifndef LAB_COMMAND_SUPPORT_CACHE_TUNING_H
#define LAB_COMMAND_SUPPORT_CACHE_TUNING_H

#include "command/command.h"

int lab_cache_list_tuning(const struct lab_command_call *call, struct lab_err *err);
int lab_cache_clear_tuning(const struct lab_command_call *call, struct lab_err *err);
int lab_cache_export_tuning(const struct lab_command_call *call, const char *file,
                            struct lab_err *err);
int lab_cache_import_tuning(const struct lab_command_call *call, const char *file,
                            struct lab_err *err);

#endif
