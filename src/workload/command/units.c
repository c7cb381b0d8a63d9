/* command/units.c: units as programs print them, and those that values are kept in. */
#include "workload/command/line.h"

#include <string.h>
#include <strings.h>

static const struct command_unit units[] = {
    {"%", "%", 1, NULL},
    {"percent", "%", 1, NULL},
    {"ms", "ms", 1, NULL},
    {"us", "ms", 1e-3, NULL},
    {"µs", "ms", 1e-3, NULL}, /* U+00B5 */
    {"μs", "ms", 1e-3, NULL}, /* U+03BC */
    {"s", "ms", 1e3, NULL},
    {"sec", "ms", 1e3, NULL},
    {"secs", "ms", 1e3, NULL},
    {"second", "ms", 1e3, NULL},
    {"seconds", "ms", 1e3, NULL},
    {"min", "ms", 6e4, NULL},
    {"mins", "ms", 6e4, NULL},
    {"minutes", "ms", 6e4, NULL},
    {"h", "ms", 3.6e6, NULL},
    {"hours", "ms", 3.6e6, NULL},
    {"day", NULL, 1, NULL},
    {"days", NULL, 1, NULL},
    /* of memory: as it is printed, since GB is 1024³ bytes in some programs */
    {"KB", "KB", 1, NULL},
    {"MB", "MB", 1, NULL},
    {"GB", "GB", 1, NULL},
    {"KiB", "KiB", 1, NULL},
    {"MiB", "MiB", 1, NULL},
    {"GiB", "GiB", 1, NULL},
    {"W", "W", 1, NULL},
    {"J", "J", 1, NULL},
    /* of one step, in either case */
    {"ms/it", "ms", 1, "iteration_time"},
    {"ms/iter", "ms", 1, "iteration_time"},
    {"ms/batch", "ms", 1, "iteration_time"},
    {"s/step", "ms", 1e3, "step_time"},
    {"ms/step", "ms", 1, "step_time"},
    {"us/step", "ms", 1e-3, "step_time"},
    {"TFLOP/s", "TFLOP/s", 1, "tflops"},
    {"TFLOPS", "TFLOP/s", 1, "tflops"},
};

enum { TOKENS, ITERATIONS, SAMPLES, WORDS };

static const struct command_unit rates[] = {
    [TOKENS] = {"tok/s", "tokens/s", 1, "tokens_per_s"},
    [ITERATIONS] = {"it/s", "iterations/s", 1, "iterations_per_s"},
    [SAMPLES] = {"img/s", "samples/s", 1, "samples_per_s"},
    [WORDS] = {"words/s", "words/s", 1, "words_per_s"},
};
static const struct command_unit rates_of_gpus[] = {
    [TOKENS] = {"tok/s/gpu", "tokens/s/GPU", 1, "tokens_per_s_per_gpu"},
    [ITERATIONS] = {"it/s/gpu", "iterations/s/GPU", 1, "iterations_per_s_per_gpu"},
    [SAMPLES] = {"img/s/gpu", "samples/s/GPU", 1, "samples_per_s_per_gpu"},
    [WORDS] = {"words/s/gpu", "words/s/GPU", 1, "words_per_s_per_gpu"},
};

/* "1.2s/img": what a bar has in place of img/s while it is slow. */
static const struct command_unit inverse_rates[] = {
    [TOKENS] = {"s/tok", "ms", 1e3, "tokens_per_s", "tokens/s"},
    [ITERATIONS] = {"s/it", "ms", 1e3, "iterations_per_s", "iterations/s"},
    [SAMPLES] = {"s/img", "ms", 1e3, "samples_per_s", "samples/s"},
    [WORDS] = {"s/word", "ms", 1e3, "words_per_s", "words/s"},
};

static const struct {
    const char *text;
    int rate;
} counted[] = {
    {"tok", TOKENS},
    {"toks", TOKENS},
    {"token", TOKENS},
    {"tokens", TOKENS},
    {"it", ITERATIONS},
    {"its", ITERATIONS},
    {"iter", ITERATIONS},
    {"iters", ITERATIONS},
    {"iteration", ITERATIONS},
    {"iterations", ITERATIONS},
    {"step", ITERATIONS},
    {"steps", ITERATIONS},
    {"global_step", ITERATIONS},
    {"batch", ITERATIONS},
    {"batches", ITERATIONS},
    {"ba", ITERATIONS},
    {"update", ITERATIONS},
    {"updates", ITERATIONS},
    {"sample", SAMPLES},
    {"samples", SAMPLES},
    {"example", SAMPLES},
    {"examples", SAMPLES},
    {"img", SAMPLES},
    {"imgs", SAMPLES},
    {"image", SAMPLES},
    {"images", SAMPLES},
    {"word", WORDS},
    {"words", WORDS},
};

static bool is_text(const char *word, const char *text, size_t length) {
    return strlen(word) == length && strncasecmp(word, text, length) == 0;
}

/* The index of the rate of what is counted so; -1 = it is unknown. */
static int find_counted(const char *text, size_t length) {
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (is_text(counted[i].text, text, length))
            return counted[i].rate;
    return -1;
}

/* "tok/s", "Images/sec", "tokens/second/GPU", "s/img" */
static const struct command_unit *find_rate(const char *text, size_t length) {
    const char *slash = memchr(text, '/', length);
    if (!slash)
        return NULL;
    size_t what = (size_t)(slash - text), rest = length - what - 1;
    const char *time = slash + 1;
    int per = what == 1 && *text == 's' ? find_counted(time, rest) : -1;
    if (per >= 0)
        return &inverse_rates[per];
    bool of_gpu = rest > 4 && is_text("/gpu", time + rest - 4, 4);
    rest -= of_gpu ? 4 : 0;
    if (!is_text("s", time, rest) && !is_text("sec", time, rest) && !is_text("second", time, rest))
        return NULL;
    int rate = find_counted(text, what);
    return rate < 0 ? NULL : of_gpu ? &rates_of_gpus[rate] : &rates[rate];
}

const struct command_unit *command_unit_find(const char *text, size_t length) {
    if (*text == '%')
        return &units[0];
    for (size_t i = 1; i < sizeof units / sizeof *units; i++)
        if ((*units[i].text | 0x20) == (*text | 0x20) && strlen(units[i].text) == length &&
            (units[i].name ? strncasecmp : strncmp)(units[i].text, text, length) == 0)
            return &units[i];
    return find_rate(text, length);
}

const char *command_memory_letter(char c) {
    static const char *const letters[] = {"K", "M", "G", "T"};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (c == *letters[i] || (i == 0 && c == 'k'))
            return letters[i];
    return NULL;
}

/* A letter alone is binary, as `free` and most trainers mean it. */
double command_unit_bytes(const char *unit) {
    static const char prefixes[] = "KMGT";
    const char *prefix = *unit ? strchr(prefixes, *unit) : NULL;
    bool decimal = prefix && lab_str_equal(unit + 1, "B");
    double bytes = 1;
    if (!prefix || !(decimal || !unit[1] || lab_str_equal(unit + 1, "iB")))
        return 0;
    for (const char *at = prefixes; at <= prefix; at++)
        bytes *= decimal ? 1000 : 1024;
    return bytes;
}

double command_suffix(char c) {
    return c == 'K' || c == 'k'   ? 1e3
           : c == 'M'             ? 1e6
           : c == 'B' || c == 'G' ? 1e9
           : c == 'T'             ? 1e12
                                  : 0;
}
