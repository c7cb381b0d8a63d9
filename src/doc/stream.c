/* stream.c: rows one by one through a format, JSON member by member, and the way out that
 * everything large takes. */
#include "doc/stream.h"

#include "base/json.h"
#include "doc/doc.h"

#include <assert.h>

#define PIECE_BYTES 65536

void lab_doc_sink_init(struct lab_doc_sink *sink) {
    *sink = (struct lab_doc_sink){.write = NULL};
    lab_str_init(&sink->text);
}

void lab_doc_sink_release(struct lab_doc_sink *sink) {
    lab_str_release(&sink->text);
}

static int write_to_console(void *state, const char *bytes, size_t length) {
    const struct lab_console *console = state;
    lab_console_write(console, bytes, length);
    return ferror(console->out) ? -1 : 0;
}

void lab_doc_sink_to_console(struct lab_doc_sink *sink, const struct lab_console *console) {
    sink->write = write_to_console;
    sink->state = (void *)console;
}

int lab_doc_sink_flush(struct lab_doc_sink *sink) {
    int result = 0;
    if (sink->text.length)
        result = sink->write(sink->state, sink->text.text, sink->text.length);
    lab_str_clear(&sink->text);
    return result ? -1 : 0;
}

int lab_doc_sink_pass(struct lab_doc_sink *sink) {
    return sink->text.length < PIECE_BYTES ? 0 : lab_doc_sink_flush(sink);
}

void lab_doc_stream_begin(struct lab_doc_stream *stream, const struct lab_doc_format *format,
                          const struct lab_doc_column *columns, int count, struct lab_str *out) {
    assert(format && format->cell && count > 0);
    *stream = (struct lab_doc_stream){
        .format = format, .columns = columns, .column_count = count, .out = out};
    if (format->head)
        format->head(columns, count, out);
}

void lab_doc_stream_add(struct lab_doc_stream *stream, struct lab_doc_cell cell) {
    const struct lab_doc_column *column = &stream->columns[stream->next];
    if (column->key) {
        stream->format->cell(&cell, column, !stream->begun, stream->out);
        stream->begun = true;
    }
    if (++stream->next < stream->column_count)
        return;
    lab_str_add(stream->out, stream->format->row_end);
    stream->next = 0;
    stream->begun = false;
}

/* --- JSON --- */

static void new_line(const struct lab_doc_tree *tree) {
    lab_str_add(tree->out, "\n");
    lab_str_add_repeat(tree->out, "  ", tree->indent);
}

static void begin_member(struct lab_doc_tree *tree, const char *key) {
    if (tree->depth > 0) {
        struct lab_doc_level *level = &tree->levels[tree->depth - 1];
        bool in_line = level->layout == LAB_DOC_INLINE;
        if (level->begun)
            lab_str_add(tree->out, in_line ? ", " : ",");
        if (!in_line)
            new_line(tree);
        level->begun = true;
    }
    if (key) {
        lab_str_add(tree->out, "\"");
        lab_str_add(tree->out, key);
        lab_str_add(tree->out, "\": ");
    }
}

void lab_doc_tree_begin(struct lab_doc_tree *tree, const char *key, char mark,
                        enum lab_doc_layout layout) {
    assert(tree->depth < LAB_DOC_TREE_DEPTH && (mark == '{' || mark == '['));
    begin_member(tree, key);
    lab_str_add_bytes(tree->out, &mark, 1);
    tree->levels[tree->depth++] = (struct lab_doc_level){mark == '{' ? '}' : ']', layout, false};
    tree->indent += layout != LAB_DOC_INLINE;
}

void lab_doc_tree_end(struct lab_doc_tree *tree) {
    assert(tree->depth > 0);
    tree->depth--;
    tree->indent -= tree->levels[tree->depth].layout != LAB_DOC_INLINE;
    const struct lab_doc_level *level = &tree->levels[tree->depth];
    if (level->layout == LAB_DOC_SPREAD || (level->layout == LAB_DOC_BROKEN && level->begun))
        new_line(tree);
    lab_str_add_bytes(tree->out, &level->end, 1);
    if (tree->depth == 0)
        lab_str_add(tree->out, "\n");
}

void lab_doc_tree_value(struct lab_doc_tree *tree, const char *key, const struct lab_value *value) {
    begin_member(tree, key);
    lab_json_write(value, 0, tree->out);
}

void lab_doc_tree_cell(struct lab_doc_tree *tree, const char *key, struct lab_doc_cell cell) {
    begin_member(tree, key);
    lab_doc_add_json(&cell, LAB_UNIT_TEXT, tree->out);
}
