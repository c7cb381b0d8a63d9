/*
 * probe_sampler_open.c: opens the probes that work here and finds their lanes, of GPUs only those
 * that are wanted.
 *
 * A driver's start may take seconds, or hang for good. It has a thread of its own, which is waited
 * for a while; after that the sampler begins without it, and the thread brings in what it found
 * when it comes back. The same thread asks again where a driver fails that may come yet: a kernel
 * module that isn't loaded, GPUs that are away.
 */
#include "probe/probe_sampler.h"

#include "base/cond.h"
#include "base/str.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define OPEN_PATIENCE_NS (5 * LAB_NS_PER_S)
#define AGAIN_MIN_NS     (250 * LAB_NS_PER_MS)
#define AGAIN_MAX_NS     (30 * LAB_NS_PER_S)

struct lanes {
    struct sampler_lane **items;
    int count;
};

void sampler_probe_release(struct sampler_probe *probe) {
    if (atomic_fetch_sub(&probe->users, 1) == 1)
        probe->probe->close(probe->state);
}

void sampler_probe_close(struct sampler_probe *probe) {
    pthread_mutex_lock(&probe->sampler->mutex);
    bool forgotten = probe->opening == SAMPLER_OPENED && probe->result == 0;
    probe->opening = forgotten ? SAMPLER_SETTLED : probe->opening;
    pthread_mutex_unlock(&probe->sampler->mutex);
    if (forgotten)
        probe->probe->close(probe->state);
    else if (!atomic_load(&probe->refusal))
        sampler_probe_release(probe);
}

/* --- what was asked for --- */

static bool is_asked_for(const struct lab_sampler_config *config, const char *name) {
    if (!config->probes)
        return strcmp(name, "replay") != 0;
    return lab_str_find(name, config->probes) >= 0;
}

int sampler_check_names(const struct sampler_parts *parts, const struct lab_sampler_config *config,
                        struct lab_err *err) {
    const char *known[64];
    int count = 0;
    for (; count < 63 && parts->probes[count]; count++)
        known[count] = parts->probes[count]->name;
    known[count] = NULL;
    for (int i = 0; config->probes && config->probes[i]; i++) {
        int at = 0;
        while (known[at] && strcmp(known[at], config->probes[i]) != 0)
            at++;
        if (known[at])
            continue;
        LAB_AUTO(str, text);
        lab_str_add_list(&text, known, "and");
        lab_err_set(err, LAB_ERR_USER, "there is no probe '%s'; there are %s", config->probes[i],
                    text.text);
        return -1;
    }
    return 0;
}

/* --- lanes and the GPUs among them --- */

bool sampler_wants_gpu(const struct lab_sampler *sampler, int index) {
    bool wanted = sampler->gpus == NULL;
    for (int i = 0; i < sampler->gpu_count; i++)
        wanted = wanted || sampler->gpus[i] == index;
    return wanted;
}

int sampler_next_number(struct lab_sampler *sampler) {
    LAB_AUTO_LOCK(&sampler->mutex);
    return sampler->entity_numbers++;
}

static void add_lanes(struct sampler_probe *probe, struct lanes *lanes) {
    int count = lab_probe_lane_count(probe->probe, probe->state);
    for (int i = 0; i < count; i++) {
        struct sampler_lane *lane = lab_mem_alloc(1, sizeof *lane);
        LAB_PUSH(lanes->items, lanes->count) = lane;
        lane_init(lane, probe->sampler, probe, i);
    }
}

/* "0, 1 and 3", of the GPUs that lanes told of; how many there are. */
static int write_gpus(const struct lanes *lanes, struct lab_str *out) {
    int count = 0, last = INT_MIN;
    LAB_AUTO(str, before);
    for (;;) { /* in ascending order, however the lanes come */
        int next = INT_MAX;
        for (int i = 0; i < lanes->count; i++)
            for (int j = 0; j < lanes->items[i]->entity_count; j++) {
                const struct lab_entity *entity = &lanes->items[i]->entities[j].details;
                if (entity->kind == LAB_ENTITY_GPU && entity->index > last && entity->index < next)
                    next = entity->index;
            }
        if (next == INT_MAX)
            break;
        lab_str_add(out, before.text);
        lab_str_clear(&before);
        lab_str_printf(&before, "%s%d", count == 0 ? "" : ", ", next);
        last = next;
        count++;
    }
    if (count > 1)
        lab_str_printf(out, " and %d", last);
    else
        lab_str_add(out, before.text);
    return count;
}

static bool has_gpu(const struct lanes *lanes, int index) {
    for (int i = 0; i < lanes->count; i++)
        for (int j = 0; j < lanes->items[i]->entity_count; j++) {
            const struct lab_entity *entity = &lanes->items[i]->entities[j].details;
            if (entity->kind == LAB_ENTITY_GPU && entity->index == index)
                return true;
        }
    return false;
}

