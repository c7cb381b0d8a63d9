/* test_probe_replay.c: a recording is played when its time comes, in its order, at any speed. */
#include "sampler_fixture.h"

extern const struct lab_probe lab_probe_replay;

static const struct lab_probe *const replay_probes[] = {&lab_probe_replay, NULL};

/* Two GPUs, three ticks each, 100 ms apart from 7 s on; a list of processes and an event
 * between. */
static int64_t times_a[] = {7000 * MS, 7100 * MS, 7200 * MS};
static int64_t times_b[] = {7050 * MS, 7150 * MS, 7250 * MS};
static int64_t numbers_a[] = {10, 11, 12}, numbers_b[] = {20, 21, 22};
static uint8_t valid_a[] = {1, 1, 1}, valid_b[] = {1, 0, 1};
static int64_t *values[2][1] = {{numbers_a}, {numbers_b}};
static uint8_t *valid[2][1] = {{valid_a}, {valid_b}};
static struct lab_track tracks[2];
static struct lab_sample_event events[] = {
    {.time_ns = 7100 * MS, .entity = 1, .kind = LAB_EVENT_XID, .number = 79, .text = "lost"}};
static struct lab_process_gpu on_gpu_1 = {.entity = 1};
static struct lab_process_sample processes[] = {{.pid = 42,
                                                 .user = "",
                                                 .name = "",
                                                 .command = "",
                                                 .container = "",
                                                 .gpus = &on_gpu_1,
                                                 .gpu_count = 1,
                                                 .advice = ""}};
static struct lab_process_list lists[] = {{7160 * MS, processes, 1, 0}};
static struct lab_recording recording = {.path = "r.db",
                                         .tracks = tracks,
                                         .track_count = 2,
                                         .events = events,
                                         .event_count = 1,
                                         .processes = lists,
                                         .process_count = 1};

static void replay_rig(struct rig *rig, double speed) {
    rig_open(rig, 2); /* for the entities */
    for (int i = 0; i < 2; i++)
        tracks[i] = (struct lab_track){.entity = fake.lanes[i].entity,
                                       .count = 3,
                                       .times_ns = i ? times_b : times_a,
                                       .values = values[i],
                                       .valid = valid[i]};
    static const char *const names[] = {"replay", NULL};
    rig->config.probes = names;
    rig->config.setup.recording = &recording;
    rig->config.setup.speed = speed;
    rig->asleep = 2;
}

static void replay_start(struct rig *rig) {
    struct sampler_parts parts = {replay_probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig->config, &rig->sampler, err));
}

LAB_TEST(it_plays_when_the_time_comes) {
    struct rig rig;
    replay_rig(&rig, 1);
    replay_start(&rig);
    rig_pass(&rig, 120);
    rig_take(&rig);
    assert_string_equal(rig.told.entities.text, "0:GPU-a/-1 1:GPU-b/-1 ");
    assert_string_equal(rig.told.ticks.text, "0@0=10 1@50=20 0@100=11 ");
    assert_string_equal(rig.told.events.text, "1@100 xid 79 lost; ");
    rig_pass(&rig, 1000);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "1@150=-1 0@200=12 1@250=22 ");
    assert_string_equal(rig.told.processes.text, "42:1, ; ");
    assert_string_equal(rig.told.events.text, "-1@300 mark the recording ends; ");
    rig_close(&rig);
}

LAB_TEST(it_plays_faster) {
    struct rig rig;
    replay_rig(&rig, 1e6);
    replay_start(&rig);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "0@0=10 1@0=20 0@0=11 1@0=-1 0@0=12 1@0=22 ");
    rig_close(&rig);
}

LAB_TEST(only_gpus_that_were_asked_for_are_played) {
    struct rig rig;
    replay_rig(&rig, 1);
    int gpus[] = {1};
    rig.config.gpus = gpus;
    rig.config.gpu_count = 1;
    replay_start(&rig);
    rig_pass(&rig, 400);
    rig_take(&rig);
    /* in the list, too, it is known by the number that it has here */
    assert_string_equal(rig.told.entities.text, "0:GPU-b/-1 ");
    assert_string_equal(rig.told.ticks.text, "0@50=20 0@150=-1 0@250=22 ");
    assert_string_equal(rig.told.processes.text, "42:0, ; ");
    rig_close(&rig);
}

LAB_TEST(an_empty_recording_ends_at_once_and_none_is_refused) {
    struct rig rig;
    replay_rig(&rig, 1);
    struct lab_recording empty = {.path = "e.db"};
    rig.config.setup.recording = &empty;
    replay_start(&rig);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "-1@0 mark the recording ends; ");
    rig_close(&rig);

    replay_rig(&rig, -1);
    struct sampler_parts parts = {replay_probes, fake_wall_offset_ns};
    ASSERT_FAILS(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err), LAB_ERR_USER, "");
    rig.config.setup.recording = NULL;
    ASSERT_SAYS(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err),
                "no recording to replay");
    told_release(&rig.told);
}
