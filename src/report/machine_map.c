/*
 * machine_map.c: the machine as a drawing. A box for each NUMA node, with the tree of bridges under
 * it; boxes stand side by side where the terminal is wide enough. A bridge is drawn only where it
 * joins several devices: what a user wants to see is who shares a path with whom.
 */
#include "report/machine_internal.h"

#include <stdio.h>
#include <string.h>

#define BOX_GAP    2
#define BOX_BORDER 4 /* two lines and a space beside each */

struct box {
    char *title;
    char **lines;
    int count;
    int rule; /* a line across before this one; -1 = none */
};

struct map {
    const struct lab_machine *machine;
    struct lab_style style;
    struct lab_arena *arena;
    bool one_domain; /* every PCI address begins with 0000: */
};

static void box_add(const struct map *map, struct box *box, const char *text) {
    LAB_AUTO(str, plain);
    if (map->style.unicode)
        lab_str_add(&plain, text);
    else
        lab_text_to_ascii(text, &plain);
    LAB_PUSH(box->lines, box->count) = lab_arena_strdup(map->arena, plain.text);
}

/* --- a node's devices as a tree --- */

static int bridge_at(const struct map *map, int pci, int depth) {
    const struct lab_pci *device = &map->machine->pci[pci];
    return depth < device->bridge_count ? device->bridges[depth] : -1;
}

/* How many of the members from `begin` on hang under the first one's bridge at `depth`. */
static int group_length(const struct map *map, const int *members, int count, int begin,
                        int depth) {
    int bridge = bridge_at(map, members[begin], depth);
    if (bridge < 0)
        return 1;
    int length = 1;
    while (begin + length < count && bridge_at(map, members[begin + length], depth) == bridge)
        length++;
    return length;
}

static void add_device(const struct map *map, struct box *box, int index, const char *stem) {
    const struct lab_pci *pci = &map->machine->pci[index];
    char name[LAB_PCI_NAME_BYTES];
    lab_machine_pci_name(map->machine, index, name);
    LAB_AUTO(str, line);
    const char *address = pci->address + (map->one_domain ? strlen("0000:") : 0);
    lab_str_printf(&line, "%s%-5s %s  ", stem, name, address);
    if (pci->link_gbs > 0)
        lab_str_printf(&line, "%4.1f GB/s  ", pci->link_gbs);
    else
        lab_str_add(&line, "link ?     ");
    /* the system's name tells two cards of one model apart; a GPU has its number for that */
    if (*pci->os_name && pci->kind != LAB_PCI_GPU)
        lab_str_printf(&line, "%s, ", pci->os_name);
    lab_report_pci_model(pci, &line);
    box_add(map, box, line.text);
}

/*
 * Members share everything above `depth`. `indent` holds the lines of the levels above; the top
 * level has none of its own.
 */
static void add_tree(const struct map *map, struct box *box, const int *members, int count,
                     int depth, const char *indent, bool top) {
    for (int begin = 0, length; begin < count; begin += length) {
        length = group_length(map, members, count, begin, depth);
        bool last = begin + length == count;
        const char *stem =
            top ? indent : lab_arena_printf(map->arena, "%s%s", indent, last ? "└─ " : "├─ ");
        if (length == 1) {
            add_device(map, box, members[begin], stem);
            continue;
        }
        int below = depth + 1;
        while (bridge_at(map, members[begin], below) >= 0 &&
               group_length(map, members, begin + length, begin, below) == length)
            below++;
        const char *what = depth > 0    ? "PCIe bridge"
                           : below == 1 ? "host bridge"
                                        : "host bridge › PCIe bridge";
        box_add(map, box, lab_arena_printf(map->arena, "%s%s", stem, what));
        const char *inner =
            top ? indent : lab_arena_printf(map->arena, "%s%s", indent, last ? "   " : "│  ");
        add_tree(map, box, members + begin, length, below, inner, false);
    }
}