static int check_gpus(const struct lab_sampler *sampler, const struct lanes *lanes,
                      struct lab_err *err) {
    for (int i = 0; i < sampler->gpu_count; i++) {
        if (has_gpu(lanes, sampler->gpus[i]))
            continue;
        LAB_AUTO(str, names);
        int count = write_gpus(lanes, &names);
        const char *refusal = lab_sampler_refusal(sampler, "nvml");
        if (count > 0)
            lab_err_set(err, LAB_ERR_USER, "there is no GPU %d; there %s %s", sampler->gpus[i],
                        count == 1 ? "is GPU" : "are GPUs", names.text);
        else
            lab_err_set(err, LAB_ERR_USER, "there is no GPU %d; no GPU was found%s%s",
                        sampler->gpus[i], refusal ? ": " : "", refusal ? refusal : "");
        return -1;
    }
    return 0;
}

/* --- what became of a probe --- */

static void refuse(struct sampler_probe *probe, const char *why) {
    assert(probe->text_count < SAMPLER_TEXTS);
    char *text = probe->texts[probe->text_count++] = lab_mem_strdup(why);
    atomic_store(&probe->refusal, text);
}

static const struct sampler_probe *find_probe(const struct lab_sampler *sampler, const char *name) {
    for (int i = 0; i < sampler->probe_count; i++)
        if (strcmp(sampler->probes[i].probe->name, name) == 0)
            return &sampler->probes[i];
    return NULL;
}

const char *lab_sampler_refusal(const struct lab_sampler *sampler, const char *name) {
    const struct sampler_probe *probe = find_probe(sampler, name);
    return probe ? atomic_load(&probe->refusal) : "there is no such probe";
}

bool lab_sampler_awaits(struct lab_sampler *sampler, const char *name) {
    LAB_AUTO_LOCK(&sampler->mutex);
    const struct sampler_probe *probe = find_probe(sampler, name);
    return probe && probe->opening == SAMPLER_LATE;
}

bool lab_sampler_retries(struct lab_sampler *sampler, const char *name) {
    LAB_AUTO_LOCK(&sampler->mutex);
    const struct sampler_probe *probe = find_probe(sampler, name);
    return probe && probe->opening == SAMPLER_LATE && probe->failed;
}

static void tell_event(struct lab_sampler *sampler, enum lab_event_kind kind, int64_t number,
                       const char *text) {
    struct lab_sample_event event = {.time_ns = lab_clock_now(sampler->clock),
                                     .entity = -1,
                                     .kind = kind,
                                     .number = number,
                                     .text = text};
    pthread_mutex_lock(&sampler->queue.mutex);
    sample_queue_put_note(&sampler->queue, sample_queue_note_event(&event));
    pthread_mutex_unlock(&sampler->queue.mutex);
    sampler_wake_taker(sampler);
}

/* --- one that comes late --- */

static int count_wanted(const struct lanes *lanes) {
    int wanted = 0;
    for (int i = 0; i < lanes->count; i++)
        wanted += lanes->items[i]->wanted;
    return wanted;
}

/* Puts the lanes beside the others; false = the sampler has ended, or there is no room. */
static bool publish(struct sampler_probe *probe, const struct lanes *lanes) {
    struct lab_sampler *sampler = probe->sampler;
    LAB_AUTO_LOCK(&sampler->mutex);
    bool joins = !sampler->stop && lanes->count <= sampler->late_room;
    if (joins) {
        int before = atomic_load(&sampler->lane_count), wanted = count_wanted(lanes);
        for (int i = 0; i < lanes->count; i++)
            sampler->lanes[before + i] = lanes->items[i];
        atomic_store(&probe->users, 1 + wanted);
        atomic_store(&sampler->lane_count, before + lanes->count);
        atomic_store(&probe->refusal, NULL);
        sampler->present += wanted;
        sampler->late_room -= lanes->count;
    }
    probe->opening = SAMPLER_SETTLED;
    return joins;
}

