/*
 * workload.c: finding workloads, and judging what they computed.
 */
#include "workload/workload.h"

#include "base/auto.h"
#include "base/str.h"
#include "machine/machine.h"

#include <math.h>

static bool is_called(const struct lab_workload *workload, const char *name) {
    return lab_str_find(name, workload->aliases) >= 0 || lab_str_equal(workload->name, name);
}

const struct lab_workload *lab_workload_find(const char *name, struct lab_err *err) {
    int count = 0;
    for (; lab_workloads[count]; count++)
        if (is_called(lab_workloads[count], name))
            return lab_workloads[count];

    LAB_AUTO_FREE const char **names = lab_mem_alloc((size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = lab_workloads[i]->name;
    LAB_AUTO(str, text);
    const char *nearest = lab_str_nearest(name, names);
    if (nearest)
        lab_str_printf(&text, " (did you mean '%s'?)", nearest);
    lab_str_add(&text, "; there are ");
    lab_str_add_list(&text, names, "and");
    lab_err_set(err, LAB_ERR_USER, "unknown workload '%s'%s", name, text.text);
    return NULL;
}

bool lab_workload_is_external(const char *name) {
    const struct lab_workload *workload = lab_workload_find(name, NULL);
    return workload && workload->external;
}

void *lab_workload_config(const struct lab_workload *workload, struct lab_arena *arena) {
    void *config = lab_arena_alloc(arena, 1, workload->config_size);
    lab_options_defaults(workload->options, config, arena);
    return config;
}

int lab_workload_read(const struct lab_workload *workload, const struct lab_value *options,
                      struct lab_arena *arena, const void **ret_config, struct lab_err *err) {
    void *config = lab_workload_config(workload, arena);
    for (int i = 0; i < options->count; i++)
        if (lab_options_set_value(workload->options, config, arena, options->keys[i],
                                  options->items[i], err) < 0)
            return -1;
    if (workload->check && workload->check(config, err) < 0)
        return -1;
    *ret_config = config;
    return 0;
}

int lab_workload_set(const struct lab_workload *workload, const void **config, const char *key,
                     const struct lab_value *value, struct lab_arena *arena, struct lab_err *err) {
    void *copy = lab_arena_copy(arena, *config, 1, workload->config_size);
    if (lab_options_set_value(workload->options, copy, arena, key, value, err) < 0)
        return -1;
    *config = copy;
    return 0;
}

const char *lab_workload_label(const struct lab_workload *workload, const void *config,
                               struct lab_arena *arena) {
    LAB_AUTO(str, label);
    if (workload->label)
        workload->label(config, &label);
    return lab_arena_strdup(arena, label.length ? label.text : workload->name);
}

void lab_workload_set_environment(const struct lab_workload *workload, const void *config,
                                  struct lab_arena *arena) {
    const char *const *words = workload->environment ? workload->environment(config, arena) : NULL;
    for (int i = 0; words && words[i]; i++) {
        const char *equals = strchr(words[i], '=');
        char *name = lab_arena_printf(arena, "%.*s", (int)(equals - words[i]), words[i]);
        setenv(name, equals + 1, 1);
    }
}

/* By bits, so that a poison that is NaN works as well. */
static bool same_bits(float a, float b) {
    uint32_t bits_a, bits_b;
    memcpy(&bits_a, &a, sizeof a);
    memcpy(&bits_b, &b, sizeof b);
    return bits_a == bits_b;
}

/* 1234567 → "1,234,567", for texts that people read. */
static const char *grouped(int64_t value, char text[32]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value);
    int at = 0;
    for (int i = 0; i < length; i++) {
        text[at++] = digits[i];
        int left = length - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-')
            text[at++] = ',';
    }
    text[at] = '\0';
    return text;
}

void lab_verify_compare(const float *out, const double *reference, int64_t count, float poison,
                        double tolerance, struct lab_verification *ret) {
    int64_t poisoned = 0, not_a_number = 0;
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double delta = (double)out[i] - reference[i];
        if (same_bits(out[i], poison))
            poisoned++;
        else if (isnan(out[i]))
            not_a_number++;
        difference += delta * delta;
        norm += reference[i] * reference[i];
    }
    double error = norm > 0 ? sqrt(difference / norm) : difference > 0 ? INFINITY : difference;
    /* ∞/∞ and NaN outputs are as wrong as can be; a figure that sorts says so better than NaN */
    if (isnan(error))
        error = INFINITY;
    *ret = (struct lab_verification){
        .applicable = true, .relative_error = error, .tolerance = tolerance, .elements = count};
    char bad[32], all[32];
    grouped(count, all);
    if (poisoned)
        snprintf(ret->text, sizeof ret->text, "%s of %s outputs still poisoned",
                 grouped(poisoned, bad), all);
    else if (not_a_number)
        snprintf(ret->text, sizeof ret->text, "%s of %s outputs are NaN",
                 grouped(not_a_number, bad), all);
    else if (count <= 0)
        snprintf(ret->text, sizeof ret->text, "no outputs to compare");
    else if (error > tolerance)
        snprintf(ret->text, sizeof ret->text,
                 "relative error %.2e over %s outputs is above the tolerance of %.0e", error, all,
                 tolerance);
    else {
        ret->passed = true;
        snprintf(ret->text, sizeof ret->text, "relative error %.1e over %s outputs", error, all);
    }
}

