/*
 * command/form.c: forms of lines that were met before. A line has one of them where the text
 * between its numbers is the same; only its numbers are read then. Blanks before a number may be
 * more or fewer, since columns are aligned, and a bar of progress may be longer or shorter.
 */
#include "workload/command/form.h"
#include "model/metric_name.h"

#include <math.h>
#include <string.h>

#define FORMS_MOST      32
#define NAME_BYTES      128
#define RATE_MOST       1e5 /* steps per second: no training does more */
#define ASCII_BAR_LEAST 8
#define MISSED_MANY     256 /* lines in a row: forms are no use to this program */
#define TRY_EACH        16  /* then, and for a place once all are taken: one line of so many */

/* --- a draft --- */

void command_draft_begin(struct command_draft *draft, enum command_groups groups) {
    draft->form = (struct command_form){.fields = draft->fields};
    draft->number_count = 0;
    draft->full = false;
    draft->lasting = true;
    draft->groups = groups;
    draft->length = 0;
}

int command_draft_number(struct command_draft *draft, size_t start, size_t end, double value) {
    int index = draft->number_count;
    if (index == COMMAND_FORM_MAX) {
        draft->full = true;
        draft->lasting = false;
        return -1;
    }
    draft->places[index].start = (uint32_t)start;
    draft->places[index].end = (uint32_t)end;
    draft->numbers[index] = value;
    return draft->number_count++;
}

bool command_draft_add(struct command_draft *draft, const struct command_field *field) {
    size_t length = strlen(field->name) + 1;
    if (draft->form.count == COMMAND_FIELDS_MAX || length > sizeof draft->names - draft->length) {
        draft->full = true;
        return false;
    }
    struct command_field *added = &draft->fields[draft->form.count++];
    *added = *field;
    draft->form.global |= (field->kind & COMMAND_IS_GLOBAL) != 0;
    added->name = memcpy(draft->names + draft->length, field->name, length);
    draft->length += length;
    return true;
}

void command_draft_rename(struct command_draft *draft, struct command_field *field,
                          const char *begin, const char *end) {
    size_t room = sizeof draft->names - draft->length;
    char *name = draft->names + draft->length;
    int length = snprintf(name, room, "%s%s%s", begin, field->name, end);
    if (length < 0 || (size_t)length >= room)
        return;
    field->name = name;
    draft->length += (size_t)length + 1;
}

/* --- what a line of a form says --- */

/* "Epoch 2/10", and how many there are: 10, or 11 where the first is 0. What has a fraction says
 * itself how many are done. */
static void count_epoch(struct command_progress *progress, double epoch, double of, bool bar) {
    if (of > 0) {
        bool first = progress->epochs_total == 0;
        progress->epochs_first = bar ? 1 : first ? epoch : fmin(progress->epochs_first, epoch);
        progress->epochs_total = of;
    }
    progress->has_fraction |= epoch != floor(epoch);
    if (!progress->has_epoch || epoch < progress->first_epoch)
        progress->first_epoch = epoch;
    progress->part = progress->has_epoch && progress->epoch == epoch ? progress->part : 0;
    progress->evaluates &= progress->has_epoch && progress->epoch == epoch;
    progress->has_epoch = true;
    progress->epoch = epoch;
}

/* Samples or batches of an epoch: nobody says which. Without epochs, one that starts over is the
 * next. */
static void count_part(struct command_progress *progress, double value, double of) {
    double part = of > 0 ? fmin(value / of, 1) : 0;
    progress->wraps += part < progress->part;
    progress->part = part;
    progress->has_part = true;
}

/* Steps from the last that was printed to the end of the epoch: as many as between two, unless the
 * last one was printed out of turn. */
static double steps_left(const struct command_progress *progress) {
    return progress->gap < progress->gap_most ? 1 : progress->gap_most;
}

/* Steps of an epoch begin anew in each, unless they go on when one begins. Where their number is
 * known, all are counted on, else from where the epoch ended. */