static void join(struct sampler_probe *probe) {
    struct lab_sampler *sampler = probe->sampler;
    struct lab_err missing = LAB_ERR_INIT;
    struct lanes lanes = {0};
    add_lanes(probe, &lanes);
    int lacks = check_gpus(sampler, &lanes, &missing);
    for (int i = 0; i < lanes.count; i++)
        if (lanes.items[i]->wanted)
            lane_number_entities(lanes.items[i]);
    if (publish(probe, &lanes)) {
        int64_t waited_ns = lab_clock_now(sampler->clock) - probe->since_ns;
        tell_event(sampler, LAB_EVENT_BACK, waited_ns, probe->probe->name);
        if (lacks)
            tell_event(sampler, LAB_EVENT_GAP, 0, missing.text);
        for (int i = 0; i < lanes.count; i++)
            if (lanes.items[i]->wanted && sampler_start_lane(lanes.items[i]) != 0)
                sampler_count_present(sampler, -1);
    } else {
        for (int i = 0; i < lanes.count; i++) {
            lane_release(lanes.items[i]);
            lab_mem_free(lanes.items[i]);
        }
        probe->probe->close(probe->state);
    }
    lab_mem_free(lanes.items);
}

/* --- opening --- */

/* Until the time has come or the sampler ends. The mutex is held. */
static void pause_before_again(struct lab_sampler *sampler, int64_t pause_ns) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + pause_ns;
    int status = 0;
    while (!sampler->stop && status == 0)
        status = lab_cond_wait_until(&sampler->opened, &sampler->mutex, until_ns);
}

/* Asks until it is open, won't ever be, or nobody wants it any more; the mutex is held
 * afterwards. */
static void open_in_the_end(struct sampler_probe *probe) {
    struct lab_sampler *sampler = probe->sampler;
    for (int64_t pause_ns = AGAIN_MIN_NS;; pause_ns *= 2) {
        struct lab_err why = LAB_ERR_INIT;
        int result = probe->probe->open(&sampler->setup, &probe->state, &why);
        pthread_mutex_lock(&sampler->mutex);
        probe->result = result;
        probe->why = why;
        if (result == 0 || why.code != LAB_ERR_SYSTEM || sampler->stop)
            return;
        probe->failed = true;
        pthread_cond_broadcast(&sampler->opened);
        pause_before_again(sampler, pause_ns < AGAIN_MAX_NS ? pause_ns : AGAIN_MAX_NS);
        if (sampler->stop)
            return;
        pthread_mutex_unlock(&sampler->mutex);
    }
}

static void *open_main(void *argument) {
    struct sampler_probe *probe = argument;
    struct lab_sampler *sampler = probe->sampler;
    pthread_setname_np(pthread_self(), "lab-open");
    open_in_the_end(probe);
    int result = probe->result;
    bool late = probe->opening == SAMPLER_LATE, unwanted = sampler->stop && !late;
    if (!late) /* whoever opens the sampler takes it from here, unless there is nobody any more */
        probe->opening = unwanted ? SAMPLER_SETTLED : SAMPLER_OPENED;
    else if (result < 0) {
        refuse(probe, probe->why.text);
        probe->opening = SAMPLER_SETTLED;
    }
    pthread_cond_broadcast(&sampler->opened);
    pthread_mutex_unlock(&sampler->mutex);
    if (result == 0 && late)
        join(probe);
    else if (result == 0 && unwanted)
        probe->probe->close(probe->state);
    sampler_thread_ends(sampler);
    return NULL;
}

static void begin_opening(struct sampler_probe *probe) {
    refuse(probe, "it is being opened");
    probe->since_ns = lab_clock_now(probe->sampler->clock);
    probe->opening = SAMPLER_OPENING;
    int why = sampler_start_thread(probe->sampler, 0, open_main, probe);
    if (why == 0)
        return;
    probe->opening = SAMPLER_OPENED;
    probe->result = lab_err_set_errno(&probe->why, LAB_ERR_SYSTEM, why, "no thread for it");
}

/* Until all have come back or the time is up. The mutex is held. */
static void wait_for_openings(struct lab_sampler *sampler, int64_t patience_ns) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + patience_ns;
    for (int i = 0, status = 0; i < sampler->probe_count; i++)
        while (sampler->probes[i].opening == SAMPLER_OPENING && !sampler->probes[i].failed &&
               status == 0)
            status = lab_cond_wait_until(&sampler->opened, &sampler->mutex, until_ns);
}

/* What is known of each by now. Those that refuse are no failure, unless all do. */
static int settle(struct lab_sampler *sampler, struct lab_err *err) {
    LAB_AUTO(str, reasons);
    enum lab_err_code code = LAB_ERR_UNSUPPORTED;
    int open = 0;
    for (int i = 0; i < sampler->probe_count; i++) {
        struct sampler_probe *probe = &sampler->probes[i];
        bool again = probe->opening == SAMPLER_OPENING && probe->failed;
        open += probe->opening == SAMPLER_OPENING && !again;
        if (probe->opening != SAMPLER_OPENED && !again)
            continue;
        probe->opening = again ? SAMPLER_OPENING : SAMPLER_SETTLED;
        if (probe->result == 0) {
            atomic_store(&probe->users, 1);
            atomic_store(&probe->refusal, NULL);
            open++;
            continue;
        }
        refuse(probe, probe->why.text);
        lab_str_printf(&reasons, "%s%s: %s", reasons.length ? "; " : "", probe->probe->name,
                       probe->why.text);
        code = probe->why.code == LAB_ERR_USER ? LAB_ERR_USER : code;
    }
    if (open == 0)
        lab_err_set(err, code, "nothing can be watched here: %s",
                    reasons.length ? reasons.text : "no probe was asked for");
    return open ? 0 : -1;
}

