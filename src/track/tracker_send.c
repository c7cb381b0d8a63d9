/*
 * tracker_send.c: a study's runs, one after the other, batch by batch: read, encoded, delivered,
 * noted. A process that dies between the last two sends the same batch again: a file is cut to what
 * was noted first, and a tracker that delivers by itself gets it under the same number.
 */
#include "track/tracker_send.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/own.h"
#include "base/hash.h"
#include "load/study_file.h"
#include "run/folder.h"
#include "store/study/results.h"
#include "track/tracker_about.h"
#include "track/tracker_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMED_MOST 3

int64_t track_feed_wall(const struct track_feed *feed, int64_t time_ns) {
    const struct lab_run *run = feed->run;
    return time_ns < run->start_ns ? run->start_wall_ns
                                   : run->start_wall_ns + (time_ns - run->start_ns);
}

/* --- delivering --- */

static int make_above(const char *place, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *refused, *slash = strrchr(place, '/');
    int reason = lab_file_make_folders(lab_arena_strndup(&arena, place, (size_t)(slash - place)),
                                       0777, &arena, &refused);
    return reason ? lab_err_set_errno(err, LAB_ERR_SYSTEM, reason, "making %s", refused) : 0;
}

static int append(const char *place, const struct lab_track_out *out, struct lab_err *err) {
    LAB_AUTO_CLOSE int fd = lab_own_open(place, LAB_OWN_CHANGE, err);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, out->offset) < 0 || lseek(fd, out->offset, SEEK_SET) < 0 ||
        lab_file_write_all(fd, out->bytes.text, out->bytes.length) < 0 || fdatasync(fd) < 0 ||
        (out->offset == 0 && lab_file_sync_above(place) < 0))
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", place);
    return 0;
}

int track_deliver(const struct lab_tracker *tracker, const struct lab_track_run *run,
                  const char *place, int64_t batch, const struct lab_track_out *out,
                  struct lab_err *err) {
    if (!tracker->destination && make_above(place, err) < 0)
        return -1;
    return tracker->deliver ? tracker->deliver(run, place, batch, out, err)
                            : append(place, out, err);
}

/* What is in the feed, and the journal's line. The last batch of a run is made again the same
 * without a note before it: nothing follows that could be part of it. */
static int deliver(struct track_sender *sender, struct track_feed *feed, const char *place,
                   struct lab_err *err) {
    struct lab_track_out *out = &feed->out;
    if (sender->tracker->deliver && !feed->bound.attempt && !feed->at.ended &&
        track_journal_note(&sender->journal, feed->run->number, &feed->at, true, err) < 0)
        return -1;
    if (track_deliver(sender->tracker, feed->about, place, feed->at.batch, out, err) < 0)
        return -1;
    lab_failpoint("after-track-deliver");
    feed->at.batch++;
    feed->at.bytes += (int64_t)out->bytes.length;
    if (track_journal_note(&sender->journal, feed->run->number, &feed->at, false, err) < 0)
        return -1;
    feed->bound.attempt = 0;
    sender->sent->points += feed->points;
    feed->points = 0;
    out->offset = feed->at.bytes;
    lab_str_clear(&out->bytes);
    return 0;
}

/* --- a run --- */

static bool has_ended(const struct lab_run *run) {
    return run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED;
}

/* Of a simulated run, whose clock is its own, nothing before it has ended. */
static int64_t samples_until(const struct track_sender *sender, const struct lab_run *run) {
    if (has_ended(run))
        return run->end_ns;
    return lab_results_is_simulated(run) ? 0 : sender->now_ns;
}

/* Another attempt has reported nothing of the one before: it begins anew. So does a file that
 * was removed before its run had ended; later it may have been uploaded and cleaned up. */
static struct track_position find_position(const struct track_sender *sender,
                                           const struct lab_run *run, const char *place) {
    struct track_position at = sender->journal.items[run->number];
    struct stat info;
    bool gone = at.attempt && (!at.ended || sender->tracker->keeps) && !sender->tracker->deliver &&
                (stat(place, &info) < 0 || info.st_size < at.bytes);
    sender->sent->gone += gone && at.ended;
    if (at.attempt != run->attempts || gone)
        at = (struct track_position){.attempt = run->attempts,
                                     .all_gpus = sender->request->all_gpus};
    return at;
}

/* All GPUs are asked for, and what was sent is of the run's alone. */
static bool lacks_gpus(const struct track_sender *sender, const struct track_position *at) {
    return sender->request->all_gpus && !at->all_gpus;
}

/* A run that had been sent, and whose metrics were read anew since, is sent once more. */
static bool has_changed(const struct track_sender *sender, const struct lab_run *run,
                        const struct track_position *at) {
    if (!sender->compare || !sender->store || !at->ended || !at->digest ||
        track_metrics_digest(sender->store, run->number) == at->digest)
        return false;
    return true;
}

static void begin_again(struct track_position *at, const struct track_sender *sender) {
    *at = (struct track_position){.attempt = at->attempt,
                                  .revision = at->revision + 1,
                                  .all_gpus = at->all_gpus || sender->request->all_gpus};
}