/* Members in the order of their bridges, so that what shares one is adjacent. */
static void sort_by_bridges(const struct map *map, int *members, int count) {
    for (int i = 1; i < count; i++) {
        int moving = members[i], at = i;
        /* behind the last one that shares the most with it */
        int best = i - 1, best_shared = 0;
        for (int j = 0; j < i; j++) {
            int shared = 0;
            while (bridge_at(map, moving, shared) >= 0 &&
                   bridge_at(map, moving, shared) == bridge_at(map, members[j], shared))
                shared++;
            if (shared > 0 && shared >= best_shared) {
                best = j;
                best_shared = shared;
            }
        }
        for (; at > best + 1; at--)
            members[at] = members[at - 1];
        members[at] = moving;
    }
}

/* node -1: the devices whose node is unknown. Returns how many there are. */
static int add_devices(const struct map *map, struct box *box, int node) {
    const struct lab_machine *machine = map->machine;
    int *members = lab_arena_alloc(map->arena, (size_t)machine->pci_count, sizeof *members);
    int count = 0;
    for (int i = 0; i < machine->pci_count; i++)
        if (machine->pci[i].node == node && machine->pci[i].kind != LAB_PCI_OTHER)
            members[count++] = i;
    sort_by_bridges(map, members, count);
    add_tree(map, box, members, count, 0, "", true);
    return count;
}

/* --- boxes --- */

static void add_packages(const struct map *map, int node, struct lab_str *line) {
    int first = -1, last = -1;
    for (int i = 0; i < map->machine->core_count; i++)
        if (map->machine->cores[i].node == node) {
            int package = map->machine->cores[i].package;
            first = first < 0 || package < first ? package : first;
            last = package > last ? package : last;
        }
    if (first >= 0 && map->machine->package_count > 1)
        lab_str_printf(line, first == last ? " of package %d" : " of packages %d to %d", first,
                       last);
}

static struct box make_node_box(const struct map *map, int index) {
    const struct lab_node *node = &map->machine->nodes[index];
    struct box box = {.rule = -1};
    box.title = map->machine->numa_in_kernel
                    ? lab_arena_printf(map->arena, "NUMA node %d", node->number)
                    : lab_arena_strdup(map->arena, "the whole machine (kernel without NUMA)");
    LAB_AUTO(str, line);
    if (node->cpus.count) {
        lab_str_printf(&line, "%d core%s", node->core_count, node->core_count == 1 ? "" : "s");
        add_packages(map, index, &line);
        lab_str_add(&line, ": CPUs ");
        lab_cpus_write(&node->cpus, &line);
    } else {
        lab_str_add(&line, "no cores: memory only");
    }
    box_add(map, &box, line.text);
    lab_str_clear(&line);
    lab_str_add_bytes_binary(&line, (double)node->memory_bytes);
    lab_str_add(&line, " memory");
    if (node->free_bytes >= 0) {
        lab_str_add(&line, ", ");
        lab_str_add_bytes_binary(&line, (double)node->free_bytes);
        lab_str_add(&line, " free");
    }
    box_add(map, &box, line.text);
    box.rule = box.count;
    if (add_devices(map, &box, index) == 0)
        box_add(map, &box, "no PCI device");
    return box;
}

/* Returns false if every device has a node. */
static bool make_unknown_box(const struct map *map, struct box *ret_box) {
    *ret_box = (struct box){.rule = -1, .title = lab_arena_strdup(map->arena, "NUMA node unknown")};
    box_add(map, ret_box, "the firmware doesn't report where");
    box_add(map, ret_box, "these devices sit on");
    ret_box->rule = ret_box->count;
    return add_devices(map, ret_box, -1) > 0;
}

static int box_width(const struct box *box) {
    int width = lab_str_columns(box->title) + 2;
    for (int i = 0; i < box->count; i++)
        if (lab_str_columns(box->lines[i]) > width)
            width = lab_str_columns(box->lines[i]);
    return width;
}

