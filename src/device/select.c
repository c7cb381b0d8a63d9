/*
 * select.c: from a selector to a list of devices. This file knows commas, backends' names and
 * `auto`; what stands behind a backend's name is the backend's own, with lab_device_parse_part for
 * those that count their devices.
 */
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"

#include <ctype.h>
#include <stdatomic.h>

#define PART_MAX 100000 /* no device has so many of anything */

struct lab_device_ref *lab_device_list_add(struct lab_device_list *list, struct lab_arena *arena) {
    return &LAB_ADD(list->items, list->count, arena);
}

struct lab_device_ref lab_device_ref_copy(const struct lab_device_ref *ref,
                                          struct lab_arena *arena) {
    struct lab_device_ref copy = *ref;
    copy.name = lab_arena_strdup(arena, ref->name);
    copy.description = lab_arena_strdup(arena, ref->description);
    copy.physical = lab_arena_strdup(arena, ref->physical);
    copy.uuid = ref->uuid ? lab_arena_strdup(arena, ref->uuid) : NULL;
    copy.cpus.items =
        lab_arena_copy(arena, ref->cpus.items, (size_t)ref->cpus.count, sizeof *copy.cpus.items);
    return copy;
}

/* A number without sign or space; moves `*text` behind it. -1 = there is none. */
static int read_number(const char **text) {
    int number = 0;
    const char *at = *text;
    for (; isdigit((unsigned char)*at); at++) {
        number = number * 10 + (*at - '0');
        if (number > PART_MAX)
            return -1;
    }
    if (at == *text)
        return -1;
    *text = at;
    return number;
}

/* -1 where `text` isn't of that form; then nothing is known about how far it was read. */
static int read_part(const char *text, struct lab_device_part *part) {
    *part = (struct lab_device_part){.unit = -1, .slices = -1, .slice = -1};
    if (!*text)
        return 0;
    if (*text++ != ':' || (part->unit = read_number(&text)) < 0)
        return -1;
    if (*text == '/') {
        text++;
        if ((part->slices = read_number(&text)) < 0)
            return -1;
        if (*text == '.') {
            text++;
            if ((part->slice = read_number(&text)) < 0)
                return -1;
        }
    }
    return *text ? -1 : 0;
}

int lab_device_parse_part(const char *backend, const char *rest, struct lab_device_part *ret_part,
                          struct lab_err *err) {
    struct lab_device_part part;
    if (read_part(rest, &part))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s%s isn't a device; write %s, %s:NUMBER, %s:NUMBER/SLICES or "
                           "%s:NUMBER/SLICES.SLICE, such as %s:0/2.1",
                           backend, rest, backend, backend, backend, backend, backend);
    if (part.slices == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s%s: there is no device of 0 slices; at least 1",
                           backend, rest);
    if (part.slice >= 0 && part.slice >= part.slices)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s%s: slices count from 0, so the last of %d is %s:%d/%d.%d", backend,
                           rest, part.slices, backend, part.unit, part.slices, part.slices - 1);
    *ret_part = part;
    return 0;
}

const struct lab_backend *lab_backend_find(const char *name) {
    for (int i = 0; lab_backends[i]; i++)
        if (lab_str_equal(lab_backends[i]->name, name))
            return lab_backends[i];
    return NULL;
}

static int count_backends(void) {
    int count = 0;
    while (lab_backends[count])
        count++;
    return count;
}

static int unknown_backend(const char *word, const char *name, struct lab_arena *arena,
                           struct lab_err *err) {
    int count = count_backends();
    const char **names = lab_arena_alloc(arena, (size_t)count + 2, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = lab_backends[i]->name;
    names[count] = "auto";
    /* what everybody calls it, and one letter from another backend's name */
    bool gpu = lab_str_equal(name, "gpu") || lab_str_equal(name, "nvidia");
    const char *nearest = gpu && lab_backend_find("cuda") ? "cuda" : lab_str_nearest(name, names);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "unknown device '%s'", word);
    if (nearest)
        lab_str_printf(&text, "; did you mean %s?", nearest);
    lab_str_printf(&text, "%s begins with ", nearest ? " A device" : "; a device");
    lab_str_add_list(&text, names, "or");
    return lab_err_set(err, LAB_ERR_USER, "%s", text.text);
}

/* Once: a program may select many times. */
static void warn_of(const struct lab_backend *backend, const char *lacks) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        lab_log(LAB_LOG_WARNING, "device=auto passes over %s: %s", backend->name, lacks);
}

