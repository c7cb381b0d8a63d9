/* compiler.h: which version of NVRTC there is, without loading it where that is known from
 * before. */
#pragma once

#include "base/mem.h"

/* As 13000 for 13.0; 0 where there is none. `driver`: its version, which decides between
 * several. */
int cuda_compiler_version(const char *driver, struct lab_arena *arena);

/* What is known of the library that is found in `places`: its version, 0 = nothing, or not any
 * more. */
int cuda_compiler_recall(const char *folder, const char *places, struct lab_arena *arena);
void cuda_compiler_remember(const char *folder, const char *places, const char *path, int version,
                            struct lab_arena *arena);
