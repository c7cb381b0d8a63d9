/*
 * command/suggest.c: a pattern for a program of which no value is read: out of the lines that hold
 * a named number, the form that most of them have, "objective = 3.4 at 12", becomes "objective
 * {objective} at {step}". It is offered only once it has read the line that it was made from.
 */
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define FORMS_MAX    8
#define LINES_FIRST  2000 /* all of these are looked at, then one in LINES_EACH */
#define LINES_EACH   64
#define MADE_MAX     200 /* patterns that are made in all */
#define LINE_BYTES   160 /* of a longer one only these are shown, and no pattern is made */
#define NAMES_MOST   4
#define MARKS_MOST   3 /* between a name and its number: "->" */
#define WORTH_SHOWN  3 /* "loss: 3" or "x 1.5", not "5 files" */
#define WORTH_MARKED 3 /* ':' or '=' before it */
#define WORTH_BROKEN 3 /* a fraction */
#define WORTH_STEP   2 /* what it is a value of, too */

struct form {
    const char *line, *text;
    const struct command_pattern *pattern;
    int worth, lines; /* that it reads */
};

struct command_suggestions {
    struct lab_arena *arena;
    struct form forms[FORMS_MAX];
    int count, made;
    int64_t seen;
    char shown[LINE_BYTES +
               1]; /* where there is no pattern: the last line, one with a digit first */
    bool has_digit;
    bool wide; /* every other byte is 0: UTF-16 */
};

struct command_suggestions *command_suggestions_make(struct lab_arena *arena) {
    struct command_suggestions *all = lab_arena_alloc(arena, 1, sizeof *all);
    all->arena = arena;
    return all;
}

/* --- a pattern out of a line --- */

struct making {
    struct command_line line;
    struct lab_str pattern;
    char names[NAMES_MOST][32];
    double values[NAMES_MOST];
    int count, worth;
    bool any; /* numbers without a name of their own, too */
};

/* A number by itself: not of a time, a version, or with letters attached that are no unit. */
static bool is_plain(const struct command_line *line, int t, bool any) {
    if (!command_line_is(line, t, COMMAND_NUMBER))
        return false;
    const struct command_token *next = t + 1 < line->count ? &line->tokens[t + 1] : NULL;
    char before = line->tokens[t].attached ? command_line_mark(line, t - 1) : '=';
    if (before && !strchr(":=([|~>", before))
        return false;
    char after = next && next->attached ? command_line_mark(line, t + 1) : '\0';
    bool timed = (after == ':' || after == '-') && command_line_is(line, t + 2, COMMAND_NUMBER) &&
                 next[1].attached;
    return !timed && !(next && next->attached && next->kind == COMMAND_WORD && !next->unit) &&
           (any || !command_line_is(line, t - 1, COMMAND_NUMBER));
}

/* "iteration no. 4", "sample number 4", "objective is now 4" */
static bool is_filler(const struct command_line *line, int t) {
    static const char *const words[] = {"no", "nr", "num", "number", "now"};
    if (!command_line_is(line, t, COMMAND_WORD))
        return false;
    if ((line->tokens[t].meaning & (COMMAND_IS | COMMAND_PROSE)) == COMMAND_IS)
        return true;
    const struct command_token *token = &line->tokens[t];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == token->end - token->start &&
            strncasecmp(words[i], line->text + token->start, strlen(words[i])) == 0)
            return true;
    return false;
}

/* The token of the number's name: the word before it, or before a ':', '=', "->" or "no."; -1 = it
 * has none. */
static int name_of(const struct command_line *line, int t, bool *ret_marked) {
    int word = t - 1;
    *ret_marked = false;
    for (; word >= t - MARKS_MOST && command_line_is(line, word, COMMAND_MARK); word--) {
        if (!strchr(":=->~.#", command_line_mark(line, word)))
            return -1;
        *ret_marked |= command_line_mark(line, word) != '.' && command_line_mark(line, word) != '#';
    }
    while (is_filler(line, word) && command_line_is(line, word - 1, COMMAND_WORD))
        word--;
    bool unit = command_line_is(line, word - 1, COMMAND_NUMBER) && line->tokens[word].attached;
    return command_line_is(line, word, COMMAND_WORD) && !unit ? word : -1;
}

/* "objective"; of "at 12" it is "step". Empty: it is no name. */
static void spell(const struct command_line *line, int word, char name[32]) {
    const struct command_token *token = &line->tokens[word];
    size_t length = 0;
    if (token->meaning & COMMAND_PROSE) {
        bool step = strncasecmp(line->text + token->start, "at", 2) == 0 ||
                    strncasecmp(line->text + token->start, "after", 5) == 0;
        memcpy(name, step ? "step" : "", step ? 5 : 1);
        return;
    }
    for (size_t i = token->start; i < token->end && length < 31; i++) {
        char c = (char)tolower((unsigned char)line->text[i]);
        if (!isalnum((unsigned char)c) && !strchr("_./-", c))
            break;
        name[length++] = c;
    }
    name[length] = '\0';
}