static void count_step(struct command_progress *progress, double value, double of) {
    double first = progress->first_epoch >= 1 ? 1 : 0,
           epochs = progress->has_step ? progress->epoch - progress->printed_epoch : 0;
    bool next = progress->has_epoch && epochs > 0;
    if (next) {
        bool restarts = value <= progress->printed;
        progress->base =
            restarts ? progress->step + fmax(steps_left(progress) - value, 0) : progress->base;
        progress->restarts |= restarts;
        progress->goes_on = !progress->restarts;
        progress->last_printed = progress->printed;
        progress->last_span = progress->step - progress->epoch_start;
        progress->has_last = true;
    } else if (progress->has_step && value > progress->printed) {
        progress->gap = value - progress->printed;
        progress->gap_most = fmax(progress->gap_most, progress->gap);
    }
    bool within = progress->has_epoch && of > 0 && !progress->goes_on, begun = progress->has_step;
    progress->printed = value;
    progress->printed_epoch = progress->epoch;
    progress->printed_total = of > 0 ? of : 0;
    progress->step = within ? (progress->epoch - first) * of + value : progress->base + value;
    progress->total = within ? 0 : of > 0 ? of : 0;
    progress->has_step = true;
    if (next)
        progress->epoch_steps = (progress->step - progress->epoch_start) / epochs;
    if (next || !begun)
        progress->epoch_start = progress->step;
}

/* The share of the last epoch that is done: all of it where it came as far as the one before, or
 * was named after its steps. NaN = unknown. */
static double epoch_done(const struct command_progress *progress) {
    bool on = progress->goes_on;
    double total = on ? 0 : progress->printed_total,
           steps = total > 0 ? total : progress->epoch_steps,
           done = on ? progress->step - progress->epoch_start : progress->printed,
           whole = !progress->has_last ? total - steps_left(progress)
                   : on                ? progress->last_span
                                       : progress->last_printed;
    if (progress->epoch > progress->printed_epoch || (steps > 0 && done >= whole))
        return 1;
    return steps > 0 ? fmin(done / steps, 1) : (double)NAN;
}

void command_reading_end(struct command_reading *reading, command_found *found, void *state) {
    for (int i = 0; i < reading->rank_count; i++) {
        const struct command_progress *progress = &reading->ranks[i];
        double first = progress->first_epoch >= 1 ? 1 : 0, done = epoch_done(progress),
               most = progress->epochs_total > 0
                          ? progress->epochs_total + (progress->epochs_first < 1)
                          : (double)INFINITY;
        if (progress->has_epoch && progress->has_step && !progress->has_fraction && !isnan(done))
            found(state,
                  &(struct command_value){"epoch", "", fmin(progress->epoch - first + done, most),
                                          progress->step, i - 1, false});
    }
}

/* Whether an epoch or a step that a line recalls is another than those of before. */
static bool is_recalled(const struct command_field *field, double value,
                        const struct command_progress *progress) {
    if (!(field->kind & COMMAND_IS_RECALLED))
        return false;
    return field->kind & COMMAND_IS_EPOCH
               ? progress->has_step || (progress->has_epoch && value < progress->epoch)
               : progress->has_epoch || (progress->has_step && value < progress->printed);
}

static double number_of(const struct command_field *field, const double *numbers) {
    double value = numbers[field->number] * field->scale;
    return field->kind & COMMAND_IS_INVERSE ? 1000 / value : value;
}

static double total_of(const struct command_field *field, const double *numbers) {
    return field->of < 0 ? (double)NAN : numbers[field->of];
}

static bool is_whole(double value) {
    return fabs(value - round(value)) <= 1e-9 * fabs(value); /* "1.001k" */
}

static bool is_epoch(const struct command_field *field, const double *numbers) {
    return field->kind & COMMAND_IS_EPOCH ||
           (field->kind & COMMAND_IS_WHOLE && field->kind & COMMAND_IS_VALUE &&
            is_whole(numbers[field->number]));
}

/* "Epoch 0: 0%| | 0/63 [loss=0.3]" after 63/63: Lightning draws the bar anew before it names the
 * next epoch. Its values are those of before. */