static void name_run(const char **names, int number, const char *run, struct lab_arena *arena) {
    if (number < NAMED_MOST)
        *names = lab_arena_printf(arena, "%s%s%s", number ? *names : "", number ? ", " : "", run);
    else if (number == NAMED_MOST)
        *names = lab_arena_printf(arena, "%s, …", *names);
}

static int feed_run(struct track_sender *sender, struct track_feed *feed, const char *place,
                    struct lab_err *err) {
    LAB_AUTO(arena, arena);
    int64_t metrics, samples;
    bool last, bound;
    if (feed->at.batch == 0)
        sender->tracker->begin(feed->about, &feed->out);
    do {
        bound = feed->bound.attempt > 0;
        metrics = track_feed_metrics(feed, err);
        samples = metrics < 0 ? -1 : track_feed_samples(feed, err);
        if (samples < 0)
            return -1;
        last =
            bound ? feed->bound.ended : feed->ended && !feed->more_metrics && !feed->more_samples;
        if (last) {
            struct lab_track_end end = track_about_end(feed->run, &arena);
            if (feed->at.metric == 0 && track_feed_iterations(feed, err) < 0)
                return -1;
            sender->tracker->end(feed->about, &end, &feed->out);
            feed->at.ended = 1;
        }
        /* another attempt has begun meanwhile: what was read may be of that */
        if (!feed->ended && feed->store &&
            lab_store_run_start(feed->store, feed->run->number) != feed->run->start_ns)
            return 0;
        if (feed->out.bytes.length && deliver(sender, feed, place, err) < 0)
            return -1;
    } while (!last && (bound || metrics > 0 || samples > 0));
    return 0;
}

int track_send_run(struct track_sender *sender, const struct lab_run *run,
                   struct lab_track_run *about, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *place = sender->tracker->place(about, &arena);
    struct track_feed feed = {.tracker = sender->tracker,
                              .about = about,
                              .run = run,
                              .store = sender->store,
                              .recording = sender->recording,
                              .ended = has_ended(run),
                              .until_ns = samples_until(sender, run),
                              .max_points = sender->request->max_points > 0
                                                ? sender->request->max_points
                                                : LAB_TRACK_POINTS,
                              .at = find_position(sender, run, place)};
    bool changed = has_changed(sender, run, &feed.at), narrow = lacks_gpus(sender, &feed.at);
    if (changed)
        name_run(&sender->sent->changed_runs, sender->sent->changed++, run->id, sender->arena);
    if (changed || narrow)
        begin_again(&feed.at, sender);
    sender->sent->widened += narrow;
    feed.usage = feed.at.all_gpus ? NULL : sender->usage;
    about->revision = (int)feed.at.revision;
    if (feed.at.ended || sender->request->look) {
        if (!feed.at.ended)
            name_run(&sender->sent->unsent_runs, sender->sent->unsent++, run->id, sender->arena);
        sender->sent->runs += feed.at.ended > 0;
        return 0;
    }
    struct track_position next = sender->journal.next[run->number];
    if (next.attempt == feed.at.attempt && next.batch == feed.at.batch)
        feed.bound = next;
    lab_track_out_init(&feed.out);
    feed.out.offset = feed.at.bytes;
    int result = feed_run(sender, &feed, place, err);
    lab_track_out_release(&feed.out);
    sender->sent->thinned_from += feed.thinned_from;
    sender->sent->thinned_to += feed.thinned_to;
    sender->sent->runs += result == 0 && feed.at.ended;
    sender->sent->unsent += result < 0 || !feed.at.ended;
    return result < 0 ? lab_err_context(err, "%s: %s", sender->tracker->name, run->id) : 0;
}

/* --- a study --- */

/* The first failure ends it: the disk is full, the folder isn't ours. What is behind it counts. */
static int send_runs(struct track_sender *sender, struct lab_study_file *file,
                     struct lab_err *err) {
    int64_t budget_ns = sender->sent->running ? sender->request->budget_ns : 0;
    int64_t began_ns = lab_clock_thread_ns();
    int result = 0;
    for (int i = 0; i < file->run_count; i++) {
        LAB_AUTO(arena, arena);
        const struct lab_run *run = &file->runs[i];
        if (run->attempts == 0)
            continue;
        const struct track_position *at = &sender->journal.items[run->number];
        bool spent = budget_ns && lab_clock_thread_ns() - began_ns > budget_ns;
        if (result < 0 || spent) {
            sender->sent->unsent += !at->ended;
            continue;
        }
        if (at->ended && at->attempt == run->attempts && !sender->compare &&
            !lacks_gpus(sender, at) && (!sender->tracker->keeps || sender->sent->running)) {
            sender->sent->runs++;
            continue;
        }
        struct lab_track_run about =
            track_about_run(file, run, sender->sent->project, sender->host, &arena);
        track_about_override(&about, sender->request, &arena);
        if (sender->request->progress)
            sender->request->progress(sender->request->state, i + 1, file->run_count);
        result = track_send_run(sender, run, &about, err);
    }
    return result < 0 ? -1 : track_send_whole(sender, file, err);
}

