/* command/batch.c: values of a program, kept until there are enough to be handed on together. */
#include "workload/command/command.h"

#include <assert.h>
#include <string.h>

void command_batch_init(struct command_batch *batch) {
    batch->count = 0;
    lab_str_init(&batch->texts);
}

void command_batch_release(struct command_batch *batch) {
    lab_str_release(&batch->texts);
}

void command_batch_add(struct command_batch *batch, const struct command_value *value,
                       int64_t time_ns) {
    assert(batch->count < COMMAND_BATCH_MOST);
    if (batch->count == 0)
        lab_str_clear(&batch->texts);
    batch->names[batch->count] = batch->texts.length;
    lab_str_add_bytes(&batch->texts, value->name, strlen(value->name) + 1);
    batch->items[batch->count++] = (struct lab_reported_metric){.unit = value->unit,
                                                                .value = value->value,
                                                                .step = value->step,
                                                                .by_epoch = value->by_epoch,
                                                                .rank = value->rank,
                                                                .time_ns = time_ns};
}

/* Their texts may have moved while they were added. */
const struct lab_reported_metric *command_batch_take(struct command_batch *batch,
                                                     size_t *ret_count) {
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].name = batch->texts.text + batch->names[i];
    *ret_count = batch->count;
    batch->count = 0;
    return batch->items;
}
