/*
 * command/form.c: what the numbers of a line say: steps and epochs, which go on from line to line,
 * and values. A form is made of one line (printed.c, object.c, table.c) and kept for others
 * (kept.c).
 */
#include "workload/command/form.h"
#include "model/metric_name.h"

#include <math.h>
#include <string.h>

#define NAME_BYTES 128
#define RATE_MOST  1e5 /* steps per second: no training does more */

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
    draft->form.ranked |= (field->kind & COMMAND_IS_RANK) != 0;
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

/* "[Eval][Iter: 10/196]" where the training's are of 5005; "Epoch 1 | Iter 0 | Eval Loss 2.6" after
 * its step 100. */
static bool counts_evaluation(const struct command_form *form, double value, double of,
                              const struct command_progress *progress) {
    if (form->evaluated && progress->has_step && progress->has_epoch &&
        progress->epoch == progress->printed_epoch && value < progress->printed)
        return true;
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
        } else if (!counts_evaluation(form, value, of, progress)) {
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
    for (int i = 0; i < form->count && form->ranked; i++)
        if (is_rank(&form->fields[i], numbers[form->fields[i].number]))
            rank = (int)numbers[form->fields[i].number];
    return rank;
}

/* Of a line without a rank, where lines with one in them count the steps: "Step: 5, Rank: 0, loss =
 * 2.1", then "val loss 2.2". */
static const struct command_progress *counting_of(const struct command_reading *reading,
                                                  const struct command_progress *progress) {
    bool own = reading->rank >= 0 || progress->has_step || progress->has_part || progress->has_bar;
    for (int i = 1; i < reading->rank_count && !own; i++) {
        const struct command_progress *other = &reading->ranks[i];
        if (other->within && other->has_step &&
            (!progress->has_step || other->step > progress->step))
            progress = other;
    }
    return progress;
}

static bool apply_printed(const struct command_form *form, const double *numbers,
                          struct command_reading *reading, command_found *found, void *state) {
    if (is_download(form, numbers))
        return false;
    int rank = rank_of(form, numbers);
    struct command_progress *progress = command_reading_of(reading, rank);
    progress->within |= rank >= 0;
    if (is_other_bar(form, numbers, progress) || is_redrawn(form, numbers, progress))
        return true;
    bool any = false, by_epoch, evaluates, counted = count(form, numbers, progress, &evaluates);
    double step = command_progress_step(counting_of(reading, progress), &by_epoch);
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
