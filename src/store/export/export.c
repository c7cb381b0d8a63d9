/* export.c: the way out that all exports take: pieces of some size, and an iteration's times. */
#include "store/export/export_internal.h"

#include "base/clock.h"

#define PIECE_BYTES 65536

void lab_export_buffer_init(struct lab_export_buffer *buffer, const struct lab_export *out) {
    lab_str_init(&buffer->text);
    buffer->out = out;
}

void lab_export_buffer_release(struct lab_export_buffer *buffer) {
    lab_str_release(&buffer->text);
}

int lab_export_buffer_flush(struct lab_export_buffer *buffer) {
    int result = 0;
    if (buffer->text.length)
        result = buffer->out->write(buffer->out->state, buffer->text.text, buffer->text.length);
    lab_str_clear(&buffer->text);
    return result ? -1 : 0;
}

int lab_export_buffer_pass(struct lab_export_buffer *buffer) {
    return buffer->text.length < PIECE_BYTES ? 0 : lab_export_buffer_flush(buffer);
}

/* Exact: a nanosecond is the sixth decimal. */
static void add_ms(int64_t duration_ns, struct lab_str *out) {
    const char *sign = duration_ns < 0 ? "-" : "";
    uint64_t size = duration_ns < 0 ? -(uint64_t)duration_ns : (uint64_t)duration_ns;
    lab_str_printf(out, "%s%llu.%06llu", sign, (unsigned long long)(size / LAB_NS_PER_MS),
                   (unsigned long long)(size % LAB_NS_PER_MS));
}

void lab_export_add_times(const struct lab_iteration *iteration, const char *separator,
                          const char *absent, struct lab_str *out) {
    lab_str_printf(out, "%lld%s%lld%s", (long long)iteration->start_ns, separator,
                   (long long)iteration->end_ns, separator);
    for (int i = 0; i < LAB_STAGE_COUNT; i++) {
        struct lab_span stage = iteration->stages[i];
        if (stage.start_ns || stage.end_ns)
            add_ms(stage.end_ns - stage.start_ns, out);
        else
            lab_str_add(out, absent);
        lab_str_add(out, separator);
    }
    add_ms(iteration->end_ns - iteration->start_ns, out);
}
