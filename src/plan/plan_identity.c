/*
 * plan_identity.c: what makes two runs the same, as 64 bits. FNV-1a over a canonical text (plan.h):
 * simple enough to be computed by anybody from a study's files, and with a million runs the chance
 * that any two collide is 3 in 10⁸.
 */
#include "plan/plan_internal.h"

#include "base/list.h"

static void write_ints(const struct lab_option_ints *ints, bool for_name, struct lab_str *out) {
    for (int i = 0; i < ints->count; i++)
        lab_str_printf(out, "%s%lld", i ? (for_name ? "x" : ",") : "", (long long)ints->items[i]);
}

static int by_key(const void *a, const void *b) {
    return strcmp(**(const char **const *)a, **(const char **const *)b);
}

/* In the value grammar, but the keys of a map in ascending order: they mean the same in any. */
static void write_tree(const struct lab_value *value, struct lab_str *out) {
    if (!value || (value->type != LAB_VALUE_LIST && value->type != LAB_VALUE_MAP)) {
        if (value)
            lab_value_write(value, out);
        else
            lab_str_add(out, "null");
        return;
    }
    bool map = value->type == LAB_VALUE_MAP;
    LAB_AUTO_FREE const char ***order = lab_mem_alloc((size_t)value->count, sizeof *order);
    for (int i = 0; map && i < value->count; i++)
        order[i] = &value->keys[i];
    if (map)
        qsort(order, (size_t)value->count, sizeof *order, by_key);
    lab_str_add(out, map ? "{" : "[");
    for (int i = 0; i < value->count; i++) {
        lab_str_add(out, i ? "," : "");
        if (map)
            lab_str_printf(out, "%zu:%s:", strlen(*order[i]), *order[i]);
        write_tree(value->items[map ? order[i] - value->keys : i], out);
    }
    lab_str_add(out, map ? "}" : "]");
}

void plan_option_write(const struct lab_option *row, const void *config, bool for_name,
                       struct lab_str *out) {
    const void *field = (const char *)config + row->offset;
    const struct lab_value *tree;
    const char *text;
    switch (row->type) {
    case LAB_OPTION_FLAG:
        lab_str_add(out, *(const bool *)field ? "true" : "false");
        return;
    case LAB_OPTION_INT:
    case LAB_OPTION_SIZE:
        lab_str_printf(out, "%lld", (long long)*(const int64_t *)field);
        return;
    case LAB_OPTION_FLOAT:
    case LAB_OPTION_DURATION:
        lab_str_add_double(out, *(const double *)field);
        return;
    case LAB_OPTION_INTS:
        write_ints(field, for_name, out);
        return;
    case LAB_OPTION_VALUE:
        tree = *(struct lab_value *const *)field;
        if (for_name && tree && tree->type == LAB_VALUE_STRING)
            lab_str_add(out, tree->string);
        else
            write_tree(tree, out);
        return;
    case LAB_OPTION_STRING:
    case LAB_OPTION_CHOICE:
        text = *(const char *const *)field;
        if (!for_name && text) /* its length keeps a text with newlines apart from other keys */
            lab_str_printf(out, "%zu:", strlen(text));
        lab_str_add(out, text ? text : "null");
        return;
    }
}

bool plan_option_is_default(const struct lab_option *row, const void *config) {
    LAB_AUTO(str, text);
    plan_option_write(row, config, true, &text);
    return lab_str_equal(text.text, row->fallback ? row->fallback : "null");
}

uint64_t plan_hash_work(const struct lab_workload *workload, const void *config) {
    size_t count = 0;
    while (workload->options[count].name)
        count++;
    LAB_AUTO_FREE const struct lab_option **rows = lab_mem_alloc(count, sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = &workload->options[i];
    LAB_SORT_REFS(rows, count, LAB_BY_BYTES(*rows, name));
    LAB_AUTO(str, text);
    lab_str_printf(&text, "workload %s version %d\n", workload->name,
                   workload->version ? workload->version : 1);
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->later && plan_option_is_default(rows[i], config))
            continue;
        lab_str_add(&text, rows[i]->name);
        lab_str_add(&text, "=");
        plan_option_write(rows[i], config, false, &text);
        lab_str_add(&text, "\n");
    }
    return lab_hash_text(LAB_HASH_START, text.text);
}

/* --- the index --- */

/* FNV's low bits are its weakest: fold the high ones in. */
static size_t slot_of(const struct plan_index *index, uint64_t hash) {
    size_t mask = (size_t)index->slot_count - 1;
    size_t at = (size_t)(hash ^ (hash >> 29)) & mask;
    while (index->places[at] && index->hashes[at] != hash)
        at = (at + 1) & mask;
    return at;
}

int plan_index_find(const struct plan_index *index, uint64_t hash) {
    return index->slot_count ? index->places[slot_of(index, hash)] - 1 : -1;
}

static void put(struct plan_index *index, uint64_t hash, int place) {
    size_t at = slot_of(index, hash);
    index->hashes[at] = hash;
    index->places[at] = place + 1;
    index->count++;
}

void plan_index_add(struct plan_index *index, uint64_t hash, int place) {
    if (2 * (index->count + 1) > index->slot_count) {
        struct plan_index larger = {.slot_count = index->slot_count ? 2 * index->slot_count : 64};
        larger.hashes = lab_mem_alloc((size_t)larger.slot_count, sizeof *larger.hashes);
        larger.places = lab_mem_alloc((size_t)larger.slot_count, sizeof *larger.places);
        for (int i = 0; i < index->slot_count; i++)
            if (index->places[i])
                put(&larger, index->hashes[i], index->places[i] - 1);
        plan_index_release(index);
        *index = larger;
    }
    put(index, hash, place);
}

void plan_index_release(struct plan_index *index) {
    lab_mem_free(index->hashes);
    lab_mem_free(index->places);
    *index = (struct plan_index){0};
}
