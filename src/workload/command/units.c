/* command/units.c: units as programs print them, and those that values are kept in. */
#include "workload/command/line.h"

#include <string.h>
#include <strings.h>

static const struct command_unit units[] = {
    {"%", "%", 1, NULL},
    {"percent", "%", 1, NULL},
    {"ms", "ms", 1, NULL},
    {"us", "ms", 1e-3, NULL},
    {"µs", "ms", 1e-3, NULL},
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
    /* rates: in either case, with K or M before them */
    {"tok/s", "tokens/s", 1, "tokens_per_s"},
    {"tok/sec", "tokens/s", 1, "tokens_per_s"},
    {"token/s", "tokens/s", 1, "tokens_per_s"},
    {"tokens/s", "tokens/s", 1, "tokens_per_s"},
    {"tokens/sec", "tokens/s", 1, "tokens_per_s"},
    {"tokens/second", "tokens/s", 1, "tokens_per_s"},
    {"tok/s/gpu", "tokens/s/GPU", 1, "tokens_per_s_per_gpu"},
    {"tokens/s/gpu", "tokens/s/GPU", 1, "tokens_per_s_per_gpu"},
    {"tokens/sec/gpu", "tokens/s/GPU", 1, "tokens_per_s_per_gpu"},
    {"it/s", "iterations/s", 1, "iterations_per_s"},
    {"it/sec", "iterations/s", 1, "iterations_per_s"},
    {"iter/s", "iterations/s", 1, "iterations_per_s"},
    {"iters/s", "iterations/s", 1, "iterations_per_s"},
    {"iters/sec", "iterations/s", 1, "iterations_per_s"},
    {"step/s", "iterations/s", 1, "iterations_per_s"},
    {"steps/s", "iterations/s", 1, "iterations_per_s"},
    {"steps/sec", "iterations/s", 1, "iterations_per_s"},
    {"batch/s", "iterations/s", 1, "iterations_per_s"},
    {"batches/s", "iterations/s", 1, "iterations_per_s"},
    {"ba/s", "iterations/s", 1, "iterations_per_s"},
    {"s/it", "ms", 1e3, "iterations_per_s"},
    {"s/iter", "ms", 1e3, "iteration_time"},
    {"s/batch", "ms", 1e3, "iteration_time"},
    {"ms/it", "ms", 1, "iteration_time"},
    {"ms/iter", "ms", 1, "iteration_time"},
    {"ms/batch", "ms", 1, "iteration_time"},
    {"s/step", "ms", 1e3, "step_time"},
    {"ms/step", "ms", 1, "step_time"},
    {"us/step", "ms", 1e-3, "step_time"},
    {"samples/s", "samples/s", 1, "samples_per_s"},
    {"samples/sec", "samples/s", 1, "samples_per_s"},
    {"examples/s", "samples/s", 1, "samples_per_s"},
    {"examples/sec", "samples/s", 1, "samples_per_s"},
    {"img/s", "samples/s", 1, "samples_per_s"},
    {"imgs/s", "samples/s", 1, "samples_per_s"},
    {"images/s", "samples/s", 1, "samples_per_s"},
    {"images/sec", "samples/s", 1, "samples_per_s"},
    {"TFLOP/s", "TFLOP/s", 1, "tflops"},
    {"TFLOPS", "TFLOP/s", 1, "tflops"},
};

const struct command_unit *command_unit_find(const char *text, size_t length) {
    if (*text == '%')
        return &units[0];
    for (size_t i = 1; i < sizeof units / sizeof *units; i++)
        if ((*units[i].text | 0x20) == (*text | 0x20) && strlen(units[i].text) == length &&
            (units[i].name ? strncasecmp : strncmp)(units[i].text, text, length) == 0)
            return &units[i];
    return NULL;
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
