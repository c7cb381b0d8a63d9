/* plot_names.c: names in a chart: ids of runs in words, shortened where they would be cut. */
#include "plot/plot_internal.h"

#include "base/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_MOST 44 /* columns of a panel's title that fit above it */
#define KEY_FITS   60 /* of an entry of the key, which has the picture's width */
#define ROW_FITS   46 /* of a row's name at its left */

/* --- ids of runs --- */

/* "0+1+2+5" as "0–2+5"; false = it isn't such a list. */
static bool add_numbers(const char *text, size_t length, struct lab_str *out) {
    const char *end = text + length;
    long first = -1, last = -1;
    bool any = false;
    while (text < end) {
        char *behind;
        long number = isdigit((unsigned char)*text) ? strtol(text, &behind, 10) : -1;
        if (number < 0 || behind > end || (behind < end && *behind != '+'))
            return false;
        text = behind + (behind < end);
        if (number == last || (any && number == last + 1)) {
            last = number;
            continue;
        }
        if (last > first)
            lab_str_printf(out, "–%ld", last);
        lab_str_printf(out, "%s%ld", any ? "+" : "", number);
        first = last = number;
        any = true;
    }
    if (last > first)
        lab_str_printf(out, "–%ld", last);
    return any;
}

/* "r2" at the end of an id: the third run of its point. */
static bool is_repeat(const char *text) {
    return text[0] == 'r' && text[1] && !text[1 + strspn(text + 1, "0123456789")];
}

static void add_term(const char *term, size_t length, struct lab_str *out) {
    static const struct {
        const char *key, *words;
    } keys[] = {{"gpu", "GPU "}, {"numa", "NUMA node "}};
    if (is_repeat(term)) {
        lab_str_printf(out, "run %ld", strtol(term + 1, NULL, 10) + 1);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t key = strlen(keys[i].key);
        LAB_AUTO(str, numbers);
        if (length <= key || strncmp(term, keys[i].key, key) != 0 ||
            !add_numbers(term + key, length - key, &numbers))
            continue;
        lab_str_printf(out, "%s%s", keys[i].words, numbers.text);
        return;
    }
    lab_str_add_bytes(out, term, length);
}

/* "gpu0+1_numa0_vit0x0x0_r2" as "GPU 0–1, NUMA node 0, vit0x0x0, run 3"; others as they are. */
static const char *words_of(const char *name, struct lab_arena *arena) {
    if (!name || !lab_str_starts(name, "gpu") || !isdigit((unsigned char)name[3]))
        return name;
    LAB_AUTO(str, words);
    for (const char *from = name, *c = name;; c++) {
        bool comma = lab_str_starts(c, ", ");
        bool ends = *c == '_' && (isdigit((unsigned char)c[-1]) || is_repeat(c + 1));
        if (*c && !comma && !ends)
            continue;
        lab_str_add(&words, words.length ? ", " : "");
        add_term(from, (size_t)(c - from), &words);
        if (!*c)
            break;
        from = c + (comma ? 2 : 1);
        c = from - 1;
    }
    return lab_arena_strdup(arena, words.text);
}

/* "algo tree, proto simple, …" of a list of settings: whole ones from its beginning, where no other
 * name begins so; else the name itself. */
static const char *cut_list(const char *const *names, int count, int at, int columns,
                            struct lab_arena *arena) {
    const char *name = names[at];
    size_t kept = 0;
    if (!name || lab_str_columns(name) <= columns)
        return name;
    for (const char *comma = strstr(name, ", "); comma; comma = strstr(comma + 2, ", "))
        if (comma - name + 3 <= columns)
            kept = (size_t)(comma - name);
    for (int i = 0; i < count && kept > 0; i++)
        if (names[i] && strncmp(names[i], name, kept) == 0 && strcmp(names[i], name) != 0)
            return name;
    return kept > 0 ? lab_arena_printf(arena, "%.*s, …", (int)kept, name) : name;
}

/* What differs, in so many columns; lists of up to `whole` are never cut. */
static const char **shorten(const char *const *names, int count, int columns, int whole,
                            struct lab_arena *arena) {
    const char **words = lab_arena_alloc(arena, (size_t)count + 1, sizeof *words);
    for (int i = 0; i < count; i++)
        words[i] = words_of(names[i], arena);
    const char **distinct = lab_names_shorten(words, count, columns, arena);
    for (int i = 0; i < count; i++)
        words[i] = cut_list(distinct, count, i, whole, arena);
    return words;
}

/* --- a chart's --- */

static void shorten_key(struct lab_chart_panel *panels, int count, struct lab_arena *arena) {
    int total = 0, at = 0;
    for (int p = 0; p < count; p++)
        total += panels[p].series_count;
    const char **titles = lab_arena_alloc(arena, (size_t)total + 1, sizeof *titles);
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p].series_count; s++)
            titles[at++] = panels[p].series[s].title;
    titles = shorten(titles, total, PLOT_NAME_FITS, KEY_FITS, arena);
    at = 0;
    for (int p = 0; p < count; p++) {
        size_t series_count = (size_t)panels[p].series_count;
        struct lab_chart_series *series = lab_arena_alloc(arena, series_count + 1, sizeof *series);
        if (series_count > 0)
            memcpy(series, panels[p].series, series_count * sizeof *series);
        for (size_t s = 0; s < series_count; s++)
            series[s].title = titles[at++];
        panels[p].series = series;
    }
}

static const struct lab_chart_axis *axis_of(const struct lab_chart_panel *panel, bool of_x) {
    return of_x ? &panel->x : &panel->y;
}

/* Panels that share their names before share them afterwards: that is how axes are known to
 * agree. */
static const char *const *find_shortened(const struct lab_chart *chart,
                                         const struct lab_chart_panel *panels, int at, bool of_x,
                                         struct lab_arena *arena) {
    const struct lab_chart_axis *axis = axis_of(&panels[at], of_x);
    for (int p = 0; p < at; p++)
        if (axis_of(&chart->panels[p], of_x)->names == axis->names &&
            axis_of(&chart->panels[p], of_x)->name_count == axis->name_count)
            return axis_of(&panels[p], of_x)->names;
    int columns = of_x ? PLOT_NAME_FITS : ROW_FITS;
    return shorten(axis->names, axis->name_count, columns, columns, arena);
}

struct lab_chart plot_shorten(const struct lab_chart *chart, struct lab_arena *arena) {
    size_t count = (size_t)chart->panel_count;
    struct lab_chart shortened = *chart;
    struct lab_chart_panel *panels = lab_arena_alloc(arena, count + 1, sizeof *panels);
    const char **titles = lab_arena_alloc(arena, count + 1, sizeof *titles);
    if (count > 0)
        memcpy(panels, chart->panels, count * sizeof *panels);
    shorten_key(panels, chart->panel_count, arena);
    for (size_t p = 0; p < count; p++) {
        if (panels[p].x.names)
            panels[p].x.names = find_shortened(chart, panels, (int)p, true, arena);
        if (panels[p].y.names)
            panels[p].y.names = find_shortened(chart, panels, (int)p, false, arena);
        titles[p] = panels[p].title;
    }
    titles = shorten(titles, chart->panel_count, TITLE_MOST, TITLE_MOST, arena);
    for (size_t p = 0; p < count; p++)
        panels[p].title = titles[p];
    shortened.panels = panels;
    return shortened;
}