void lab_verify_bytes(const void *out, const void *reference, size_t size_bytes,
                      struct lab_verification *ret) {
    const unsigned char *a = out, *b = reference;
    int64_t wrong = 0;
    size_t first = 0;
    double difference = 0, norm = 0;
    for (size_t i = 0; i < size_bytes; i++) {
        int delta = (int)a[i] - (int)b[i];
        if (delta && !wrong++)
            first = i;
        difference += (double)delta * delta;
        norm += (double)b[i] * b[i];
    }
    *ret = (struct lab_verification){.applicable = true,
                                     .passed = wrong == 0 && size_bytes > 0,
                                     .relative_error = wrong == 0 ? 0
                                                       : norm > 0 ? sqrt(difference / norm)
                                                                  : INFINITY,
                                     .elements = (int64_t)size_bytes};
    char bad[32], all[32];
    grouped((int64_t)size_bytes, all);
    if (wrong)
        snprintf(ret->text, sizeof ret->text, "%s of %s bytes are wrong, the first at offset %zu",
                 grouped(wrong, bad), all, first);
    else
        snprintf(ret->text, sizeof ret->text, "%s bytes arrived unchanged", all);
}

void lab_verify_partial(struct lab_verification *ret, int64_t checked, int64_t all,
                        const char *things, int64_t unwritten, int64_t outputs) {
    char a[32], b[32], c[32];
    if (!ret->passed)
        return;
    if (unwritten) {
        ret->passed = false;
        snprintf(ret->text, sizeof ret->text, "%s of %s outputs still poisoned or not finite",
                 grouped(unwritten, a), grouped(outputs, b));
    } else
        snprintf(ret->text, sizeof ret->text, "relative error %.1e over %s of %s %s (%s outputs)",
                 ret->relative_error, grouped(checked, a), grouped(all, b), things,
                 grouped(ret->elements, c));
}

double lab_verify_tolerance(enum lab_dtype dtype) {
    switch (dtype) {
    case LAB_TF32: /* 10 bits of mantissa in products, fp32 sums */
        return 2e-3;
    case LAB_FP16: /* rounded after every op */
    case LAB_BF16:
        return 2e-2;
    case LAB_FP32:
        break;
    }
    return 1e-5;
}

int lab_verify_room(const struct lab_device *device, double bytes, struct lab_err *err) {
    int64_t free_bytes = lab_machine_free_bytes(device->machine, -1);
    if (free_bytes < 0 || bytes <= (double)free_bytes)
        return 0;
    LAB_AUTO(str, text);
    lab_str_add_bytes_binary(&text, bytes);
    lab_str_add(&text, " of host memory, ");
    lab_str_add_bytes_binary(&text, (double)free_bytes);
    lab_err_set(err, LAB_ERR_MEMORY, "comparing with double precision takes %s are free",
                text.text);
    return lab_err_hint(err, LAB_HINT_OUT_OF_VERIFY_MEMORY);
}

bool lab_verify_skip(const struct lab_device *device, struct lab_verification *ret) {
    if (!device->ref.simulated)
        return false;
    *ret = (struct lab_verification){.applicable = false};
    snprintf(ret->text, sizeof ret->text, "simulated");
    return true;
}

double lab_verify_distance(const double *a, const double *b, int64_t count, double least) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    double size = fmax(sqrt(norm), least);
    double off = size > 0 ? sqrt(difference) / size : difference > 0 ? INFINITY : 0;
    return isfinite(difference) && isfinite(norm) ? off : INFINITY;
}

#define ROUNDING 0x1p-23 /* of a parameter and of what is added to it */

double lab_verify_update(const double *now, const double *exact, const double *before,
                         int64_t count, double threshold) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double off = fabs(now[i] - exact[i]), larger = fmax(fabs(now[i]), fabs(exact[i]));
        bool either = threshold > 0 && (now[i] == 0 || exact[i] == 0) &&
                      fabs(larger - threshold) <= ROUNDING * threshold;
        double beyond = either || off <= ROUNDING * larger ? 0 : off - ROUNDING * larger;
        difference += beyond * beyond;
        norm += (exact[i] - before[i]) * (exact[i] - before[i]);
    }
    double off = norm > 0 ? sqrt(difference / norm) : difference > 0 ? INFINITY : 0;
    return isfinite(difference) && isfinite(norm) ? off : INFINITY;
}
