/* plot_heat.c: maps: cells, and above them what their colours and signs mean. */
#include "plot/plot_internal.h"

#include <math.h>
#include <string.h>

/* The colours of a map, from its least over 0 to its most. */
static void add_colours(struct plot_scene *scene, const struct plot_layout *layout) {
    enum { STEPS = 21, STEP = 5 };
    double size = layout->format->small, x = layout->heat_x, y = layout->heat_y;
    double most = layout->heat_most;
    const char *ends[] = {lab_arena_printf(scene->arena, "−%.1f", most > 0 ? most : 1),
                          lab_arena_printf(scene->arena, "+%.1f", most > 0 ? most : 1)};
    plot_add_text(scene, ends[0], x, y, size, PLOT_START, LAB_COLOUR_AXIS);
    x += plot_text_width(ends[0], size) + 5;
    for (int i = 0; i < STEPS; i++) {
        double share = 2.0 * i / (STEPS - 1) - 1;
        enum lab_colour colour = share < 0 ? LAB_COLOUR_LESS : LAB_COLOUR_MORE;
        plot_add_rect(scene, x + STEP * i, y - 5, STEP, 10, colour)->opacity =
            fmax(fabs(share), 0.01);
    }
    x += STEP * STEPS;
    plot_add_text(scene, ends[1], x + 5, y, size, PLOT_START, LAB_COLOUR_AXIS);
    x += 5 + plot_text_width(ends[1], size) + 6;
    const char *title = layout->chart->panels[0].heat->title;
    if (title)
        plot_add_text(scene,
                      plot_text_cut(title, size, layout->width - PLOT_EDGE - x, scene->arena), x, y,
                      size, PLOT_START, LAB_COLOUR_INK);
}

/* What the signs in cells mean, of those that there are. */
static void add_scale_notes(struct plot_scene *scene, const struct plot_layout *layout) {
    double size = layout->format->small, x = layout->heat_x, y = layout->heat_y + 1.35 * size + 4;
    static const char open[] = "?: inconclusive", bound[] = "≤: no difference larger than that";
    if (layout->heat_open) {
        plot_add_rect(scene, x, y - 5, 14, 10, LAB_COLOUR_GRID);
        plot_add_text(scene, open, x + 19, y, size, PLOT_START, LAB_COLOUR_INK);
        x += 19 + plot_text_width(open, size) + 14;
    }
    if (layout->heat_bounds)
        plot_add_text(scene, bound, x, y, size, PLOT_START, LAB_COLOUR_INK);
}

void plot_add_scale(struct plot_scene *scene, const struct plot_layout *layout) {
    add_colours(scene, layout);
    add_scale_notes(scene, layout);
}

/* --- cells --- */

/* "GPU 1, NUMA node 2, vit0x0x0: −12.1% [−13.0, −11.2], 5 runs" */
static const char *describe_cell(const struct lab_chart_panel *panel, int cell,
                                 struct lab_arena *arena) {
    const struct lab_chart_heat *heat = panel->heat;
    const char *column = panel->x.names[cell % panel->x.name_count],
               *text = heat->tips    ? heat->tips[cell]
                       : heat->texts ? heat->texts[cell]
                                     : "";
    bool number = column[strspn(column, "0123456789")] == '\0';
    return lab_arena_printf(arena, "%s, %s%s%s%s%s: %s", panel->y.names[cell / panel->x.name_count],
                            number && panel->x.title ? panel->x.title : "",
                            number && panel->x.title ? " " : "", column, panel->title ? ", " : "",
                            panel->title ? panel->title : "", text);
}

void plot_add_heat(struct plot_scene *scene, const struct plot_layout *layout,
                   const struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    const struct lab_chart_heat *heat = panel->heat;
    double width = (made->right - made->left) / fmax(panel->x.name_count, 1),
           height = (made->bottom - made->top) / fmax(panel->y.name_count, 1);
    for (int i = 0; i < panel->x.name_count * panel->y.name_count; i++) {
        int column = i % panel->x.name_count, row = i / panel->x.name_count;
        double x = made->left + column * width, y = made->top + row * height,
               value = heat->values[i];
        bool open = heat->open && heat->open[i];
        double share = layout->heat_most > 0 ? fabs(value) / layout->heat_most : 0;
        if (isfinite(value)) {
            struct plot_mark *cell = plot_add_rect(scene, x + 1, y + 1, width - 2, height - 2,
                                                   open        ? LAB_COLOUR_GRID
                                                   : value < 0 ? LAB_COLOUR_LESS
                                                               : LAB_COLOUR_MORE);
            cell->opacity = open ? 0 : fmax(share, 0.02);
            cell->text = describe_cell(panel, i, scene->arena);
        }
        if (layout->heat_size > 0 && heat->texts)
            plot_add_text(scene, heat->texts[i], x + width / 2, y + height / 2, layout->heat_size,
                          PLOT_MIDDLE, LAB_COLOUR_INK);
    }
}