/* The best backend with devices to compute on, the next one by rank each time. */
static int select_auto(const struct lab_machine *machine, struct lab_arena *arena,
                       struct lab_device_list *list, struct lab_err *err) {
    LAB_AUTO(str, reasons);
    int before = list->count, status = 0;
    for (int rank = -1; status == 0 && list->count == before;) {
        const struct lab_backend *next = NULL;
        for (int i = 0; lab_backends[i]; i++)
            if (lab_backends[i]->rank > rank && (!next || lab_backends[i]->rank < next->rank))
                next = lab_backends[i];
        if (!next) {
            status = lab_err_set(err, LAB_ERR_USER, "no devices here%s", reasons.text);
            break;
        }
        const char *why = "none found";
        rank = next->rank;
        status = next->select(machine, "", arena, list, &why, err);
        const char *lacks = list->count > before && next->lacks ? next->lacks(arena) : NULL;
        if (status == 0 && lacks) {
            warn_of(next, lacks);
            list->count = before;
            why = lacks;
        }
        lab_str_printf(&reasons, "; %s: %s", next->name, why);
    }
    return status;
}

static int select_word(const struct lab_machine *machine, const char *word, struct lab_arena *arena,
                       struct lab_device_list *list, struct lab_err *err) {
    size_t name_length = strcspn(word, ":/.");
    int before = list->count;
    if (lab_str_equal(word, "auto"))
        return select_auto(machine, arena, list, err);
    const char *name = lab_arena_strndup(arena, word, name_length);
    const struct lab_backend *backend = lab_backend_find(name);
    if (!backend)
        return unknown_backend(word, name, arena, err);
    const char *why = "none found";
    if (backend->select(machine, word + name_length, arena, list, &why, err))
        return -1;
    if (list->count == before)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s: no such devices here: %s; device=auto takes "
                           "what there is",
                           word, why);
    return 0;
}

static int refuse_duplicates(const struct lab_device_list *list, struct lab_err *err) {
    for (int i = 0; i < list->count; i++)
        for (int k = 0; k < i; k++)
            if (lab_str_equal(list->items[i].name, list->items[k].name))
                return lab_err_set(err, LAB_ERR_USER, "%s is named twice; name each device once",
                                   list->items[i].name);
    return 0;
}

const char *lab_device_word(const char *before, const char *word, struct lab_arena *arena) {
    const char *colon = before && isdigit((unsigned char)*word) ? strrchr(before, ':') : NULL;
    if (!colon)
        return word;
    return lab_arena_printf(arena, "%.*s%s", (int)(colon + 1 - before), before, word);
}

int lab_device_select(const struct lab_machine *machine, const char *selector,
                      struct lab_arena *arena, struct lab_device_list *ret_list,
                      struct lab_err *err) {
    struct lab_device_list list = {0};
    const char *word = NULL;
    for (const char *at = selector;; at++) {
        size_t length = strcspn(at, ",");
        word = lab_device_word(word, lab_arena_strndup(arena, at, length), arena);
        if (!length)
            return lab_err_set(err, LAB_ERR_USER,
                               "'%s' lacks a device; write names joined by commas, such as "
                               "cpu:0/2.0,cpu:0/2.1, or auto",
                               selector);
        if (select_word(machine, word, arena, &list, err))
            return -1;
        at += length;
        if (!*at)
            break;
    }
    if (refuse_duplicates(&list, err))
        return -1;
    *ret_list = list;
    return 0;
}

/* --- backend by backend --- */

int lab_device_offers(const struct lab_machine *machine, struct lab_arena *arena,
                      struct lab_device_offer **ret_offers) {
    struct lab_device_offer *offers =
        lab_arena_alloc(arena, (size_t)count_backends(), sizeof *offers);
    int count = 0;
    for (int i = 0; lab_backends[i]; i++) {
        const struct lab_backend *backend = lab_backends[i];
        if (backend->rank < 0) /* its devices are nowhere: they have to be named */
            continue;
        struct lab_device_offer *offer = &offers[count++];
        *offer = (struct lab_device_offer){.backend = backend->name, .help = backend->help};
        struct lab_err err = LAB_ERR_INIT;
        /* a backend that fails has no devices to offer, and its failure is the reason */
        if (backend->select(machine, "", arena, &offer->devices, &offer->why_none, &err) < 0) {
            offer->devices.count = 0;
            offer->why_none = lab_arena_strdup(arena, err.text);
        }
    }
    *ret_offers = offers;
    return count;
}

int lab_device_offers_selected(const struct lab_machine *machine, const char *selector,
                               struct lab_arena *arena, struct lab_device_offer **ret_offers,
                               struct lab_err *err) {
    struct lab_device_list list;
    if (lab_device_select(machine, selector, arena, &list, err) < 0)
        return -1;
    struct lab_device_offer *offers =
        lab_arena_alloc(arena, (size_t)count_backends(), sizeof *offers);
    int count = 0;
    for (int i = 0; lab_backends[i]; i++) {
        struct lab_device_offer *offer = &offers[count];
        *offer = (struct lab_device_offer){.backend = lab_backends[i]->name,
                                           .help = lab_backends[i]->help};
        for (int k = 0; k < list.count; k++)
            if (lab_str_equal(list.items[k].backend, offer->backend))
                *lab_device_list_add(&offer->devices, arena) = list.items[k];
        count += offer->devices.count > 0;
    }
    *ret_offers = offers;
    return count;
}
