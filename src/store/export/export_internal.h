/* export_internal.h: what the exports share: a buffer on the way out, and how an iteration
 * reads. */
#ifndef LAB_STORE_EXPORT_EXPORT_INTERNAL_H
#define LAB_STORE_EXPORT_EXPORT_INTERNAL_H

#include "store/export/export.h"

#include "base/str.h"

struct lab_export_buffer {
    struct lab_str text; /* what hasn't been handed on yet */
    const struct lab_export *out;
};

void lab_export_buffer_init(struct lab_export_buffer *buffer, const struct lab_export *out);
void lab_export_buffer_release(struct lab_export_buffer *buffer);

/* Hands on what is there: once enough has gathered, or in any case. 0, or -1 if it isn't wanted. */
int lab_export_buffer_pass(struct lab_export_buffer *buffer);
int lab_export_buffer_flush(struct lab_export_buffer *buffer);

/* "start_ns, end_ns, h2d_ms, compute_ms, d2h_ms, latency_ms" of an iteration; a stage that doesn't
 * exist is `absent`. */
void lab_export_add_times(const struct lab_iteration *iteration, const char *separator,
                          const char *absent, struct lab_str *out);

#endif
