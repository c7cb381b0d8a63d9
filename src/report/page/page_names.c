/*
 * page_names.c: names of points on the page. An id such as gpu0_numa0_max_iters500_optimizeradam
 * becomes what varies in the study: "GPU 0, NUMA node 0, max_iters 500".
 */
#include "report/page/page_internal.h"

#include "analysis/analysis_study.h"
#include "report/study/study_axes.h"

#include <stdlib.h>
#include <string.h>

struct page_names {
    struct named {
        const char *id, *name;
    } * items; /* by id */
    int count;
};

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

static void add(struct page_names *names, const char *id, const char *name) {
    names->items[names->count++] = (struct named){id, name};
}

static void add_row(struct page_names *names, const struct study_row *row, const char *name,
                    struct lab_arena *arena) {
    add(names, row->name, name);
    for (int k = 0; k < row->run_count; k++) {
        const struct lab_run *run = row->run[k];
        if (strcmp(run->id, row->name) != 0)
            add(names, run->id, lab_arena_printf(arena, "%s, run %d", name, run->repeat + 1));
        for (int r = 0; k == 0 && r < run->rank_count; r++)
            add(names, run->ranks[r].device, lab_study_device_title(run->ranks[r].device, arena));
    }
}

/* What follows device and NUMA node in a point's id, as sentences have it; "" = nothing. */
static const char *label_of(const struct study_row *row) {
    const char *numa = strstr(row->name, "_numa");
    size_t length = numa ? strspn(numa + 5, "0123456789+") : 0;
    return length && numa[5 + length] == '_' ? numa + 6 + length : "";
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether that tells points apart: then it names them, too. */
static bool has_labels(const struct study_row *rows, int count, struct lab_arena *arena) {
    const char **labels = lab_arena_alloc(arena, (size_t)count, sizeof *labels);
    for (int i = 0; i < count; i++)
        labels[i] = label_of(&rows[i]);
    qsort(labels, (size_t)count, sizeof *labels, by_text);
    for (int i = 1; i < count; i++)
        if (strcmp(labels[i], labels[i - 1]) == 0)
            return false;
    return count > 1;
}

/* What varies but devices and NUMA nodes, the phase last: "medium, batch 16". */
static struct study_axes workload_axes(const struct study_axes *axes, struct lab_arena *arena) {
    struct study_axes made = {
        .items = lab_arena_alloc(arena, (size_t)axes->count + 1, sizeof *made.items)};
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < axes->count; i++) {
            enum study_axis_kind kind = axes->items[i].kind;
            if (kind > STUDY_AXIS_NODE && last == (kind == STUDY_AXIS_PHASE))
                made.items[made.count++] = axes->items[i];
        }
    return made;
}

/* Points on several devices share a label. One that points with different names share stays. */
static void keep_ambiguous(struct page_names *names) {
    for (int i = 0, next; i < names->count; i = next) {
        bool same = true;
        for (next = i + 1; next < names->count && by_id(&names->items[next], &names->items[i]) == 0;
             next++)
            same = same && strcmp(names->items[next].name, names->items[i].name) == 0;
        for (int k = i; k < next && !same; k++)
            names->items[k].name = names->items[k].id;
    }
}

const struct page_names *page_names_make(const struct study_digest *digest,
                                         struct lab_arena *arena) {
    struct page_names *names = lab_arena_alloc(arena, 1, sizeof *names);
    if (!digest || digest->row_count == 0)
        return names;
    size_t room = 0, rows = (size_t)digest->row_count;
    const struct lab_run **first = lab_arena_alloc(arena, rows, sizeof *first);
    for (size_t i = 0; i < rows; i++) {
        first[i] = digest->rows[i].run[0];
        room += 2 + (size_t)digest->rows[i].run_count + (size_t)first[i]->rank_count;
    }
    struct study_axes axes = study_axes_make(first, digest->row_count, arena);
    bool labelled = has_labels(digest->rows, digest->row_count, arena);
    struct study_axes workload = workload_axes(&axes, arena);
    names->items = lab_arena_alloc(arena, room, sizeof *names->items);
    for (size_t i = 0; i < rows; i++) {
        LAB_AUTO(str, name);
        study_axes_add_name(&axes, (int)i, &name);
        if (!name.length) /* nothing varies: what it runs, and where */
            lab_str_printf(&name, "%s, %s",
                           first[i]->label && *first[i]->label ? first[i]->label : first[i]->id,
                           first[i]->rank_count
                               ? lab_study_device_title(first[i]->ranks[0].device, arena)
                               : "");
        add_row(names, &digest->rows[i], lab_arena_strdup(arena, name.text), arena);
        if (!strchr(label_of(&digest->rows[i]), '_') || (!labelled && !workload.count))
            continue; /* a word is none */
        if (!labelled) {
            lab_str_clear(&name);
            study_axes_add_name(&workload, (int)i, &name);
        }
        add(names, label_of(&digest->rows[i]), lab_arena_strdup(arena, name.text));
    }
    qsort(names->items, (size_t)names->count, sizeof *names->items, by_id);
    keep_ambiguous(names);
    return names;
}

#define WORD_MOST 72 /* bytes of a word of a sentence */
#define WORD_END  28 /* that stay at each end of a longer one */

static size_t id_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/+=");
}

const char *page_named(const struct page_names *names, const char *text, struct lab_arena *arena) {
    if (!text || !names || names->count == 0 || !strpbrk(text, "_:"))
        return text;
    LAB_AUTO(str, out);
    while (*text) {
        size_t length = id_length(text), kept = length;
        while (kept && strchr(".:", text[kept - 1])) /* of the sentence, not of the id */
            kept--;
        const char *id = kept ? lab_arena_strndup(arena, text, kept) : NULL;
        struct named key = {.id = id}, *found = NULL;
        if (id)
            found = bsearch(&key, names->items, (size_t)names->count, sizeof key, by_id);
        lab_str_add(&out, found ? found->name : id ? id : "");
        text += kept;
        size_t rest = length > kept ? length - kept : *text ? 1 : 0;
        lab_str_add_bytes(&out, text, rest);
        text += rest;
    }
    return lab_arena_strdup(arena, out.text);
}

/* Whether a byte is within a letter of UTF-8. */
static bool is_inner(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

const char *page_cut_words(const char *text, struct lab_arena *arena) {
    LAB_AUTO(str, out);
    while (text && *text) {
        size_t length = strcspn(text, " "), head = WORD_END, tail = length - WORD_END;
        if (length <= WORD_MOST) {
            lab_str_add_bytes(&out, text, length);
        } else {
            while (is_inner(text[head]))
                head--;
            while (is_inner(text[tail]))
                tail++;
            lab_str_printf(&out, "%.*s…%.*s", (int)head, text, (int)(length - tail), text + tail);
        }
        lab_str_add(&out, text[length] ? " " : "");
        text += length + (text[length] == ' ');
    }
    return text ? lab_arena_strdup(arena, out.text) : NULL;
}
