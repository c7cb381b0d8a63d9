/* analysis/latency/span.c: unions and intersections of stretches of time, in one pass over each. */
#include "analysis/latency/span.h"

int64_t lab_spans_busy_ns(const struct lab_span *spans, size_t count) {
    int64_t busy_ns = 0;
    for (size_t i = 0; i < count; i++)
        busy_ns += spans[i].end_ns - spans[i].start_ns;
    return busy_ns;
}

int64_t lab_spans_common_ns(const struct lab_span *a, size_t a_count, const struct lab_span *b,
                            size_t b_count) {
    int64_t common_ns = 0;
    for (size_t i = 0, k = 0; i < a_count && k < b_count;) {
        int64_t start_ns = a[i].start_ns > b[k].start_ns ? a[i].start_ns : b[k].start_ns;
        int64_t end_ns = a[i].end_ns < b[k].end_ns ? a[i].end_ns : b[k].end_ns;
        if (end_ns > start_ns)
            common_ns += end_ns - start_ns;
        if (a[i].end_ns < b[k].end_ns)
            i++;
        else
            k++;
    }
    return common_ns;
}
