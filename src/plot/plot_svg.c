/*
 * plot_svg.c: gnuplot's SVG made a part of a page. Several of them live in one document, so ids
 * need a prefix; the page is light or dark, so colours are variables of it; and much of what
 * gnuplot writes (groups without content, titles of every line) draws nothing.
 */
#include "plot/plot_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SCALE 0.58

/* --- colours --- */

static bool parse_colour(const char *hex, int ret[3]) {
    unsigned value = (unsigned)strtoul(hex + 1, NULL, 16);
    ret[0] = (int)(value >> 16);
    ret[1] = (int)(value >> 8 & 255);
    ret[2] = (int)(value & 255);
    return true;
}

static bool is_colour(const char *hex, const int rgb[3]) {
    int own[3];
    parse_colour(hex, own);
    return own[0] == rgb[0] && own[1] == rgb[1] && own[2] == rgb[2];
}

/* The page's variable for a colour of ours; others, such as those of cells, stay as they are. */
static void add_colour(const int rgb[3], struct lab_str *out) {
    static const struct {
        const char *hex, *name;
    } fixed[] = {{PLOT_INK, "ink"}, {PLOT_AXIS, "axis"}, {PLOT_GRID, "grid"}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (is_colour(fixed[i].hex, rgb)) {
            lab_str_printf(out, "var(--%s)", fixed[i].name);
            return;
        }
    for (int i = 0; i < LAB_PLOT_COLOURS; i++)
        if (is_colour(lab_plot_colours[i], rgb)) {
            lab_str_printf(out, "var(--c%d)", i);
            return;
        }
    for (int i = 0; i < PLOT_SHADES; i++)
        if (is_colour(plot_shades[i], rgb)) {
            lab_str_printf(out, "var(--shade%d)", i);
            return;
        }
    lab_str_printf(out, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}

/* "rgb( 68,  68,  68)": how long it is; 0 = there is none here. */
static size_t match_rgb(const char *at, int ret[3]) {
    int length = 0;
    return sscanf(at, "rgb(%d ,%d ,%d )%n", &ret[0], &ret[1], &ret[2], &length) == 3
               ? (size_t)length
               : 0;
}

/* --- ids --- */

static size_t add_id(const char *at, const char *prefix, struct lab_str *out) {
    if (lab_str_starts(at, "xlink:href='#")) { /* within HTML it is an href */
        lab_str_printf(out, "href='#%s-", prefix);
        return strlen("xlink:href='#");
    }
    static const char *const marks[] = {"id='", "id=\"", "url(#"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (lab_str_starts(at, marks[i])) {
            lab_str_printf(out, "%s%s-", marks[i], prefix);
            return strlen(marks[i]);
        }
    return 0;
}

/* --- what draws nothing --- */

static size_t until_behind(const char *at, const char *end) {
    const char *found = strstr(at, end);
    return found ? (size_t)(found - at) + strlen(end) : strlen(at);
}

/* A group that holds white space alone. */
static size_t empty_group(const char *at) {
    size_t open = strcspn(at, ">");
    if (!lab_str_starts(at, "<g ") || !at[open])
        return 0;
    const char *behind = at + open + 1;
    behind += strspn(behind, " \t\r\n");
    return lab_str_starts(behind, "</g>") ? (size_t)(behind - at) + 4 : 0;
}

static size_t skipped(const char *at) {
    if (*at != '<')
        return 0;
    if (lab_str_starts(at, "<title>"))
        return until_behind(at, "</title>");
    if (lab_str_starts(at, "<desc>"))
        return until_behind(at, "</desc>");
    if (lab_str_starts(at, "<filter "))
        return until_behind(at, "</filter>");
    if (lab_str_starts(at, "<rect x=\"0\" y=\"0\" "))
        return until_behind(at, ">"); /* the background */
    return empty_group(at);
}

/* --- the whole --- */

void lab_plot_inline_svg(const char *svg, const char *prefix, struct lab_str *out) {
    const char *at = strstr(svg, "<svg");
    const char *view = strstr(svg, "viewBox=\"");
    int width = 0;
    if (!at || !view)
        return;
    /* a wide one scrolls before its texts are too small to be read */
    if (sscanf(view, "viewBox=\"0 0 %d", &width) != 1)
        width = 0;
    lab_str_printf(out, "<svg role=\"img\" viewBox=\"%.*s\" style=\"min-width:%dpx\">",
                   (int)strcspn(view + 9, "\""), view + 9, (int)(width * LEAST_SCALE));
    at += strcspn(at, ">");
    at += *at == '>';
    bool within = false; /* a tag: what people wrote stands between them */
    while (*at) {
        int rgb[3];
        size_t length = skipped(at);
        if (length == 0 && within && strchr("ixu", *at))
            length = add_id(at, prefix, out);
        if (length == 0 && within && *at == 'r' && (length = match_rgb(at, rgb)) > 0)
            add_colour(rgb, out);
        if (length == 0 && within && isspace((unsigned char)*at)) {
            length = strspn(at, " \t\r\n");
            lab_str_add(out, " ");
        }
        if (length == 0) {
            within = *at == '<' || (within && *at != '>');
            lab_str_add_bytes(out, at, 1);
            length = 1;
        }
        at += length;
    }
}
