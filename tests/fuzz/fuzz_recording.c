/*
 * fuzz_recording.c: any bytes taken for packed ticks or processes either fail with a message or
 * unpack; ticks that did pack and unpack to the same. The bytes get their sum here, which a fuzzer
 * could never guess; without it they have to be refused.
 * covers: src/store/recording/recording_pack.c src/store/recording/recording_unpack.c
 * covers: src/store/recording/recording_process
 */
#include "store/recording/recording_pack.h"
#include "store/recording/recording_process.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All of an open chunk, as it would be collected; false if some of it doesn't read. */
static bool unpack(struct lab_chunk_reader *reader, struct lab_chunk *ret, struct lab_err *err) {
    size_t ticks = (size_t)reader->count, columns = (size_t)reader->column_count;
    size_t words = LAB_CHUNK_WORDS(ticks);
    uint8_t valid[LAB_CHUNK_TICKS_MAX];
    *ret = (struct lab_chunk){
        .column_count = reader->column_count, .count = reader->count, .capacity = reader->count};
    ret->times_ns = lab_mem_alloc(ticks, sizeof *ret->times_ns);
    ret->values = lab_mem_alloc(columns * ticks + 1, sizeof *ret->values);
    ret->valid = lab_mem_alloc(columns * words + 1, sizeof *ret->valid);
    if (lab_chunk_reader_times(reader, ret->times_ns, err) < 0)
        return false;
    for (size_t c = 0; c < columns; c++) {
        if (lab_chunk_reader_column(reader, (int)c, ret->values + c * ticks, valid, err) < 0)
            return false;
        for (size_t i = 0; i < ticks; i++)
            ret->valid[c * words + i / 64] |= (uint64_t)valid[i] << (i % 64);
    }
    return true;
}

static void release(struct lab_chunk *chunk) {
    lab_mem_free(chunk->times_ns);
    lab_mem_free(chunk->values);
    lab_mem_free(chunk->valid);
}

static void check_round_trip(const struct lab_chunk *chunk, struct lab_chunk_reader *reader) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_chunk again;
    LAB_AUTO(str, packed);
    lab_chunk_pack(chunk, &packed);
    size_t ticks = (size_t)chunk->count, columns = (size_t)chunk->column_count;
    if (lab_chunk_reader_open(reader, packed.text, packed.length, &err) < 0 ||
        reader->count != chunk->count || reader->column_count != chunk->column_count ||
        !unpack(reader, &again, &err) ||
        memcmp(again.times_ns, chunk->times_ns, ticks * sizeof(int64_t)) != 0 ||
        memcmp(again.values, chunk->values, columns * ticks * sizeof(int64_t)) != 0 ||
        memcmp(again.valid, chunk->valid, columns * LAB_CHUNK_WORDS(ticks) * sizeof(uint64_t)) != 0)
        abort();
    release(&again);
}

static void check_ticks(const void *bytes, size_t length) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_chunk_reader *reader = lab_mem_alloc(1, sizeof *reader);
    struct lab_chunk chunk = {0};
    lab_chunk_reader_init(reader);
    if (lab_chunk_reader_open(reader, bytes, length, &err) == 0 && unpack(reader, &chunk, &err))
        check_round_trip(&chunk, reader);
    else if (err.code != LAB_ERR_SYSTEM || !err.text[0])
        abort();
    release(&chunk);
    lab_chunk_reader_release(reader);
    lab_mem_free(reader);
}

static bool identify(void *state, int64_t number, struct lab_process_sample *ret) {
    (void)state;
    ret->name = "known";
    return number % 2;
}

static int track(void *state, int64_t row) {
    (void)state;
    return row == 1 ? 0 : -1;
}

static void check_processes(const void *bytes, size_t length) {
    const struct lab_process_unpacking unpacking = {identify, track, NULL};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_process_list *lists;
    int count;
    LAB_AUTO(arena, arena);
    if (lab_process_unpack(bytes, length, 10000, &unpacking, &arena, &lists, &count, &err) == 0) {
        for (int i = 0; i < count; i++)
            for (int k = 0; k < lists[i].count; k++)
                if (!lists[i].items[k].name || lists[i].items[k].gpu_count < 0)
                    abort();
    } else if (err.code != LAB_ERR_SYSTEM || !err.text[0]) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(str, bytes);
    lab_str_add_bytes(&bytes, (const char *)data, size);
    lab_packed_sum_put(&bytes, 0);
    check_ticks(data, size);
    check_processes(data, size);
    check_ticks(bytes.text, bytes.length);
    check_processes(bytes.text, bytes.length);
    return 0;
}