static bool is_redrawn(const struct command_form *form, const double *numbers,
                       const struct command_progress *progress) {
    bool redrawn = false, same = false;
    for (int i = 0; i < form->count; i++) {
        const struct command_field *field = &form->fields[i];
        if (is_epoch(field, numbers) && numbers[field->number] != progress->epoch)
            return false;
        same |= is_epoch(field, numbers);
        redrawn |= field->kind & COMMAND_IS_STEP && !(field->kind & COMMAND_IS_NAMED) &&
                   field->of >= 0 && numbers[field->number] == 0 && progress->has_step &&
                   progress->printed > 0 && (same || numbers[field->of] == progress->printed_total);
    }
    return redrawn;
}

/* "[Eval][Iter: 10/196]" where the training's are of 5005. */
static bool counts_evaluation(const struct command_form *form, double of,
                              const struct command_progress *progress) {
    return form->evaluation && progress->has_step && of > 0 && progress->printed_total > 0 &&
           of != progress->printed_total;
}

/* "313/313 ━━━ loss: 0.3" behind the steps of "Epoch 3/3": a bar that starts over, or is of another
 * number, before the next epoch is one of an evaluation. */
static bool is_evaluation_bar(const struct command_field *field, double value, double of,
                              const struct command_progress *progress) {
    if (field->kind & COMMAND_IS_NAMED || !(of > 0) || !(progress->printed_total > 0) ||
        !progress->has_epoch || progress->epoch != progress->printed_epoch)
        return false;
    return of != progress->printed_total || (progress->evaluates && value == progress->printed) ||
           (value < progress->printed && progress->printed == progress->printed_total);
}

/* "Global step 1000 (epoch 3.0)": how many epochs are done, beside a step. */
static bool is_fraction(const struct command_field *field) {
    return field->kind & COMMAND_IS_EPOCH && field->kind & COMMAND_IS_VALUE;
}

static bool has_steps(const struct command_form *form) {
    for (int i = 0; i < form->count; i++)
        if (form->fields[i].kind & COMMAND_IS_STEP)
            return true;
    return false;
}

/* Whether the line counts steps or epochs, or is a bar of an evaluation. */
static bool count(const struct command_form *form, const double *numbers,
                  struct command_progress *progress, bool *ret_evaluates) {
    bool counted = false, stepped = false, steps = has_steps(form), evaluates = false;
    for (int i = 0; i < form->count; i++)
        if (is_epoch(&form->fields[i], numbers) && !(steps && is_fraction(&form->fields[i]))) {
            if (!is_recalled(&form->fields[i], numbers[form->fields[i].number], progress))
                count_epoch(progress, numbers[form->fields[i].number],
                            total_of(&form->fields[i], numbers),
                            !(form->fields[i].kind & COMMAND_IS_NAMED));
            counted = true;
        }
    for (int i = 0; i < form->count && !stepped; i++) {
        const struct command_field *field = &form->fields[i];
        double value = *field->unit ? numbers[field->number] : number_of(field, numbers), /* "2k" */
            of = total_of(field, numbers);
        if (!(field->kind & (COMMAND_IS_STEP | COMMAND_IS_PART)) ||
            (form->global && !(field->kind & COMMAND_IS_GLOBAL)) ||
            (field->kind & COMMAND_IS_WHOLE && !is_whole(value)) ||
            (form->evaluation && !(field->kind & COMMAND_IS_NAMED)))
            continue;
        if (is_recalled(field, value, progress)) {
            counted = true;
            continue;
        }
        if (form->bar) {
            progress->has_bar = true;
            progress->bar = value;
            progress->bar_total = of > 0 ? of : 0;
        } else if (field->kind & COMMAND_IS_PART &&
                   (!(field->kind & COMMAND_IS_ENDING) || progress->has_epoch)) {
            count_part(progress, value, of);
        } else if (!counted && is_evaluation_bar(field, value, of, progress)) {
            evaluates = true;
        } else if (!counts_evaluation(form, of, progress)) {
            count_step(progress, value, of);
        }
        counted = stepped = true;
    }
    progress->evaluates = evaluates || (progress->evaluates && !stepped);
    *ret_evaluates = evaluates;
    return counted;
}

/* "Accuracy: 9852/10000" is 98.52%; false: it is no value, such as "loss 7/3". "loss 0.7/0.75" is
 * the value and a reference to it, such as its mean. */
