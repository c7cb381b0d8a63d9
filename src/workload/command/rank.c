/*
 * command/rank.c: the label that a launcher, or the program itself, puts before a line to say which
 * rank printed it:
 *
 *   [rank1]: …   [default0]:…          torchrun (--tee, --redirects), PyTorch's own messages
 *   [Rank 0] …   [rank: 1] …           accelerate, Lightning; DeepSpeed, behind other brackets
 *   rank 1 | …   Rank 0: …   Rank-0: … programs
 *   (1/4) …                            icefall, behind a log's date and level
 *   worker 1: …  GPU 0 | …             those, where the line counts steps behind it
 *   [1,0]<stdout>:…                    mpirun --tag-output; 5.0: [prterun-host-123@1,0]<stdout>:
 *   0: …                               srun --label
 *   [0] …   [0]:…                      MPICH's -prepend-rank; torchrun with a template
 *   worker-1: …                        pdsh (DeepSpeed): a host, which has no rank of its own
 *   (RayTrainWorker pid=12, ip=…) …    Ray: nor has a process
 *   Nov 18 04:12:33 host prog[12]: …   syslog, journalctl: nor this; an ISO time is the same
 *
 * "0: " and "[0]" could be an epoch or a step as well. They are labels only where the rest of the
 * line can do without them: it is an object, or begins with a word that counts steps or epochs and
 * its number. A host is taken off before an object or another label, and has a digit in its name;
 * other lines read the same with it.
 */
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define DATE_MARKS ":.,-/TZ+"

struct cursor {
    const char *at, *end;
};

static char here(const struct cursor *cursor) {
    return cursor->at < cursor->end ? *cursor->at : '\0';
}

static bool take(struct cursor *cursor, const char *of) {
    if (!here(cursor) || !strchr(of, here(cursor)))
        return false;
    cursor->at++;
    return true;
}

static void skip_blanks(struct cursor *cursor) {
    while (take(cursor, " \t"))
        continue;
}

