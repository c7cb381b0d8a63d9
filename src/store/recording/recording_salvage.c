/*
 * recording_salvage.c: chunks out of a file whose tree is broken. SQLite finds a table's rows
 * through inner pages, and a large table's lie far back: cut the file before them and no row can be
 * reached, though most are still there. So each page is looked at for what it is: a leaf of a table
 * has type 13, and its cells hold rows in a format that hasn't changed since 2004
 * (sqlite.org/fileformat2.html).
 *
 * A page may be an old one that is no longer in use, and anything may have happened to it. What
 * looks like a chunk is believed only because its bytes have a sum.
 */
#include "store/recording/recording_internal.h"

#include <string.h>

#define LEAF_OF_TABLE 13
#define CHUNK_COLUMNS 7
#define PAYLOAD_MAX   (1 << 26) /* far more than a chunk takes */

struct pages {
    sqlite3_file *file;
    int64_t size, count; /* of a page; of pages */
    int64_t usable;
    uint8_t *page, *overflow;
};

struct cursor {
    const uint8_t *at, *end;
};

static uint64_t number_at(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static bool read_page(const struct pages *pages, int64_t number, uint8_t *to) {
    return number >= 1 && number <= pages->count &&
           pages->file->pMethods->xRead(pages->file, to, (int)pages->size,
                                        (number - 1) * pages->size) == SQLITE_OK;
}

/* SQLite's own varint: 7 bits to a byte, the highest first, all 8 of the ninth. */
static bool take_varint(struct cursor *from, uint64_t *ret) {
    uint64_t value = 0;
    for (int i = 0; i < 9 && from->at < from->end; i++) {
        uint8_t byte = *from->at++;
        value = i == 8 ? value << 8 | byte : value << 7 | (byte & 0x7f);
        if (i == 8 || !(byte & 0x80)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

/* --- rows --- */

/* What of a payload is in the cell itself; the rest is in a chain of pages. */
static int64_t local_bytes(const struct pages *pages, int64_t payload) {
    int64_t most = pages->usable - 35, least = (pages->usable - 12) * 32 / 255 - 23;
    if (payload <= most)
        return payload;
    int64_t local = least + (payload - least) % (pages->usable - 4);
    return local <= most ? local : least;
}

/* The whole payload in memory of its own, or NULL. */
static uint8_t *gather(const struct pages *pages, struct cursor cell, int64_t payload) {
    int64_t done = local_bytes(pages, payload);
    if (cell.end - cell.at < done + (done < payload ? 4 : 0))
        return NULL;
    uint8_t *all = lab_mem_alloc((size_t)payload + 1, 1);
    memcpy(all, cell.at, (size_t)done);
    int64_t next = done < payload ? (int64_t)number_at(cell.at + done, 4) : 0;
    while (done < payload) {
        if (!read_page(pages, next, pages->overflow)) {
            lab_mem_free(all);
            return NULL;
        }
        int64_t now = payload - done < pages->usable - 4 ? payload - done : pages->usable - 4;
        memcpy(all + done, pages->overflow + 4, (size_t)now);
        done += now;
        next = (int64_t)number_at(pages->overflow, 4);
    }
    return all;
}

static int64_t serial_bytes(uint64_t type) {
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    return type < 12                          ? sizes[type]
           : type > 2 * (uint64_t)PAYLOAD_MAX ? -1
                                              : (int64_t)(type - 12) / 2;
}

static bool take_integer(struct cursor *body, uint64_t type, int64_t *ret) {
    int64_t bytes = serial_bytes(type);
    if (type == 0 || type == 7 || type > 9 || body->end - body->at < bytes)
        return false;
    if (type >= 8) {
        *ret = (int64_t)type - 8;
        return true;
    }
    uint64_t value = number_at(body->at, (int)bytes);
    int unused = 64 - 8 * (int)bytes;
    *ret = (int64_t)(value << unused) >> unused;
    body->at += bytes;
    return true;
}

/* A row of `chunk`: no number (the row's own), five integers, a blob. */
static bool take_row(const uint8_t *record, int64_t size, struct lab_recording_salvaged *ret) {
    struct cursor head = {record, record + size};
    uint64_t head_size, types[CHUNK_COLUMNS];
    if (!take_varint(&head, &head_size) || head_size > (uint64_t)size)
        return false;
    struct cursor body = {record + head_size, record + size};
    head.end = body.at;
    for (int i = 0; i < CHUNK_COLUMNS; i++)
        if (!take_varint(&head, &types[i]))
            return false;
    int64_t *const numbers[] = {&ret->entity, &ret->epoch, &ret->first_ns, &ret->last_ns,
                                &ret->count};
    if (head.at != head.end || types[0] != 0)
        return false;
    for (int i = 0; i < 5; i++)
        if (!take_integer(&body, types[i + 1], numbers[i]))
            return false;
    uint64_t blob = types[CHUNK_COLUMNS - 1];
    int64_t bytes = serial_bytes(blob);
    if (blob < 12 || blob % 2 || bytes != body.end - body.at)
        return false;
    ret->bytes = body.at;
    ret->size = (size_t)bytes;
    return true;
}

/* --- pages --- */

static void look_at_cell(struct lab_recording_reading *reading, const struct pages *pages,
                         int64_t at, lab_recording_salvage_row *each, void *state) {
    struct cursor cell = {pages->page + at, pages->page + pages->usable};
    uint64_t payload, row;
    if (!take_varint(&cell, &payload) || !take_varint(&cell, &row) || payload > PAYLOAD_MAX)
        return;
    LAB_AUTO_FREE uint8_t *record = gather(pages, cell, (int64_t)payload);
    struct lab_recording_salvaged found = {.number = (int64_t)row};
    if (record && take_row(record, (int64_t)payload, &found))
        each(reading, &found, state);
}

static void look_at_page(struct lab_recording_reading *reading, const struct pages *pages,
                         int64_t number, lab_recording_salvage_row *each, void *state) {
    int64_t head = number == 1 ? 100 : 0;
    if (!read_page(pages, number, pages->page) || pages->page[head] != LEAF_OF_TABLE)
        return;
    int64_t cells = (int64_t)number_at(pages->page + head + 3, 2);
    if (head + 8 + 2 * cells > pages->usable)
        return;
    for (int64_t i = 0; i < cells; i++) {
        int64_t at = (int64_t)number_at(pages->page + head + 8 + 2 * i, 2);
        if (at >= head + 8 + 2 * cells && at < pages->usable)
            look_at_cell(reading, pages, at, each, state);
    }
}

/* Through SQLite's own descriptor: closing another one would drop its locks. */
static bool find_pages(struct lab_recording_reading *reading, struct pages *ret) {
    uint8_t head[32];
    sqlite3_int64 length = 0;
    *ret = (struct pages){0};
    if (sqlite3_file_control(reading->store->db, "main", SQLITE_FCNTL_FILE_POINTER, &ret->file) ||
        !ret->file || !ret->file->pMethods ||
        ret->file->pMethods->xRead(ret->file, head, sizeof head, 0) ||
        ret->file->pMethods->xFileSize(ret->file, &length))
        return false;
    ret->size = (int64_t)number_at(head + 16, 2);
    ret->size = ret->size == 1 ? 65536 : ret->size;
    ret->usable = ret->size - head[20];
    if (ret->size < 512 || (ret->size & (ret->size - 1)) || ret->usable < 480)
        return false;
    ret->count = length / ret->size;
    return true;
}

void lab_recording_salvage(struct lab_recording_reading *reading, lab_recording_salvage_row *each,
                           void *state) {
    struct pages pages;
    if (!find_pages(reading, &pages))
        return;
    pages.page = lab_mem_alloc((size_t)pages.size, 1);
    pages.overflow = lab_mem_alloc((size_t)pages.size, 1);
    for (int64_t i = 1; i <= pages.count; i++)
        look_at_page(reading, &pages, i, each, state);
    lab_mem_free(pages.page);
    lab_mem_free(pages.overflow);
}