static bool take_share(const struct command_field *field, const double *numbers,
                       struct command_value *value) {
    double of = total_of(field, numbers);
    if (!is_whole(numbers[field->number]) || !is_whole(of))
        return true;
    if (!(of > 0) || !(of >= value->value) || !(field->kind & COMMAND_IS_KNOWN))
        return false;
    bool fraction = field->kind & COMMAND_IS_FRACTION;
    value->value *= (fraction ? 1 : 100) / of;
    value->unit = fraction ? "" : "%";
    return true;
}

/* Bytes of a download, as some bars count them. */
static bool is_download(const struct command_form *form, const double *numbers) {
    for (int i = 0; i < form->count && form->bar; i++)
        if (form->fields[i].kind & COMMAND_IS_VALUE &&
            lab_str_equal(form->fields[i].name, "iterations_per_s") &&
            number_of(&form->fields[i], numbers) > RATE_MOST)
            return true;
    return false;
}

/* A bar of fewer steps than the training's: of an evaluation in between. */
static bool is_other_bar(const struct command_form *form, const double *numbers,
                         const struct command_progress *progress) {
    for (int i = 0; i < form->count && form->bar && progress->has_bar; i++)
        if (form->fields[i].kind & COMMAND_IS_STEP && form->fields[i].of >= 0)
            return numbers[form->fields[i].of] < progress->bar_total;
    return false;
}

/* {"rank": 1, …}, "Rank: 1" */
static bool is_rank(const struct command_field *field, double value) {
    return field->kind & COMMAND_IS_RANK && value >= 0 && value < COMMAND_RANKS_MAX &&
           is_whole(value);
}

/* -1 = it names none */
static int rank_of(const struct command_form *form, const double *numbers) {
    int rank = -1;
    for (int i = 0; i < form->count; i++)
        if (is_rank(&form->fields[i], numbers[form->fields[i].number]))
            rank = (int)numbers[form->fields[i].number];
    return rank;
}

static bool apply_printed(const struct command_form *form, const double *numbers,
                          struct command_reading *reading, command_found *found, void *state) {
    if (is_download(form, numbers))
        return false;
    struct command_progress *progress = command_reading_of(reading, rank_of(form, numbers));
    if (is_other_bar(form, numbers, progress) || is_redrawn(form, numbers, progress))
        return true;
    bool any = false, by_epoch, evaluates, counted = count(form, numbers, progress, &evaluates);
    double step = command_progress_step(progress, &by_epoch);
    if (form->bar && by_epoch && !progress->has_part && !progress->has_epoch) {
        step = progress->bar; /* an object's epochs are no steps of a bar */
        by_epoch = false;
    }
    for (int i = 0; i < form->count && found; i++) {
        const struct command_field *field = &form->fields[i];
        struct command_value value = {field->name, field->unit,   number_of(field, numbers),
                                      step,        reading->rank, by_epoch};
        char name[NAME_BYTES];
        if (!(field->kind & COMMAND_IS_VALUE) || (!counted && !(field->kind & COMMAND_IS_KNOWN)) ||
            (is_epoch(field, numbers) && (by_epoch || !is_fraction(field))) ||
            (field->kind & COMMAND_IS_SHARE && !take_share(field, numbers, &value)))
            continue;
        if (evaluates && !lab_metric_name_is_evaluation(value.name)) {
            snprintf(name, sizeof name, "eval_%s", value.name);
            value.name = name;
        }
        found(state, &value);
        any = true;
    }
    if (counted || form->head)
        reading->head = form->head;
    if (any && by_epoch && (progress->has_part || progress->has_epoch))
        found(state, &(struct command_value){"epoch", "", step, step, reading->rank, true});
    return any || counted;
}