/* "score at 6 -> 18.5": the nearest word before it that may be a name; -1 = there is none. */
static int far_name_of(const struct command_line *line, int t) {
    for (t--; t >= 0; t--)
        if (command_line_is(line, t, COMMAND_WORD) && !line->tokens[t].attached &&
            !(line->tokens[t].meaning & (COMMAND_PROSE | COMMAND_IS)))
            return t;
    return -1;
}

static bool has_name(const struct making *making, const char *name) {
    for (int i = 0; i < making->count; i++)
        if (strcmp(making->names[i], name) == 0)
            return true;
    return false;
}

/* What lies between two tokens or in one, a blank for all that a pattern takes for one. */
static void add_text(struct making *making, size_t start, size_t end) {
    for (size_t i = start; i < end; i++) {
        char c = making->line.text[i];
        bool blank = isspace((unsigned char)c) || c == ':' || c == '=' || c == ',';
        const struct lab_str *pattern = &making->pattern;
        bool after_blank = pattern->length && pattern->text[pattern->length - 1] == ' ';
        if (blank && !after_blank)
            lab_str_add(&making->pattern, " ");
        else if (!blank)
            lab_str_add_bytes(&making->pattern, &c, 1);
    }
}

/* "step" and "value" of "[300] 2.3 0.13", "px" of "frame 200 => 2.03 px" */
static void name_other(const struct making *making, int t, char name[32]) {
    const struct command_line *line = &making->line;
    const struct command_token *token = &line->tokens[t], *next = token + 1;
    bool whole = !memchr(line->text + token->start, '.', token->end - token->start);
    if (making->count > 0 && command_line_is(line, t + 1, COMMAND_WORD) &&
        !(next->meaning & (COMMAND_PROSE | COMMAND_IS)) && next->end - next->start <= 8)
        spell(line, t + 1, name);
    if (!*name || has_name(making, name))
        snprintf(name, 32, making->count == 0 && whole ? "step" : "value%d", making->count);
}

/* Where the number before `t` ends; 0 = there is none. */
static size_t after_number(const struct command_line *line, int t) {
    while (t > 0 && !command_line_is(line, t - 1, COMMAND_NUMBER))
        t--;
    return t > 0 ? line->tokens[t - 1].end : 0;
}

/* "{objective}", or '*' for a number that has no name of its own. */
static void add_number(struct making *making, int t) {
    const struct command_line *line = &making->line;
    const struct command_token *token = &line->tokens[t];
    char name[32] = "";
    bool marked = false;
    bool plain = is_plain(line, t, making->any);
    int word = plain ? name_of(line, t, &marked) : -1;
    if (word < 0 && making->count > 0 && plain && command_line_mark(line, t - 1) == '>')
        word = far_name_of(line, t);
    if (word >= 0)
        spell(line, word, name);
    if (making->any && plain && (!*name || has_name(making, name))) {
        word = -1;
        name_other(making, t, name);
    }
    if (!*name || has_name(making, name) || making->count == NAMES_MOST) {
        if (making->count > 0)
            lab_str_add(&making->pattern, "*");
        return;
    }
    bool broken = memchr(line->text + token->start, '.', token->end - token->start);
    if (word < 0)
        making->worth += broken ? WORTH_BROKEN : 0;
    else if (!(line->tokens[word].meaning & COMMAND_PROSE))
        making->worth += 1 + (marked ? WORTH_MARKED : 0) + (broken ? WORTH_BROKEN : 0);
    else /* "after 49 rounds" */
        making->worth += WORTH_STEP;
    if (making->count == 0) /* it begins with the first name */
        add_text(making, word < 0 ? after_number(line, t) : line->tokens[word].start, token->start);
    lab_str_printf(&making->pattern, "{%s}", name);
    memcpy(making->names[making->count], name, sizeof name);
    making->values[making->count++] = token->value;
}

/* Returns its length: up to the last name. */
static size_t make_pattern(struct making *making) {
    const struct command_line *line = &making->line;
    size_t last = 0; /* of the pattern: where its last name ends */
    for (int t = 0; t < line->count; t++) {
        int count = making->count;
        if (count > 0)
            add_text(making, line->tokens[t - 1].end, line->tokens[t].start);
        if (line->tokens[t].kind == COMMAND_NUMBER)
            add_number(making, t);
        else if (count > 0)
            add_text(making, line->tokens[t].start, line->tokens[t].end);
        last = making->count > count ? making->pattern.length : last;
    }
    return last;
}

static bool reads(const struct command_pattern *pattern, const struct making *making) {
    double values[COMMAND_NUMBERS_MAX];
    if (command_pattern_count(pattern) != making->count ||
        !command_pattern_match(pattern, making->line.text, making->line.length, values))
        return false;
    for (int i = 0; i < making->count; i++)
        if (values[i] != making->values[i])
            return false;
    return true;
}