static int open_all(struct lab_sampler *sampler, const struct sampler_parts *parts,
                    const struct lab_sampler_config *config, struct lab_err *err) {
    int count = 0;
    while (parts->probes[count])
        count++;
    sampler->probes = lab_mem_alloc((size_t)count, sizeof *sampler->probes);
    sampler->probe_count = count;
    for (int i = 0; i < count; i++) {
        struct sampler_probe *probe = &sampler->probes[i];
        probe->sampler = sampler;
        probe->probe = parts->probes[i];
        if (!is_asked_for(config, probe->probe->name)) {
            refuse(probe, "it was not asked for");
        } else if (probe->probe->driver) {
            begin_opening(probe);
        } else {
            refuse(probe, "it is being opened");
            probe->result = probe->probe->open(&sampler->setup, &probe->state, &probe->why);
            probe->opening = SAMPLER_OPENED;
        }
    }
    LAB_AUTO_LOCK(&sampler->mutex);
    wait_for_openings(sampler,
                      config->open_patience_ns > 0 ? config->open_patience_ns : OPEN_PATIENCE_NS);
    return settle(sampler, err);
}

/* A driver that failed doesn't count: whoever names GPUs is told so at once. */
static bool is_opening(struct lab_sampler *sampler) {
    bool opening = false;
    LAB_AUTO_LOCK(&sampler->mutex);
    for (int i = 0; i < sampler->probe_count; i++)
        opening |= sampler->probes[i].opening != SAMPLER_SETTLED && !sampler->probes[i].failed;
    return opening;
}

/* From here on those that are still being opened join by themselves. */
static void let_join(struct lab_sampler *sampler) {
    for (int i = 0; i < sampler->probe_count; i++) {
        struct sampler_probe *probe = &sampler->probes[i];
        char text[sizeof probe->why.text + 32];
        int64_t waited_ns = lab_clock_now(sampler->clock) - probe->since_ns;
        pthread_mutex_lock(&sampler->mutex);
        if (probe->failed)
            snprintf(text, sizeof text, "%s; retrying", probe->why.text);
        else
            snprintf(text, sizeof text, "the driver has not started after %.0f s; still waiting",
                     (double)waited_ns / LAB_NS_PER_S);
        bool opening = probe->opening == SAMPLER_OPENING, opened = probe->opening == SAMPLER_OPENED;
        if (opening) {
            refuse(probe, text);
            probe->opening = SAMPLER_LATE;
        }
        pthread_mutex_unlock(&sampler->mutex);
        if (opening)
            tell_event(sampler, LAB_EVENT_GAP, 0, text);
        if (opened && probe->result == 0) /* it came back just now */
            join(probe);
        else if (opened)
            refuse(probe, probe->why.text);
    }
}

int sampler_open_probes(struct lab_sampler *sampler, const struct sampler_parts *parts,
                        const struct lab_sampler_config *config, int *ret_lanes,
                        struct lab_err *err) {
    if (open_all(sampler, parts, config, err) < 0)
        return -1;
    struct lanes lanes = {0};
    for (int i = 0; i < sampler->probe_count; i++)
        if (!atomic_load(&sampler->probes[i].refusal))
            add_lanes(&sampler->probes[i], &lanes);
    sampler->lanes = lab_mem_resize(lanes.items, (size_t)lanes.count + SAMPLER_LANES_LATE,
                                    sizeof(struct sampler_lane *));
    lanes.items = sampler->lanes;
    sampler->late_room = SAMPLER_LANES_LATE;
    atomic_store(&sampler->lane_count, lanes.count);
    /* what isn't there yet can't be checked */
    if (!is_opening(sampler) && check_gpus(sampler, &lanes, err) < 0)
        return -1;
    for (int i = 0; i < lanes.count; i++)
        if (lanes.items[i]->wanted)
            lane_number_entities(lanes.items[i]);
    sampler->present = count_wanted(&lanes);
    sampler->start_ns = lab_clock_now(sampler->clock);
    sampler->wall_checked_ns = sampler->start_ns;
    sampler->wall_last_ns = sampler->wall_offset_ns();
    *ret_lanes = lanes.count;
    let_join(sampler);
    return 0;
}