static bool take_text(struct cursor *cursor, const char *text) {
    if ((here(cursor) | 0x20) != (*text | 0x20)) /* mostly */
        return false;
    size_t length = strlen(text);
    if ((size_t)(cursor->end - cursor->at) < length || strncasecmp(cursor->at, text, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool take_rank(struct cursor *cursor, int *ret_rank) {
    int rank = 0, digits = 0;
    for (; isdigit((unsigned char)here(cursor)) && digits < 6; digits++, cursor->at++)
        rank = 10 * rank + (*cursor->at - '0');
    if (digits == 0 || rank >= COMMAND_RANKS_MAX)
        return false;
    *ret_rank = rank;
    return true;
}

/* "rank1", "rank: 1", "default0"; "trainer:721" is a line of a file. */
static bool take_named(struct cursor *cursor, int *ret_rank) {
    enum { MARKED = 7 }; /* those that a mark may follow */
    static const char *const words[] = {"rank", "local_rank", "global_rank", "worker",  "process",
                                        "gpu",  "cuda",       "default",     "trainer", "proc"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct cursor next = *cursor;
        if (!take_text(&next, words[i]))
            continue;
        if (i < MARKED)
            take(&next, ":=#");
        skip_blanks(&next);
        if (!take_rank(&next, ret_rank))
            continue;
        *cursor = next;
        return true;
    }
    return false;
}

/* "[rank1]:", "(Rank 0)" */
static bool take_bracket(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    char open = here(&next);
    if (!take(&next, "[(<") || !take_named(&next, ret_rank) ||
        !take(&next, open == '['   ? "]"
                     : open == '(' ? ")"
                                   : ">"))
        return false;
    take(&next, ":");
    *cursor = next;
    return true;
}

/* "Rank-0: policy_step=128"; not "Rank-1: 95.1%", which is how good a search is. */
static bool take_dashed(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    if (!take_text(&next, "rank-") || !take_rank(&next, ret_rank) || !take(&next, ":"))
        return false;
    skip_blanks(&next);
    if (!isalpha((unsigned char)here(&next)))
        return false;
    *cursor = next;
    return true;
}

/* "rank 1 | ", "Rank 0: " */
static bool take_bare(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    if (!take_text(&next, "rank"))
        return false;
    if (take_dashed(cursor, ret_rank))
        return true;
    next = *cursor;
    if (!take_named(&next, ret_rank) || command_is_word(here(&next)) || here(&next) == '.')
        return false;
    skip_blanks(&next);
    take(&next, "|:,;-");
    *cursor = next;
    return true;
}

/* "2026-11-18", "2026/11/18" */
static bool is_date(struct cursor at) {
    for (int i = 0; i < 4; i++)
        if (!take(&at, "0123456789"))
            return false;
    return take(&at, "-/") && take(&at, "01") && take(&at, "0123456789") && take(&at, "-/");
}

/* Whether the rest is an object, begins with a date, or counts by a name: the number before it does
 * not count then. */
static bool can_do_without(struct cursor rest) {
    static const char *const words[] = {"epoch",       "iteration",  "iter",        "global step",
                                        "global_step", "train step", "train epoch", "step"};
    skip_blanks(&rest);
    take(&rest, "[");
    if (here(&rest) == '{' || is_date(rest))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct cursor next = rest;
        if (!take_text(&next, words[i]))
            continue;
        while (take(&next, " \t:=[#"))
            continue;
        if (isdigit((unsigned char)here(&next)))
            return true;
    }
    return false;
}

/* icefall's "(1/4) Epoch 1, batch 50": a rank, and how many there are. */
static bool take_share(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    int count;
    if (!take(&next, "(") || !take_rank(&next, ret_rank) || !take(&next, "/") ||
        !take_rank(&next, &count) || !take(&next, ")") || *ret_rank >= count ||
        !can_do_without(next))
        return false;
    *cursor = next;
    return true;
}

/* "worker 1: step 5", "GPU 0 | step 5" */
static bool take_worker(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    size_t left = (size_t)(next.end - next.at);
    const char *blank = memchr(next.at, ' ', left < 12 ? left : 12);
    if (!blank || !take_named(&next, ret_rank) || next.at < blank)
        return false;
    skip_blanks(&next);
    if (!take(&next, "|:") || !can_do_without(next))
        return false;
    *cursor = next;
    return true;
}

/* "[1,0]<stdout>:", "[prterun-host-123@1,0]<stdout>: " */
static bool take_mpirun(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    if (!take(&next, "["))
        return false;
    size_t left = (size_t)(next.end - next.at);
    const char *close = memchr(next.at, ']', left < 128 ? left : 128);
    const char *comma = close ? memrchr(next.at, ',', (size_t)(close - next.at)) : NULL;
    if (!comma)
        return false;
    next.at = comma + 1;
    if (!take_rank(&next, ret_rank) || !take(&next, "]") ||
        !(take_text(&next, "<stdout>:") || take_text(&next, "<stderr>:")))
        return false;
    *cursor = next;
    return true;
}

/* "0: ", " 3: ", "[0] ", "[0]:" */
static bool take_number_label(struct cursor *cursor, int *ret_rank) {
    struct cursor next = *cursor;
    bool bracket = take(&next, "[");
    if (!take_rank(&next, ret_rank) || !take(&next, bracket ? "]" : ":"))
        return false;
    bool ends = (bracket && take(&next, ":")) || here(&next) == ' ' || here(&next) == '{';
    if (!ends || !can_do_without(next))
        return false;
    *cursor = next;
    return true;
}

static bool take_label(struct cursor *cursor, int *ret_rank) {
    switch (here(cursor)) {
    case '[':
        return take_bracket(cursor, ret_rank) || take_mpirun(cursor, ret_rank) ||
               take_number_label(cursor, ret_rank);
    case '(':
    case '<':
        return take_bracket(cursor, ret_rank);
    case 'r':
    case 'R':
        return take_bare(cursor, ret_rank);
    case 'w':
    case 'W':
    case 'g':
    case 'G':
    case 'p':
    case 'P':
    case 't':
    case 'T':
        return take_worker(cursor, ret_rank);
    default:
        return take_number_label(cursor, ret_rank);
    }
}

/* "worker-1: " */
static bool skip_host(struct cursor *cursor) {
    struct cursor next = *cursor;
    bool digit = false;
    if (!isalnum((unsigned char)here(&next)))
        return false;
    for (; isalnum((unsigned char)here(&next)) || here(&next) == '-' || here(&next) == '.';
         next.at++)
        digit |= isdigit((unsigned char)here(&next)) != 0;
    if (!digit || !take(&next, ":") || !take(&next, " "))
        return false;
    *cursor = next;
    return true;
}

/* "(RayTrainWorker pid=12, ip=10.0.0.3) " */
static bool skip_process(struct cursor *cursor) {
    struct cursor next = *cursor;
    size_t left = (size_t)(next.end - next.at);
    const char *close = take(&next, "(") ? memchr(next.at, ')', left < 128 ? left - 1 : 127) : NULL;
    if (!close || !memmem(next.at, (size_t)(close - next.at), " pid=", 5))
        return false;
    next.at = close + 1;
    skip_blanks(&next);
    *cursor = next;
    return true;
}

/* Of digits and these. */
static bool skip_digits(struct cursor *cursor, const char *and) {
    const char *start = cursor->at;
    while (isdigit((unsigned char)here(cursor)) || (here(cursor) && strchr(and, here(cursor))))
        cursor->at++;
    return cursor->at > start;
}

/* "Tue " of "Tue Nov 18 04:12:33 2025", as time.ctime() has it. */
static bool skip_weekday(struct cursor *cursor) {
    static const char *const days[] = {"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "};
    if (cursor->end - cursor->at < 8 || cursor->at[3] != ' ' || cursor->at[7] != ' ')
        return false;
    for (size_t i = 0; i < sizeof days / sizeof *days; i++)
        if (memcmp(cursor->at, days[i], 4) == 0) {
            cursor->at += 4;
            return true;
        }
    return false;
}

/* "Nov 18 04:12:33 ", "Tue Nov 18 04:12:33 2025: " */
static bool skip_month(struct cursor *cursor) {
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct cursor next = *cursor, year;
    bool month = false, weekday = skip_weekday(&next);
    if (next.end - next.at < 16 || next.at[3] != ' ' || next.at[6] != ' ' || next.at[9] != ':')
        return false;
    for (size_t i = 0; i < sizeof months / sizeof *months; i++)
        month |= memcmp(next.at, months[i], 3) == 0;
    next.at += 4;
    skip_blanks(&next);
    if (!month || !skip_digits(&next, "") || !take(&next, " ") || !skip_digits(&next, ":."))
        return false;
    skip_blanks(&next);
    year = next;
    if (weekday && skip_digits(&year, "") && year.at - next.at == 4) {
        take(&year, ":");
        skip_blanks(&year);
        next = year;
    }
    *cursor = next;
    return true;
}

/* "host prog[123]: " */
static bool skip_tag(struct cursor *cursor) {
    struct cursor next = *cursor;
    for (int word = 0; word < 2; word++) {
        const char *start = next.at;
        while (here(&next) && !strchr(" [:", here(&next)))
            next.at++;
        if (next.at == start || (word == 0 && !take(&next, " ")))
            return false;
    }
    if (!take(&next, "[") || !skip_digits(&next, "") || !take(&next, "]") || !take(&next, ":"))
        return false;
    skip_blanks(&next);
    *cursor = next;
    return true;
}

/* What syslog or Ray puts before each line. */
static bool skip_head(struct cursor *cursor) {
    struct cursor next = *cursor;
    if (here(cursor) == '(')
        return skip_process(cursor);
    if (isdigit((unsigned char)here(&next)) && next.end - next.at > 20 && next.at[10] == 'T' &&
        skip_digits(&next, DATE_MARKS) && take(&next, " ") && skip_tag(&next)) {
        *cursor = next;
        return true;
    }
    if (!skip_month(cursor))
        return false;
    skip_tag(cursor);
    return true;
}

/* What a logging library puts first: a date, a time, a level, anything in brackets. */
static bool skip_logging(struct cursor *cursor) {
    static const char *const levels[] = {"INFO", "DEBUG", "WARNING", "ERROR"};
    struct cursor next = *cursor;
    if (take(&next, "[")) {
        size_t left = (size_t)(next.end - next.at);
        const char *close = memchr(next.at, ']', left < 64 ? left : 64);
        next.at = close ? close + 1 : cursor->at;
    } else if (isdigit((unsigned char)here(&next))) {
        bool marked = false;
        for (; isdigit((unsigned char)here(&next)) || (here(&next) && strchr(DATE_MARKS, *next.at));
             next.at++)
            marked |= here(&next) == '-' || here(&next) == ':';
        next.at = marked ? next.at : cursor->at;
    } else {
        for (size_t i = 0; i < sizeof levels / sizeof *levels && next.at == cursor->at; i++)
            take_text(&next, levels[i]);
    }
    bool some = next.at > cursor->at;
    while (some && take(&next, " \t:-|"))
        continue;
    *cursor = some ? next : *cursor;
    return some;
}

/* The label's end; NULL = the line has none. */
static const char *find_end(struct cursor cursor, int *rank) {
    const char *head = skip_head(&cursor) ? cursor.at : NULL;
    struct cursor host = cursor;
    if (!command_is_word(here(&cursor)) && !strchr("[(<", here(&cursor)))
        return head;
    if (take_label(&cursor, rank))
        return cursor.at;
    if (skip_host(&host)) {
        if (take_label(&host, rank))
            return host.at;
        *rank = -1;
        if (here(&host) == '{')
            return host.at;
    }
    while (skip_logging(&cursor))
        if (take_bracket(&cursor, rank) || take_share(&cursor, rank))
            return cursor.at;
    *rank = -1;
    return head;
}

size_t command_rank_label(const char *line, size_t length, int *ret_rank) {
    struct cursor cursor = {line, line + length};
    int rank = -1;
    skip_blanks(&cursor);
    const char *end = find_end(cursor, &rank);
    *ret_rank = end ? rank : -1;
    return end ? (size_t)(end - line) : 0;
}

/* "iter 5: loss 3", "Epoch 1, …" */
static bool begins_by_count(struct cursor line) {
    static const char *const words[] = {"step", "iter", "epoch"};
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !found; i++)
        found = take_text(&line, words[i]);
    while (isalpha((unsigned char)here(&line)))
        line.at++;
    return found && here(&line) && strchr(" \t:=[", here(&line));
}

bool command_line_is_bare(const char *line, size_t length) {
    struct cursor cursor = {line, line + length};
    skip_blanks(&cursor);
    if (!isdigit((unsigned char)here(&cursor)))
        return begins_by_count(cursor);
    for (size_t i = 0; i < length; i++)
        if (strchr("[(<", line[i]))
            return false;
    while (command_is_word(here(&cursor)) || here(&cursor) == '-' || here(&cursor) == '.')
        cursor.at++;
    return here(&cursor) == ' ';
}

/* --- lines that ran together --- */

/*
 * Python writes a line and its end apart where PYTHONUNBUFFERED is set. Two ranks on one pipe then
 * print "[rank0] loss 3.1[rank1] loss 3.2" or "loss 3.41step 20: loss 3.4". A line begins where no
 * blank stands before a rank's label, a word that counts and its number, or another object. srun's
 * labels are numbers, all of one width: where they were seen, "loss 3.11: step 20" holds 3.1.
 */

/* "3.41" of "loss 3.41step 20", "38%", "(7.0)": whether a value ends before `place`. */
static bool ends_value(const char *text, size_t place) {
    if (text[place - 1] == ')' || text[place - 1] == '%')
        place--;
    size_t start = place;
    while (start > 0 && (isdigit((unsigned char)text[start - 1]) ||
                         (text[start - 1] && strchr(".eE+-", text[start - 1]))))
        start--;
    return start > 0 && start < place && isdigit((unsigned char)text[place - 1]) &&
           !strchr("eE", text[start]) && !command_is_word(text[start - 1]);
}

/* "358383 tok/s" of "358383 tok/sstep 20": whether a value and its unit end before `place`. */
static bool ends_unit(const char *text, size_t place) {
    size_t start = place;
    while (start > 0 && (isalpha((unsigned char)text[start - 1]) || text[start - 1] == '/'))
        start--;
    if (start == place || start == 0 || !command_unit_find(text + start, place - start))
        return false;
    start -= text[start - 1] == ' ';
    return start > 0 && ends_value(text, start);
}

static bool begins_line(const char *text, size_t length, size_t place, bool labelled) {
    struct cursor rest = {text + place, text + length};
    int rank;
    switch (text[place]) {
    case '[':
        return (labelled || ends_value(text, place) || ends_unit(text, place) ||
                text[place - 1] == '}') &&
               (take_bracket(&rest, &rank) || take_mpirun(&rest, &rank));
    case '{':
        return text[place - 1] == '}' && (*text == '{' || labelled);
    default:
        return (ends_value(text, place) || ends_unit(text, place)) &&
               (can_do_without(rest) || take_bare(&rest, &rank) || take_worker(&rest, &rank));
    }
}

/* Whether another line may begin with `c`, behind these two bytes. */
static inline unsigned char may_begin(unsigned char second, unsigned char before, unsigned char c) {
    unsigned char value = ((unsigned char)(before - '0') < 10) | (before == ')') | (before == '%') |
                          ((second == '/') & (before == 's')); /* "tok/s" */
    unsigned char letter = (unsigned char)((c | 0x20) - 'a') < 26;
    return (value & letter) | ((c == '[') & (before > ' ')) | ((c == '{') & (before == '}'));
}

/* A look that spares most lines the rest; no branch and bytes alone, so that it is fast. */
static bool may_be_two(const char *text, size_t length) {
    const unsigned char *c = (const unsigned char *)text;
    unsigned char found = length > 1 ? may_begin(0, c[0], c[1]) : 0;
    for (size_t i = 2; i < length; i++)
        found |= may_begin(c[i - 2], c[i - 1], c[i]);
    return found;
}

/* "3.1" of "loss 3.11: step": what the label leaves is a value still, and counts no epochs. */
static bool leaves_value(const char *text, size_t place) {
    size_t start = place;
    bool point = !isdigit((unsigned char)text[place - 1]);
    for (; start > 0 && (isdigit((unsigned char)text[start - 1]) || text[start - 1] == '.');
         start--)
        point |= text[start - 1] == '.';
    while (start > 0 && strchr(" :=[", text[start - 1]))
        start--;
    bool epoch = start >= 5 && strncasecmp(text + start - 5, "epoch", 5) == 0;
    return point && !epoch && (ends_value(text, place) || ends_unit(text, place));
}

static size_t find_srun_label(const char *text, size_t length, size_t bytes) {
    const char *colon = text;
    while ((colon = memchr(colon, ':', (size_t)(text + length - colon)))) {
        struct cursor rest = {++colon, text + length};
        size_t end = (size_t)(colon - text) - 1, digits = 0, place = end > bytes ? end - bytes : 0;
        while (digits < bytes && place > 0 && isdigit((unsigned char)text[end - 1 - digits]))
            digits++;
        bool padded = digits > 0;
        for (size_t i = place; i < end - digits; i++)
            padded &= text[i] == ' ';
        if (padded && (here(&rest) == ' ' || here(&rest) == '{') && can_do_without(rest) &&
            leaves_value(text, place))
            return place;
    }
    return 0;
}

size_t command_label_bytes(const char *line, size_t label) {
    if (label < 2 || line[label - 1] != ':')
        return 0;
    for (size_t i = 0; i < label - 1; i++)
        if (line[i] != ' ' && !isdigit((unsigned char)line[i]))
            return 0;
    return label - 1;
}

size_t command_line_two(const char *text, size_t length, size_t label_bytes) {
    struct cursor label = {text, text + length};
    size_t place = label_bytes > 0 ? find_srun_label(text, length, label_bytes) : 0;
    int rank;
    if (place > 0)
        return place;
    if (!may_be_two(text, length))
        return 0;
    bool labelled = take_bracket(&label, &rank) || take_mpirun(&label, &rank);
    for (size_t i = 1; i < length; i++)
        if ((text[i] == '[' || text[i] == '{' || isalpha((unsigned char)text[i])) &&
            (unsigned char)text[i - 1] > ' ' && begins_line(text, length, i, labelled))
            return i;
    return 0;
}