/* Row `row` of a box drawn `height` lines high; 0 is its upper border. */
static void draw_box_row(const struct map *map, const struct box *box, int row, int width,
                         int height, struct lab_str *out) {
    const bool unicode = map->style.unicode;
    const char *level = unicode ? "─" : "-", *upright = unicode ? "│" : "|";
    int has_rule = box->rule >= 0;
    int line = row - 1 - (has_rule && row - 1 > box->rule);
    if (row == 0) {
        lab_str_printf(out, "%s%s %s ", unicode ? "┌" : "+", level, box->title);
        lab_str_add_repeat(out, level, width - lab_str_columns(box->title) - 1);
        lab_str_add(out, unicode ? "┐" : "+");
    } else if (row == height - 1) {
        lab_str_add(out, unicode ? "└" : "+");
        lab_str_add_repeat(out, level, width + 2);
        lab_str_add(out, unicode ? "┘" : "+");
    } else if (has_rule && row - 1 == box->rule) {
        lab_str_add(out, unicode ? "├" : "+");
        lab_str_add_repeat(out, level, width + 2);
        lab_str_add(out, unicode ? "┤" : "+");
    } else {
        lab_str_printf(out, "%s ", upright);
        lab_text_fit(line < box->count ? box->lines[line] : "", width, unicode, out);
        lab_str_printf(out, " %s", upright);
    }
}

static void draw_boxes(const struct map *map, const struct box *boxes, int count,
                       struct lab_str *out) {
    int width = 0, columns = map->style.columns;
    for (int i = 0; i < count; i++)
        width = box_width(&boxes[i]) > width ? box_width(&boxes[i]) : width;
    /* long names may be cut a little where one more box then fits */
    int least = width * 4 / 5, across = (columns + BOX_GAP) / (least + BOX_BORDER + BOX_GAP);
    across = across < 1 ? 1 : across;
    int rows = (count + across - 1) / across;
    across = (count + rows - 1) / rows; /* 2 + 2 rather than 3 + 1 */
    int room = (columns + BOX_GAP) / across - BOX_GAP - BOX_BORDER;
    width = width > room ? room : width;
    for (int begin = 0; begin < count; begin += across) {
        int end = begin + across < count ? begin + across : count, height = 0;
        for (int i = begin; i < end; i++) {
            int own = boxes[i].count + 2 + (boxes[i].rule >= 0);
            height = own > height ? own : height;
        }
        for (int row = 0; row < height; row++) {
            for (int i = begin; i < end; i++) {
                lab_str_add_repeat(out, " ", i > begin ? BOX_GAP : 0);
                draw_box_row(map, &boxes[i], row, width, height, out);
            }
            lab_str_add(out, "\n");
        }
    }
}

/* Colour comes last, over the finished text, so that no width has to know of escapes. */
static void add_coloured(const char *text, struct lab_str *out) {
    static const struct {
        const char *word, *colour;
    } words[] = {
        {"GPU", "\033[1;32m"}, {"NIC", "\033[36m"}, {"SSD", "\033[33m"}, {"NUMA node ", "\033[1m"}};
    while (*text) {
        size_t length = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words && !length; i++) {
            size_t prefix = strlen(words[i].word);
            size_t digits =
                lab_str_starts(text, words[i].word) ? strspn(text + prefix, "0123456789") : 0;
            if (digits) {
                length = prefix + digits;
                lab_str_printf(out, "%s%.*s\033[0m", words[i].colour, (int)length, text);
            }
        }
        if (!length)
            lab_str_add_bytes(out, text, length = 1);
        text += length;
    }
}

void report_draw_map(const void *state, struct lab_style style, struct lab_str *out) {
    const struct lab_machine *machine = state;
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, drawing);
    struct map map = {machine, style, &arena, true};
    for (int i = 0; i < machine->pci_count; i++)
        map.one_domain &= lab_str_starts(machine->pci[i].address, "0000:");
    int count = machine->node_count, made = count + 1;
    struct box *boxes = lab_arena_alloc(&arena, (size_t)made, sizeof *boxes);
    for (int i = 0; i < count; i++)
        boxes[i] = make_node_box(&map, i);
    count += make_unknown_box(&map, &boxes[count]);
    draw_boxes(&map, boxes, count, &drawing);
    if (style.colour)
        add_coloured(drawing.text, out);
    else
        lab_str_add(out, drawing.text);
    for (int i = 0; i < made; i++)
        lab_mem_free(boxes[i].lines);
}
