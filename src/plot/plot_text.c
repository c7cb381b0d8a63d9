/* plot_text.c: how wide texts are, before anything draws them. */
#include "plot/plot_internal.h"

#include <string.h>

#define OTHERS 0.84 /* em of what isn't ASCII: "µ", "≤", "×" */

/* Hundredths of an em, from ' ' on: DejaVu Sans, the widest of the usual ones. */
static const unsigned char widths[] = {
    32, 40, 46, 84, 64, 95, 78, 28, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 69, 69, 70, 77, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61, 79, 70, 64, 62, 74, 69, 99, 69,  62, 69, 39, 34, 39, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};

static double letter_width(const char *at, size_t length) {
    unsigned char c = (unsigned char)*at;
    if (length == 1 && c >= ' ' && c < ' ' + sizeof widths)
        return widths[c - ' '] / 100.0;
    return length > 2 && c > 0xe2 ? 1 : OTHERS;
}

double plot_text_width(const char *text, double size) {
    double width = 0;
    bool printable;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = lab_str_next(text, left, &printable);
        width += letter_width(text, length);
    }
    return width * size;
}

const char *plot_text_cut(const char *text, double size, double pixels, struct lab_arena *arena) {
    double all = plot_text_width(text, size), room = pixels - OTHERS * size, at = 0;
    if (all <= pixels)
        return text;
    LAB_AUTO(str, cut);
    bool printable, dotted = false;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = lab_str_next(text, left, &printable);
        double next = at + letter_width(text, length) * size;
        if (next <= room * 2 / 3 || at >= all - room / 3) {
            lab_str_add_bytes(&cut, text, length);
        } else if (!dotted) {
            lab_str_add(&cut, "…");
            dotted = true;
        }
        at = next;
    }
    return lab_arena_strdup(arena, cut.text);
}

struct plot_unit plot_unit_of(const char *title, struct lab_arena *arena) {
    const char *open = title ? strrchr(title, '[') : NULL;
    size_t length = open ? strcspn(open + 1, "]") : 0;
    if (!title || !*title)
        return (struct plot_unit){"", ""};
    if (!open)
        return (struct plot_unit){lab_arena_printf(arena, "%s ", title), ""};
    return (struct plot_unit){
        "", lab_arena_printf(arena, "%s%.*s", open[1] == '%' ? "" : " ", (int)length, open + 1)};
}
