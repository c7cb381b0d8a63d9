/* words.c: a course in a sentence. */
#include "analysis/stability/course.h"

#include "base/str.h"

#include <math.h>

/* Of those that make the class: a slow-down's are slower, a warm-up's faster. */
static const struct lab_course_change *largest_change(const struct lab_course *course) {
    const struct lab_course_change *largest = NULL;
    double most = 0;
    for (int i = 0; i < course->change_count; i++) {
        double size = log(course->changes[i].after_s / course->changes[i].before_s);
        size = course->steady == LAB_STEADY_SLOWDOWN ? size
               : course->steady == LAB_STEADY_WARMUP ? -size
                                                     : fabs(size);
        if (size <= most)
            continue;
        most = size;
        largest = &course->changes[i];
    }
    return largest;
}

const char *lab_course_moment(double seconds, struct lab_arena *arena) {
    return seconds < 1 ? lab_arena_printf(arena, "%.0f ms", 1e3 * seconds)
                       : lab_arena_printf(arena, "%.1f s", seconds);
}

static void add_change(struct lab_str *text, const struct lab_course_change *change,
                       struct lab_arena *arena) {
    double share = change->after_s / change->before_s - 1;
    lab_str_printf(text, "iterations take %.1f %% %s from %s on", 100 * fabs(share),
                   share > 0 ? "longer" : "less", lab_course_moment(change->at_s, arena));
    if (change->reason)
        lab_str_printf(text, ", when clocks were held back by %s", change->reason);
    else if (change->clock_after < 0.99 * change->clock_before && share > 0)
        lab_str_printf(text, ", when the clock fell from %.0f to %.0f MHz", change->clock_before,
                       change->clock_after);
}

static void add_drift(struct lab_str *text, const struct lab_course *course) {
    bool faster = course->drift < 0;
    lab_str_printf(
        text, "iterations get %.1f %% [%.1f, %.1f] %s over the run", 100 * fabs(course->drift),
        100 * (faster ? -course->drift_high : course->drift_low),
        100 * (faster ? -course->drift_low : course->drift_high), faster ? "shorter" : "longer");
}

const char *lab_course_words(const struct lab_course *course, struct lab_arena *arena) {
    struct lab_str text;
    lab_str_init(&text);
    const struct lab_course_change *change = largest_change(course);
    switch (course->steady) {
    case LAB_STEADY_UNKNOWN:
        lab_str_add(&text,
                    course->count == 0 ? "no iterations were kept" : "too few iterations to tell");
        break;
    case LAB_STEADY_FLAT:
        lab_str_add(&text, lab_course_is_steady(course)
                               ? "is steady"
                               : "holds its pace, but with clocks held back");
        if (!lab_course_is_steady(course) && course->held_why)
            lab_str_printf(&text, " by %s", course->held_why);
        break;
    case LAB_STEADY_WARMUP:
        lab_str_printf(&text, "warms up until %s", lab_course_moment(course->steady_from_s, arena));
        break;
    case LAB_STEADY_SLOWDOWN:
        lab_str_add(&text, "slows down");
        break;
    case LAB_STEADY_NONE:
        lab_str_add(&text, "reaches no steady state");
        break;
    }
    if (change) {
        lab_str_add(&text, ": ");
        add_change(&text, change, arena);
    }
    if (course->drifts) {
        if (course->steady == LAB_STEADY_FLAT)
            lab_str_clear(&text);
        lab_str_add(&text, course->steady == LAB_STEADY_FLAT ? "drifts: " : "; ");
        add_drift(&text, course);
    }
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}
