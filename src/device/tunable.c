/* tunable.c: configurations as numbers and as text, and what a tuned one holds for. */
#include "device/tunable.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WORD "default"

const struct lab_tunable *lab_tunable_find(const struct lab_tunable_place *place,
                                           const struct lab_launch *launch) {
    const struct lab_backend *backend = lab_backend_find(place->ref->backend);
    return backend->tunable ? backend->tunable(place, launch) : NULL;
}

/* --- configurations --- */

int64_t lab_tunable_size(const struct lab_tunable *tunable) {
    int64_t size = 1;
    for (int i = 0; i < tunable->count; i++)
        size *= tunable->parameters[i].choice_count;
    return size;
}

struct lab_tuning lab_tunable_at(const struct lab_tunable *tunable, int64_t index) {
    struct lab_tuning tuning = {.count = tunable->count};
    assert(tunable->count > 0 && tunable->count <= LAB_TUNING_VALUES);
    for (int i = tunable->count - 1; i >= 0; i--) {
        const struct lab_tunable_parameter *parameter = &tunable->parameters[i];
        tuning.values[i] = parameter->choices[index % parameter->choice_count];
        index /= parameter->choice_count;
    }
    return tuning;
}

bool lab_tuning_equal(const struct lab_tuning *a, const struct lab_tuning *b) {
    return a->count == b->count &&
           memcmp(a->values, b->values, (size_t)a->count * sizeof a->values[0]) == 0;
}

void lab_tuning_write(const struct lab_tunable *tunable, const struct lab_tuning *tuning,
                      struct lab_str *out) {
    if (!tuning->count)
        lab_str_add(out, DEFAULT_WORD);
    for (int i = 0; i < tuning->count; i++)
        lab_str_printf(out, "%s%s=%d", i ? "," : "", tunable->parameters[i].name,
                       (int)tuning->values[i]);
}

/* --- reading --- */

static void add_choices(const struct lab_tunable_parameter *parameter, struct lab_str *out) {
    for (int i = 0; i < parameter->choice_count; i++)
        lab_str_printf(out, "%s%d",
                       !i                                ? ""
                       : i + 1 < parameter->choice_count ? ", "
                                                         : " or ",
                       (int)parameter->choices[i]);
}

static int check_choice(const struct lab_tunable_parameter *parameter, int64_t value,
                        struct lab_err *err) {
    for (int i = 0; i < parameter->choice_count; i++)
        if (parameter->choices[i] == value)
            return 0;
    LAB_AUTO(str, text);
    add_choices(parameter, &text);
    return lab_err_set(err, LAB_ERR_USER, "%s=%lld: must be %s", parameter->name, (long long)value,
                       text.text);
}

static int find_parameter(const struct lab_tunable *tunable, const char *name, size_t length,
                          struct lab_err *err) {
    const char *names[LAB_TUNING_VALUES + 1] = {NULL};
    for (int i = 0; i < tunable->count; i++) {
        names[i] = tunable->parameters[i].name;
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    }
    LAB_AUTO(str, text);
    lab_str_add_list(&text, names, "and");
    return lab_err_set(err, LAB_ERR_USER, "'%.*s' is not a parameter of %s, which has %s",
                       (int)(length < 40 ? length : 40), name, tunable->kernel, text.text);
}

/* One "name=value" of `length` bytes. */
static int parse_part(const struct lab_tunable *tunable, const char *part, size_t length,
                      bool *given, struct lab_tuning *tuning, struct lab_err *err) {
    const char *equals = memchr(part, '=', length);
    if (!equals)
        return lab_err_set(err, LAB_ERR_USER,
                           "'%.*s' must be name=value, several joined by commas, or default",
                           (int)(length < 40 ? length : 40), part);
    size_t name_length = (size_t)(equals - part), digits = length - name_length - 1;
    int index = find_parameter(tunable, part, name_length, err);
    if (index < 0)
        return -1;
    const struct lab_tunable_parameter *parameter = &tunable->parameters[index];
    char text[16] = "", *end;
    if (digits < sizeof text)
        memcpy(text, equals + 1, digits);
    long value = strtol(text, &end, 10);
    if (!*text || *end || isspace((unsigned char)*text))
        return lab_err_set(err, LAB_ERR_USER, "%s=%.*s: must be a whole number", parameter->name,
                           (int)(digits < 40 ? digits : 40), equals + 1);
    if (given[index])
        return lab_err_set(err, LAB_ERR_USER, "%s is given twice", parameter->name);
    given[index] = true;
    tuning->values[index] = (int32_t)value;
    return check_choice(parameter, value, err);
}