int track_send_open(struct track_sender *sender, const char *home, int run_count,
                    struct lab_arena *arena, struct lab_err *err) {
    const struct lab_tracker *tracker = sender->tracker;
    const char *name = tracker->by_project
                           ? lab_arena_printf(arena, "%s-%s", tracker->name, sender->sent->project)
                           : tracker->name;
    const struct lab_track_request *request = sender->request;
    uint64_t hash = LAB_HASH_START;
    if (tracker->destination)
        hash = lab_hash_text(hash, tracker->destination(arena));
    const char *const asked[] = {request->run_name, request->folder, request->prefix,
                                 request->renamed,
                                 tracker->variable ? getenv(tracker->variable) : NULL};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (asked[i] && *asked[i])
            hash = lab_hash_text(lab_hash_bytes(hash, &i, sizeof i), asked[i]);
    if (hash != LAB_HASH_START)
        name = lab_arena_printf(arena, "%s-%08x", name, (unsigned)(hash ^ hash >> 32));
    if (track_journal_open(home, name, run_count, sender->request->look, arena, &sender->journal,
                           &sender->sent->busy, err) < 0)
        return lab_err_context(err, "%s", tracker->name);
    return 0;
}

static int send_study(struct track_sender *sender, struct lab_study_file *file,
                      struct lab_arena *arena, struct lab_err *err) {
    const char *name = sender->request->run_name;
    if (name && !strstr(name, "{run}"))
        return lab_err_set(err, LAB_ERR_USER, "the name of a study's runs needs {run}: '%s {run}'",
                           name);
    sender->store = file->store;
    sender->sent->project = track_about_project(file, sender->request->project, arena);
    if (lab_study_file_runs(file, err) < 0 ||
        track_send_open(sender, file->folder, file->run_count, arena, err) < 0) {
        for (int i = 0; i < file->run_count; i++) /* how far each came isn't known */
            sender->sent->unsent += file->runs[i].attempts > 0;
        return -1;
    }
    struct stat info;
    const char *path = lab_arena_printf(arena, "%s/study.db", file->folder);
    sender->arena = arena;
    sender->host = track_about_host(file, arena);
    sender->compare =
        !sender->sent->running && stat(path, &info) == 0 &&
        info.st_mtim.tv_sec * LAB_NS_PER_S + info.st_mtim.tv_nsec > sender->journal.changed_ns;
    int result = sender->sent->busy ? 0 : send_runs(sender, file, err);
    track_journal_close(&sender->journal);
    return result;
}

/* --- either --- */

void lab_track_request_complete(struct lab_track_request *request) {
    const struct {
        const char *name, **text;
    } asked[] = {
        {"GPULAB_TRACK_PROJECT", &request->project}, {"GPULAB_TRACK_RUN_NAME", &request->run_name},
        {"GPULAB_TRACK_FOLDER", &request->folder},   {"GPULAB_TRACK_PREFIX", &request->prefix},
        {"GPULAB_TRACK_RENAME", &request->renamed},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (!*asked[i].text || !**asked[i].text)
            *asked[i].text = getenv(asked[i].name);
        if (*asked[i].text && !**asked[i].text)
            *asked[i].text = NULL;
    }
    request->all_gpus |= lab_str_equal(getenv("GPULAB_TRACK_GPUS"), "all");
}

static bool is_recording(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool lab_track_is_running(const char *path) {
    return is_recording(path) ? track_recording_is_open(path) : lab_folder_held(path, NULL);
}

const char *lab_track_home(const char *path, struct lab_arena *arena) {
    return is_recording(path) ? lab_arena_printf(arena, "%s.track", path) : path;
}

/* "loss=error,acc=accuracy" */
static int check_renamed(const char *list, struct lab_err *err) {
    for (const char *at = list ? list : ""; *at; at += *at == ',') {
        size_t length = strcspn(at, ","), name = strcspn(at, "=,");
        if (name == 0 || name + 1 >= length)
            return lab_err_set(err, LAB_ERR_USER, "--rename needs OLD=NEW, not '%.*s'", (int)length,
                               at);
        at += length;
    }
    return 0;
}

int lab_track_send(const char *path, const struct lab_tracker *tracker,
                   const struct lab_track_request *request, struct lab_arena *arena,
                   struct lab_track_sent *ret_sent, struct lab_err *err) {
    struct track_sender sender = {.tracker = tracker, .request = request, .sent = ret_sent};
    struct lab_study_file *file;
    LAB_AUTO(arena, scratch);
    *ret_sent = (struct lab_track_sent){.project = ""};
    if (check_renamed(request->renamed, err) < 0)
        return -1;
    /* asked first: what a runner wrote before its end is then read below */
    ret_sent->running = lab_track_is_running(path);
    sender.now_ns = lab_clock_now(lab_clock_system());
    if (is_recording(path))
        return track_send_recording(&sender, path, arena, err);
    if (lab_study_file_open(path, &scratch, &file, err) < 0)
        return -1;
    int result = send_study(&sender, file, arena, err);
    lab_study_file_close(file);
    return result;
}
