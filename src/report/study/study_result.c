/*
 * study_result.c: single figures out of a result's JSON text. A report of a large study needs two
 * short lists of each of its results; a tree of every one of them would take most of its time.
 */
#include "report/study/study_internal.h"

#include <math.h>

/* What is left of the text. Ends at its end, or at a zero byte. */
struct scan {
    const char *at, *end;
};

static bool more(const struct scan *scan) {
    return scan->at < scan->end && *scan->at;
}

static void skip_space(struct scan *scan) {
    while (more(scan) && (*scan->at == ' ' || (*scan->at >= '\t' && *scan->at <= '\r')))
        scan->at++;
}

/* From a quotation mark to behind the one that closes it. */
static void skip_string(struct scan *scan) {
    for (scan->at++; more(scan) && *scan->at != '"'; scan->at++)
        if (*scan->at == '\\' && scan->at + 1 < scan->end && scan->at[1])
            scan->at++;
    if (more(scan))
        scan->at++;
}

/* A whole value: up to the comma or bracket that follows it at its own depth. */
static struct study_span skip_value(struct scan *scan) {
    const char *begin = scan->at, *last = begin;
    for (int depth = 0; more(scan);) {
        char c = *scan->at;
        if (c == '"') {
            skip_string(scan);
            last = scan->at;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            break;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        scan->at++;
        if (c != ' ' && (c < '\t' || c > '\r'))
            last = scan->at;
    }
    return (struct study_span){begin, (size_t)(last - begin)};
}

void study_result_members(struct study_span json, const char *const *keys, struct study_span *ret,
                          int count) {
    for (int i = 0; i < count; i++)
        ret[i] = (struct study_span){NULL, 0};
    if (json.length == 0)
        return;
    struct scan scan = {json.begin, json.begin + json.length};
    skip_space(&scan);
    if (!more(&scan) || *scan.at != '{')
        return;
    scan.at++;
    for (int found = 0; found < count;) {
        skip_space(&scan);
        if (!more(&scan) || *scan.at != '"')
            return;
        const char *key = scan.at + 1;
        skip_string(&scan);
        size_t length = (size_t)(scan.at - key) - (scan.at > key);
        skip_space(&scan);
        if (!more(&scan) || *scan.at != ':')
            return;
        scan.at++;
        skip_space(&scan);
        struct study_span value = skip_value(&scan);
        for (int i = 0; i < count; i++)
            if (!ret[i].length && strlen(keys[i]) == length && memcmp(keys[i], key, length) == 0) {
                ret[i] = value;
                found++;
            }
        if (!more(&scan) || *scan.at != ',')
            return;
        scan.at++;
    }
}

double study_result_number(const struct lab_run *run, const char *key, const char *inner) {
    struct study_span span = {run->result, run->result ? strlen(run->result) : 0};
    study_result_members(span, &key, &span, 1);
    if (inner)
        study_result_members(span, &inner, &span, 1);
    bool number = span.length && (*span.begin == '-' || (*span.begin >= '0' && *span.begin <= '9'));
    return number ? strtod(span.begin, NULL) : NAN; /* what follows it ends the number */
}