/* --- forms --- */

static bool is_better(const struct form *a, const struct form *b) {
    return a->lines != b->lines ? a->lines > b->lines : a->worth > b->worth;
}

static bool add_form(struct command_suggestions *all, const char *text, size_t length, bool any) {
    struct making making; /* large: only what is read before it is written is set */
    struct command_pattern *pattern;
    LAB_AUTO(str, made);
    making.count = making.worth = 0;
    making.any = any;
    lab_str_init(&making.pattern);
    command_line_cut(&making.line, text, length);
    size_t end = make_pattern(&making);
    lab_str_add_bytes(&made, making.pattern.text, end);
    lab_str_release(&making.pattern);
    if (making.worth < WORTH_SHOWN)
        return false;
    all->made++;
    if (command_pattern_read(made.text, all->arena, &pattern, NULL) < 0 || !reads(pattern, &making))
        return false;
    int place = all->count < FORMS_MAX ? all->count++ : FORMS_MAX - 1;
    all->forms[place] =
        (struct form){lab_arena_strndup(all->arena, text, length),
                      lab_arena_strdup(all->arena, made.text), pattern, any ? 0 : making.worth, 1};
    return true;
}

/* Whether one of the forms reads it; the best comes first. */
static bool count_line(struct command_suggestions *all, const char *text, size_t length) {
    double values[COMMAND_NUMBERS_MAX];
    for (int i = 0; i < all->count; i++)
        if (command_pattern_match(all->forms[i].pattern, text, length, values)) {
            all->forms[i].lines++;
            for (; i > 0 && is_better(&all->forms[i], &all->forms[i - 1]); i--) {
                struct form form = all->forms[i];
                all->forms[i] = all->forms[i - 1];
                all->forms[i - 1] = form;
            }
            return true;
        }
    return false;
}

static bool has_digit(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (isdigit((unsigned char)text[i]))
            return true;
    return false;
}

static void show(struct command_suggestions *all, const char *text, size_t length) {
    while (length && isspace((unsigned char)*text))
        text++, length--;
    length = length < LINE_BYTES ? length : LINE_BYTES;
    bool digit = has_digit(text, length);
    if (length == 0 || (all->has_digit && !digit))
        return;
    all->has_digit = digit;
    for (size_t i = 0; i < length; i++)
        all->shown[i] = (char)(iscntrl((unsigned char)text[i]) ? ' ' : text[i]);
    all->shown[length] = '\0';
    all->shown[lab_str_utf8_prefix(all->shown, length)] = '\0';
}

/* The bytes before what a pattern in quotes has another meaning for; 0 = they hold no number. */
static size_t quotable(const char *text, size_t length) {
    size_t end = 0;
    while (end < length && (text[end] == '\t' || !iscntrl((unsigned char)text[end])) &&
           !strchr("{}*'\"\\", text[end]))
        end++;
    return has_digit(text, end) && lab_str_utf8_prefix(text, end) == end ? end : 0;
}

/* A line of UTF-16 begins or ends with half a letter. */
static bool is_wide(const char *text, size_t length) {
    size_t zeros = 0;
    for (size_t i = 0; i < length; i++)
        zeros += !text[i];
    return length >= 8 && zeros > length / 3;
}

void command_suggestions_add(struct command_suggestions *all, const char *line, size_t length) {
    int rank;
    if (all->seen++ >= LINES_FIRST && all->seen % LINES_EACH != 0)
        return;
    all->wide |= is_wide(line, length);
    size_t label = command_rank_label(line, length, &rank);
    line += label;
    length -= label;
    show(all, line, length);
    if (length == 0 || length > LINE_BYTES || (length = quotable(line, length)) == 0)
        return;
    if (!count_line(all, line, length) && all->made < MADE_MAX &&
        !add_form(all, line, length, false))
        add_form(all, line, length, true);
}

const char *command_suggestions_text(const struct command_suggestions *all,
                                     struct lab_arena *arena) {
    const struct form *best = all->count ? &all->forms[0] : NULL;
    for (int i = 1; i < all->count; i++)
        best = is_better(&all->forms[i], best) ? &all->forms[i] : best;
    if (all->wide)
        return LAB_NO_METRIC ": its output is UTF-16, and only UTF-8 is read; for Python set "
                             "env.PYTHONIOENCODING=utf-8";
    if (best)
        return lab_arena_printf(arena, LAB_NO_METRIC ": the pattern '%s' would read its line '%s'",
                                best->text, best->line);
    if (*all->shown)
        return lab_arena_printf(
            arena,
            LAB_NO_METRIC
            " from its output, such as '%s'; lines such as 'step 10 loss 2.5' are read; all of "
            "it: logs/<run>.stdout, logs/<run>.stderr",
            all->shown);
    return LAB_NO_METRIC ": it printed nothing on stdout and stderr";
}
