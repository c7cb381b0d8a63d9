/*
 * tensorboard.c: event files, one a run, in <study>/tensorboard/<run>/, for `tensorboard --logdir`.
 *
 * A file is a row of records: length, its checksum, an Event message, its checksum. A value is a
 * scalar of the old form (simple_value), which every version reads. The run's settings are those of
 * the hparams plugin, so that its table shows them beside the results; the verdict is a text.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "track/tracker.h"
#include "track/tracker_bytes.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers of tensorboard/compat/proto and plugins/hparams. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_CHANNELS = 3, IMAGE_BYTES = 4 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { CLASS_TENSOR = 2 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRING = 8, SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { DTYPE_STRING = 7 };
enum { HPARAMS_VERSION = 1, HPARAMS_START = 3, HPARAMS_END = 4 };
enum { START_HPARAMS = 1, START_GROUP = 4, START_TIME = 5, END_STATUS = 1, END_TIME = 2 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { MAP_KEY = 1, MAP_VALUE = 2, PB_NUMBER = 2, PB_STRING = 3, PB_BOOL = 4 };

#define PICTURE_MOST (16 << 20)
#define PNG_SIZE     16 /* where width and height are */

/* --- records --- */

static uint32_t masked_crc(const void *bytes, size_t length) {
    uint32_t crc = lab_track_crc32c(0, bytes, length);
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

/* Leaves room for what stands before an event, and begins the event. */
#define RECORD_HEAD 12
static size_t open_event(struct lab_str *out, int64_t wall_ns, int64_t step) {
    static const char head[RECORD_HEAD];
    lab_str_add_bytes(out, head, sizeof head);
    size_t opened = out->length;
    lab_proto_double(out, EVENT_WALL_TIME, (double)wall_ns / (double)LAB_NS_PER_S);
    if (step != 0)
        lab_proto_int(out, EVENT_STEP, step);
    return opened;
}

static void close_event(struct lab_str *out, size_t opened) {
    uint64_t length = out->length - opened;
    char *head = out->text + opened - RECORD_HEAD;
    for (int i = 0; i < 8; i++)
        head[i] = (char)(length >> 8 * i & 255);
    uint32_t crc = masked_crc(head, 8);
    for (int i = 0; i < 4; i++)
        head[8 + i] = (char)(crc >> 8 * i & 255);
    lab_track_add_u32(out, masked_crc(out->text + opened, length));
}

static void add_scalar(struct lab_str *out, const char *tag, double value) {
    size_t item = lab_proto_open(out, SUMMARY_VALUE);
    lab_proto_text(out, VALUE_TAG, tag);
    lab_proto_float(out, VALUE_SIMPLE, (float)value);
    lab_proto_close(out, item);
}

static void tensorboard_row(const struct lab_track_run *run, const struct lab_track_row *row,
                            struct lab_track_out *to) {
    struct lab_str *out = &to->bytes;
    (void)run;
    size_t event = open_event(out, row->wall_ns, row->whole_step);
    size_t summary = lab_proto_open(out, EVENT_SUMMARY);
    for (int i = 0; i < row->count; i++)
        add_scalar(out, row->values[i].key, row->values[i].value);
    lab_proto_close(out, summary);
    close_event(out, event);
}

/* --- settings and the end --- */

/* An entry of a map from names to google.protobuf.Value; nothing else than scalars is there. */
static void add_setting(struct lab_str *out, const char *key, const struct lab_value *value) {
    size_t entry = lab_proto_open(out, START_HPARAMS);
    lab_proto_text(out, MAP_KEY, key);
    size_t item = lab_proto_open(out, MAP_VALUE);
    if (value->type == LAB_VALUE_BOOL)
        lab_proto_int(out, PB_BOOL, value->boolean);
    else if (value->type == LAB_VALUE_STRING)
        lab_proto_text(out, PB_STRING, value->string);
    else
        lab_proto_double(out, PB_NUMBER, lab_value_as_number(value));
    lab_proto_close(out, item);
    lab_proto_close(out, entry);
}

/* A value of the hparams plugin: its content is in the metadata. */
static void add_hparams(struct lab_str *out, int64_t wall_ns, const char *tag,
                        const struct lab_str *content) {
    size_t event = open_event(out, wall_ns, 0), summary = lab_proto_open(out, EVENT_SUMMARY);
    size_t value = lab_proto_open(out, SUMMARY_VALUE);
    lab_proto_text(out, VALUE_TAG, tag);
    size_t metadata = lab_proto_open(out, VALUE_METADATA);
    size_t plugin = lab_proto_open(out, METADATA_PLUGIN);
    lab_proto_text(out, PLUGIN_NAME, "hparams");
    lab_proto_bytes(out, PLUGIN_CONTENT, content->text, content->length);
    lab_proto_close(out, plugin);
    lab_proto_close(out, metadata);
    lab_proto_close(out, value);
    lab_proto_close(out, summary);
    close_event(out, event);
}

static void add_text(struct lab_str *out, int64_t wall_ns, const char *tag, const char *text) {
    size_t event = open_event(out, wall_ns, 0), summary = lab_proto_open(out, EVENT_SUMMARY);
    size_t value = lab_proto_open(out, SUMMARY_VALUE);
    lab_proto_text(out, VALUE_TAG, tag);
    size_t tensor = lab_proto_open(out, VALUE_TENSOR);
    lab_proto_int(out, TENSOR_DTYPE, DTYPE_STRING);
    size_t shape = lab_proto_open(out, TENSOR_SHAPE), dim = lab_proto_open(out, SHAPE_DIM);
    lab_proto_int(out, DIM_SIZE, 1);
    lab_proto_close(out, dim);
    lab_proto_close(out, shape);
    lab_proto_text(out, TENSOR_STRING, text);
    lab_proto_close(out, tensor);
    size_t metadata = lab_proto_open(out, VALUE_METADATA);
    size_t plugin = lab_proto_open(out, METADATA_PLUGIN);
    lab_proto_text(out, PLUGIN_NAME, "text");
    lab_proto_close(out, plugin);
    lab_proto_int(out, METADATA_CLASS, CLASS_TENSOR);
    lab_proto_close(out, metadata);
    lab_proto_close(out, value);
    lab_proto_close(out, summary);
    close_event(out, event);
}

/* A PNG begins with eight bytes, and a header with its width and height, the highest byte first. */
static void add_picture(struct lab_str *out, int64_t wall_ns, const char *path) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, tag);
    const char *name = strrchr(path, '/');
    int64_t size[2] = {0, 0};
    char *bytes;
    size_t length;
    if (!lab_str_ends(path, ".png") ||
        lab_file_read(path, PICTURE_MOST, &arena, &bytes, &length, NULL) < 0 ||
        length < PNG_SIZE + 8 || memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) != 0)
        return;
    for (int i = 0; i < 8; i++)
        size[i / 4] = size[i / 4] << 8 | (unsigned char)bytes[PNG_SIZE + i];
    size_t event = open_event(out, wall_ns, 0), summary = lab_proto_open(out, EVENT_SUMMARY);
    size_t value = lab_proto_open(out, SUMMARY_VALUE);
    name = name ? name + 1 : path;
    lab_str_printf(&tag, "report/%.*s", (int)(strlen(name) - strlen(".png")), name);
    lab_proto_text(out, VALUE_TAG, tag.text);
    size_t image = lab_proto_open(out, VALUE_IMAGE);
    lab_proto_int(out, IMAGE_HEIGHT, size[1]);
    lab_proto_int(out, IMAGE_WIDTH, size[0]);
    lab_proto_int(out, IMAGE_CHANNELS, 3);
    lab_proto_bytes(out, IMAGE_BYTES, bytes, length);
    lab_proto_close(out, image);
    lab_proto_close(out, value);
    lab_proto_close(out, summary);
    close_event(out, event);
}

