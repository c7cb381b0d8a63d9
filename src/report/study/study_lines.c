/* study_lines.c: paragraphs of a study's report in a terminal. */
#include "report/study/study_internal.h"

#define LABEL_COLUMNS 12
#define INDENT        2
#define KINDS_SHOWN   6 /* of failures */

/* ASCII comes before wrapping: "…" has one column, "..." three. */
static void add_wrapped(const char *text, int start, int indent, struct lab_style style,
                        struct lab_str *out) {
    struct lab_str plain;
    lab_str_init(&plain);
    if (style.unicode)
        lab_str_add(&plain, text);
    else
        lab_text_to_ascii(text, &plain);
    lab_text_wrap(plain.text, start, indent, style.columns, out);
    lab_str_release(&plain);
}

void study_write_heading(const char *text, struct lab_style style, struct lab_str *out) {
    struct lab_str wrapped;
    lab_str_init(&wrapped);
    add_wrapped(text, 0, INDENT, style, &wrapped);
    lab_text_heading(wrapped.text, style, out);
    lab_str_release(&wrapped);
}

void study_write_line(const char *label, const char *text, struct lab_style style,
                      struct lab_str *out) {
    lab_str_printf(out, style.colour ? "  \033[1m%s\033[0m" : "  %s", label);
    lab_str_add_repeat(out, " ", LABEL_COLUMNS - INDENT - lab_str_columns(label));
    add_wrapped(text, LABEL_COLUMNS, LABEL_COLUMNS, style, out);
    lab_str_add(out, "\n");
}

void study_write_whole(const char *label, const char *text, struct lab_style style,
                       struct lab_str *out) {
    style.columns = INT32_MAX;
    study_write_line(label, text, style, out);
}

void study_write_sentence(const char *word, const char *colour, const char *text,
                          struct lab_style style, struct lab_str *out) {
    lab_str_printf(out, "  %s%s:%s ", style.colour ? colour : "", word,
                   style.colour ? "\033[0m" : "");
    add_wrapped(text, INDENT + lab_str_columns(word) + 2, 2 * INDENT, style, out);
    lab_str_add(out, "\n");
}

void study_write_text(const char *text, struct lab_style style, struct lab_str *out) {
    lab_str_add_repeat(out, " ", INDENT);
    add_wrapped(text, INDENT, INDENT, style, out);
    lab_str_add(out, "\n");
}

void study_write_failures(const struct study_digest *digest, struct lab_style style,
                          struct lab_str *out) {
    const struct study_notes *failures = &digest->failures;
    int shown = failures->count < KINDS_SHOWN ? failures->count : KINDS_SHOWN;
    struct lab_str text, hint, next;
    lab_str_init(&text);
    lab_str_init(&hint);
    lab_str_init(&next);
    for (int i = 0; i < shown; i++) {
        const struct study_note *note = &failures->items[i];
        lab_str_clear(&text);
        study_add_who(note, digest->study->run_count, &text);
        lab_str_printf(&text, ": %s", note->text);
        study_write_sentence("Failed", STUDY_RED, text.text, style, out);
        lab_str_clear(&hint);
        lab_str_clear(&next);
        if (i + 1 < shown)
            study_add_hint(note + 1, &next);
        /* where the next has it too, it follows once, below the last of them */
        if (!study_add_hint(note, &hint) || lab_str_equal(hint.text, next.text))
            continue;
        lab_str_add_repeat(out, " ", 2 * INDENT);
        lab_str_clear(&text);
        lab_str_printf(&text, "→ %s", hint.text);
        add_wrapped(text.text, 2 * INDENT, 3 * INDENT, style, out);
        lab_str_add(out, "\n");
    }
    if (failures->count > KINDS_SHOWN) {
        int runs = 0;
        for (int i = KINDS_SHOWN; i < failures->count; i++)
            runs += failures->items[i].run_count;
        lab_str_clear(&text);
        lab_str_printf(&text, "%d more run%s, for other reasons: report/report.md has them all",
                       runs, study_plural(runs));
        study_write_sentence("Failed", STUDY_RED, text.text, style, out);
    }
    lab_str_release(&next);
    lab_str_release(&hint);
    lab_str_release(&text);
}