int lab_tuning_parse(const struct lab_tunable *tunable, const struct lab_tunable_place *place,
                     const struct lab_launch *launch, const char *text,
                     struct lab_tuning *ret_tuning, struct lab_err *err) {
    struct lab_tuning tuning = {0};
    bool given[LAB_TUNING_VALUES] = {false};
    if (!lab_str_equal(text, DEFAULT_WORD)) {
        tunable->fallback(place, launch, &tuning);
        for (const char *part = text;; part++) {
            size_t length = strcspn(part, ",");
            if (parse_part(tunable, part, length, given, &tuning, err))
                return -1;
            part += length;
            if (!*part)
                break;
        }
    }
    *ret_tuning = tuning;
    return 0;
}

int lab_tuning_check(const struct lab_tunable *tunable, const struct lab_tunable_place *place,
                     const struct lab_launch *launch, const struct lab_tuning *tuning,
                     struct lab_err *err) {
    if (!tuning->count)
        return 0;
    if (tuning->count != tunable->count)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s has %d parameters, not %d",
                           tunable->kernel, tunable->count, (int)tuning->count);
    for (int i = 0; i < tuning->count; i++)
        if (check_choice(&tunable->parameters[i], tuning->values[i], err))
            return -1;
    return tunable->check ? tunable->check(place, launch, tuning, err) : 0;
}

/* --- what a tuned configuration holds for --- */

/* The next of 1, 1.5, 2, 3, 4, 6, 8, 12, … that isn't smaller. */
static long long rounded(int64_t length) {
    int64_t power = 1;
    while (power < length)
        power *= 2;
    int64_t between = power / 4 * 3;
    return power >= 4 && between >= length ? between : power;
}

void lab_tunable_shape_class(const struct lab_launch *launch, struct lab_str *out) {
    lab_str_add(out, lab_op_get(launch->op)->name);
    if (launch->op == LAB_OP_FLASH_ATTENTION) {
        struct lab_flash_shape s = lab_flash_shape(launch);
        lab_str_printf(out, " b%lld s%lld h%lld g%lld w%lld%s", rounded(s.batch), rounded(s.tokens),
                       (long long)s.heads, (long long)s.kv_heads, (long long)s.width,
                       launch->causal ? " causal" : "");
    } else if (lab_op_is_gemm(launch->op)) {
        struct lab_gemm_shape s = lab_gemm_shape(launch);
        lab_str_printf(out, " m%lld n%lld k%lld %s%s", rounded(s.m), rounded(s.n), rounded(s.k),
                       launch->transpose_a ? "t" : "n", launch->transpose_b ? "t" : "n");
    } else {
        lab_str_printf(out, " r%lld c%lld", rounded(lab_tensor_rows(&launch->out)),
                       rounded(lab_tensor_columns(&launch->out)));
    }
}

void lab_tunable_shape_name(const struct lab_launch *launch, struct lab_str *out) {
    lab_tunable_shape_class(launch, out);
    lab_str_printf(out, " %s", lab_dtype_name(launch->out.dtype));
}

int lab_device_identity(const struct lab_tunable_place *place, struct lab_arena *arena,
                        struct lab_device_identity *ret_identity, struct lab_err *err) {
    struct lab_device_identity identity = {
        .model = place->ref->description, .driver = "", .compiler = ""};
    const struct lab_backend *backend = lab_backend_find(place->ref->backend);
    if (backend->identity && backend->identity(place, arena, &identity, err))
        return -1;
    *ret_identity = identity;
    return 0;
}
