/*
 * yaml_write.c: a value tree as block-style YAML, through libyaml's emitter, which knows what plain
 * text may look like. Text that reads as something else gets quotes.
 */
#include "base/yaml/yaml.h"

#include "base/mem.h"
#include "base/yaml/yaml_scalar.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <yaml.h>

static int append(void *state, unsigned char *bytes, size_t length) {
    lab_str_add_bytes(state, (const char *)bytes, length);
    return 1;
}

/* libyaml says no where it has no memory. Events in a wrong order and text that isn't UTF-8, which
 * its emitter refuses, too, are bugs here. */
static void need(int done) {
    if (!done)
        lab_mem_exhausted(1, sizeof(yaml_event_t));
}

/* Emits the event that was made; one that wasn't holds nothing that could be emitted. */
static void emit(yaml_emitter_t *emitter, yaml_event_t *event, int made) {
    need(made);
    need(yaml_emitter_emit(emitter, event) || emitter->error != YAML_MEMORY_ERROR);
    assert(emitter->error == YAML_NO_ERROR);
}

/* A copy with every stray byte as U+FFFD. */
static void make_valid(const char *text, struct lab_str *out) {
    size_t length = strlen(text);
    while (length > 0) {
        size_t valid = lab_str_utf8_prefix(text, length);
        lab_str_add_bytes(out, text, valid);
        if (valid < length) {
            lab_str_add(out, "\xef\xbf\xbd");
            valid++;
        }
        text += valid;
        length -= valid;
    }
}

/* Line breaks and control characters: the emitter would fold them, and only "…" is safe. */
static bool needs_escapes(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || *c == 0xc2 || *c == 0xe2 || *c == 0xef)
            return true;
    return false;
}

static void emit_text(yaml_emitter_t *emitter, const char *text) {
    LAB_AUTO(str, valid);
    make_valid(text, &valid);
    bool plain = lab_yaml_is_text(valid.text) && strcmp(valid.text, "<<") != 0;
    yaml_scalar_style_t style = needs_escapes(valid.text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                : plain                   ? YAML_PLAIN_SCALAR_STYLE
                                                          : YAML_SINGLE_QUOTED_SCALAR_STYLE;
    yaml_event_t event;
    emit(emitter, &event,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)valid.text,
                                      (int)valid.length, plain, 1, style));
}

static void emit_plain(yaml_emitter_t *emitter, const struct lab_value *value) {
    LAB_AUTO(str, text);
    yaml_event_t event;
    if (!lab_value_write_plain(value, &text))
        lab_str_add(&text, isnan(value->number) ? ".nan" : value->number > 0 ? ".inf" : "-.inf");
    emit(emitter, &event,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text.text,
                                      (int)text.length, 1, 1, YAML_PLAIN_SCALAR_STYLE));
}

static void emit_value(yaml_emitter_t *emitter, const struct lab_value *value) {
    yaml_event_t event;
    bool is_map = value->type == LAB_VALUE_MAP;
    if (value->type == LAB_VALUE_STRING) {
        emit_text(emitter, value->string);
        return;
    }
    if (value->type != LAB_VALUE_LIST && !is_map) {
        emit_plain(emitter, value);
        return;
    }
    emit(emitter, &event,
         is_map
             ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)
             : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                    YAML_BLOCK_SEQUENCE_STYLE));
    for (int i = 0; i < value->count; i++) {
        if (is_map)
            emit_text(emitter, value->keys[i]);
        emit_value(emitter, value->items[i]);
    }
    emit(emitter, &event,
         is_map ? yaml_mapping_end_event_initialize(&event)
                : yaml_sequence_end_event_initialize(&event));
}

void lab_yaml_write(const struct lab_value *value, struct lab_str *out) {
    yaml_emitter_t emitter;
    yaml_event_t event;
    need(yaml_emitter_initialize(&emitter));
    yaml_emitter_set_output(&emitter, append, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    emit(&emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(&emitter, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    emit_value(&emitter, value);
    emit(&emitter, &event, yaml_document_end_event_initialize(&event, 1));
    emit(&emitter, &event, yaml_stream_end_event_initialize(&event));
    yaml_emitter_delete(&emitter);
}