static bool apply_object(const struct command_form *form, const double *numbers,
                         struct command_reading *reading, command_found *found, void *state) {
    double given = NAN, epoch = NAN; /* {'loss': 1.9, 'epoch': 0.5}: the step where none is known */
    for (int i = 0; i < form->count; i++) {
        const struct command_field *field = &form->fields[i];
        double value = numbers[field->number];
        given = field->kind & COMMAND_IS_STEP && (!form->global || field->kind & COMMAND_IS_GLOBAL)
                    ? value
                    : given;
        epoch = isnan(epoch) && field->kind & COMMAND_IS_EPOCH ? value : epoch;
    }
    struct command_progress *progress = command_reading_of(reading, rank_of(form, numbers));
    if (!isnan(given)) {
        progress->has_step = true;
        progress->step = given;
    }
    if (!isnan(epoch)) {
        progress->has_given = true;
        progress->given = epoch;
    }
    bool by_epoch = !progress->has_step;
    double step = progress->has_step ? progress->step
                  : isnan(epoch)     ? command_progress_step(progress, &by_epoch)
                                     : epoch;
    for (int i = 0; i < form->count && found; i++) {
        const struct command_field *field = &form->fields[i];
        double value = numbers[field->number];
        if (!(field->kind & COMMAND_IS_STEP) && !is_rank(field, value))
            found(state,
                  &(struct command_value){field->name, field->unit, number_of(field, numbers), step,
                                          reading->rank, by_epoch});
    }
    return true;
}

bool command_form_apply(const struct command_form *form, const double *numbers,
                        struct command_reading *reading, command_found *found, void *state) {
    if (form->object)
        return apply_object(form, numbers, reading, found, state);
    return form->count > 0 && apply_printed(form, numbers, reading, found, state);
}

/* --- forms that are kept --- */

enum { NUMBER, BAR, END };

struct piece { /* of a line: what stands before a number or a bar, or behind the last */
    uint32_t length;
    unsigned char before; /* what comes behind it */
    bool blank;           /* one at least follows it */
    const char *text;
};

struct kept {
    struct command_form form;
    struct piece *pieces; /* the last is an END */
    struct piece tail;    /* that one: a look at it spares most others */
    enum command_groups groups;
    bool bare; /* no line of it has a label */
    int next;  /* the form of the line that came after it last */
};