/* --- the tracker --- */

static const char *tensorboard_place(const struct lab_track_run *run, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s/tensorboard/%s/events.out.tfevents.%lld.%s.%s", run->folder,
                            lab_track_safe_name(run->name, false, arena),
                            (long long)(run->study_wall_ns / LAB_NS_PER_S),
                            lab_track_safe_name(*run->host ? run->host : "host", false, arena),
                            run->file);
}

/* A trial of the table is a point: it has the mean of the repeats, so their numbers aren't part. */
static bool is_of_trial(const char *key, const struct lab_value *value) {
    return value->type != LAB_VALUE_NULL && !lab_str_equal(key, "repeat");
}

static void tensorboard_begin(const struct lab_track_run *run, struct lab_track_out *out) {
    size_t event = open_event(&out->bytes, run->start_wall_ns, 0);
    lab_proto_text(&out->bytes, EVENT_FILE_VERSION, "brain.Event:2");
    close_event(&out->bytes, event);
    if (run->whole)
        return;
    LAB_AUTO(str, content);
    lab_proto_int(&content, HPARAMS_VERSION, 0);
    size_t start = lab_proto_open(&content, HPARAMS_START);
    for (int i = 0; i < run->config->count; i++)
        if (is_of_trial(run->config->keys[i], run->config->items[i]))
            add_setting(&content, run->config->keys[i], run->config->items[i]);
    lab_proto_text(&content, START_GROUP, run->point);
    lab_proto_double(&content, START_TIME, (double)run->start_wall_ns / (double)LAB_NS_PER_S);
    lab_proto_close(&content, start);
    add_hparams(&out->bytes, run->start_wall_ns, "_hparams_/session_start_info", &content);
}

static void add_status(const struct lab_track_end *end, struct lab_str *out) {
    LAB_AUTO(str, content);
    lab_proto_int(&content, HPARAMS_VERSION, 0);
    size_t info = lab_proto_open(&content, HPARAMS_END);
    lab_proto_int(&content, END_STATUS, end->exit_code == 0 ? STATUS_SUCCESS : STATUS_FAILURE);
    lab_proto_double(&content, END_TIME, (double)end->wall_ns / (double)LAB_NS_PER_S);
    lab_proto_close(&content, info);
    add_hparams(out, end->wall_ns, "_hparams_/session_end_info", &content);
}

static void tensorboard_end(const struct lab_track_run *run, const struct lab_track_end *end,
                            struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    struct lab_track_row row;
    lab_track_end_row(run, end, &arena, &row);
    tensorboard_row(run, &row, out);
    if (*end->text)
        add_text(&out->bytes, end->wall_ns, "verdict", end->text);
    for (int i = 0; end->files && end->files[i]; i++)
        add_picture(&out->bytes, end->wall_ns, end->files[i]);
    if (!run->whole)
        add_status(end, &out->bytes);
}

const struct lab_tracker lab_tracker_tensorboard = {
    .name = "tensorboard",
    .summary = "event files in the study's tensorboard/",
    .view = "tensorboard --logdir %s/tensorboard",
    .keeps = true,
    .place = tensorboard_place,
    .begin = tensorboard_begin,
    .row = tensorboard_row,
    .end = tensorboard_end,
};
