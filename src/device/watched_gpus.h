/* watched_gpus.h: which GPUs --device means, for commands that watch and don't run. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/machine.h"

/*
 * Their indices as `cuda:N` counts, each once, in the arena: a slice or an instance stands for its
 * GPU. A selector without any GPU gives an empty list. Without a selector (NULL, or "auto")
 * `ret_gpus` is NULL: all of them.
 */
int lab_device_watched_gpus(const struct lab_machine *machine, const char *selector,
                            struct lab_arena *arena, const int **ret_gpus, int *ret_count,
                            struct lab_err *err);

/* What to know of the GPUs' numbers where a variable hides some of them and counts the rest; or
 * NULL. */
const char *lab_device_visible_note(struct lab_arena *arena);