struct command_forms {
    struct kept *items[FORMS_MOST];
    int count, oldest, last;
    int64_t missed, missed_in_a_row;
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* "███▏", "━━━╸", "[=====>....": where the bar at `place` ends, with the blanks behind it; or
 * `place`. */
static size_t bar_end(const char *text, size_t length, size_t place) {
    size_t at = place;
    if (text[at] == '\xe2') {
        for (; length - at >= 3 && text[at] == '\xe2'; at += 3)
            if (text[at + 1] != '\x96' && memcmp(text + at + 1, "\x94\x81", 2) != 0 &&
                memcmp(text + at + 1, "\x95\xb8", 2) != 0)
                break;
    } else if (place > 0 && text[place - 1] == '[' && (text[at] == '=' || text[at] == '>')) {
        while (at < length && (text[at] == '=' || text[at] == '>' || text[at] == '.'))
            at++;
        at = at - place < ASCII_BAR_LEAST ? place : at;
    }
    while (at > place && at < length && is_blank(text[at]))
        at++;
    return at;
}

static bool match(const struct kept *kept, const char *text, size_t length, double *numbers) {
    size_t place = 0;
    for (const struct piece *piece = kept->pieces;; piece++) {
        if (length - place < piece->length || memcmp(text + place, piece->text, piece->length) != 0)
            return false;
        place += piece->length;
        if (piece->before == END)
            return place == length;
        if (piece->blank) {
            if (place >= length || !is_blank(text[place]))
                return false;
            while (place < length && is_blank(text[place]))
                place++;
        }
        size_t end = place >= length ? place
                     : piece->before == BAR
                         ? bar_end(text, length, place)
                         : command_number(text, length, place, kept->groups, numbers++);
        if (end == place)
            return false;
        place = end;
    }
}

static bool ends_so(const struct piece *tail, const char *text, size_t length) {
    return length >= tail->length &&
           memcmp(text + length - tail->length, tail->text, tail->length) == 0;
}

const struct command_form *command_forms_next(struct command_forms *forms, bool bare,
                                              const char *text, size_t length,
                                              double numbers[COMMAND_FORM_MAX]) {
    struct kept *last = forms->items[forms->last], *next = forms->items[last->next];
    if ((bare && !next->bare) || !match(next, text, length, numbers))
        return NULL;
    forms->missed_in_a_row = 0;
    forms->last = last->next;
    return &next->form;
}

const struct command_form *command_forms_find(struct command_forms *forms, const char *text,
                                              size_t length, double numbers[COMMAND_FORM_MAX]) {
    if (!forms)
        return NULL;
    struct kept *last = forms->items[forms->last];
    int found = last->next;
    if (!match(forms->items[found], text, length, numbers)) {
        bool tried = forms->missed_in_a_row < MISSED_MANY || forms->missed_in_a_row % TRY_EACH == 0;
        for (found = tried ? 0 : forms->count; found < forms->count; found++)
            if (ends_so(&forms->items[found]->tail, text, length) &&
                match(forms->items[found], text, length, numbers))
                break;
        if (found == forms->count) {
            forms->missed_in_a_row++;
            return NULL;
        }
    }
    forms->missed_in_a_row = 0;
    last->next = forms->last = found;
    return &forms->items[found]->form;
}

/* What stands between the line's numbers and bars; `pieces` NULL: they are only counted. */
static size_t cut_pieces(const struct command_draft *draft, const char *text, size_t length,
                         struct piece *pieces) {
    size_t count = 0, start = 0;
    for (int i = 0; i <= draft->number_count; i++) {
        bool last = i == draft->number_count;
        size_t stop = last ? length : draft->places[i].start, end = stop;
        for (size_t at = start, bar; at < stop; at++) {
            if ((bar = bar_end(text, stop, at)) == at)
                continue;
            if (pieces)
                pieces[count] = (struct piece){(uint32_t)(at - start), BAR, false, text + start};
            count++;
            start = bar;
            at = bar - 1;
        }
        while (!last && end > start && is_blank(text[end - 1]))
            end--;
        if (pieces)
            pieces[count] = (struct piece){(uint32_t)(end - start), last ? END : NUMBER, end < stop,
                                           text + start};
        count++;
        start = last ? length : draft->places[i].end;
    }
    return count;
}

/* In one block, with what it points to. */
static struct kept *copy(const struct command_draft *draft, const char *text, size_t length) {
    int fields = draft->form.count;
    size_t fields_at = sizeof(struct kept),
           pieces_at = fields_at + (size_t)fields * sizeof(struct command_field),
           names_at = pieces_at + cut_pieces(draft, text, length, NULL) * sizeof(struct piece),
           text_at = names_at + draft->length;
    char *block = lab_mem_alloc(text_at + length, 1);
    struct kept *kept = (void *)block;
    struct command_field *items = (void *)(block + fields_at);
    *kept = (struct kept){draft->form, (void *)(block + pieces_at), {0}, draft->groups, false, 0};
    kept->form.fields = items;
    memcpy(block + names_at, draft->names, draft->length);
    memcpy(block + text_at, text, length);
    for (int i = 0; i < fields; i++) {
        items[i] = draft->fields[i];
        items[i].name = block + names_at + (draft->fields[i].name - draft->names);
    }
    kept->tail = kept->pieces[cut_pieces(draft, block + text_at, length, kept->pieces) - 1];
    return kept;
}

void command_forms_keep(struct command_forms **all, const struct command_draft *draft, bool bare,
                        const char *text, size_t length) {
    if (!draft->lasting)
        return;
    if (!*all)
        *all = lab_mem_alloc(1, sizeof **all);
    struct command_forms *forms = *all;
    int place = forms->count;
    if (place == FORMS_MOST) { /* some programs' lines are all new */
        if (forms->missed++ % TRY_EACH)
            return;
        place = forms->oldest;
        forms->oldest = (forms->oldest + 1) % FORMS_MOST;
        lab_mem_free(forms->items[place]);
    } else {
        forms->count++;
    }
    forms->items[place] = copy(draft, text, length);
    forms->items[place]->bare = bare;
    forms->items[place]->next = place;
    forms->items[forms->last]->next = place;
    forms->last = place;
}

void command_forms_release(struct command_forms *forms) {
    for (int i = 0; forms && i < forms->count; i++)
        lab_mem_free(forms->items[i]);
    lab_mem_free(forms);
}
