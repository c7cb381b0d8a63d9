/* Events: what a wait means, proven with streams held at gates. */
#include "cpu_fixture.h"

struct world {
    struct lab_stream *a, *b;
    struct lab_event *event;
    sem_t gate;
};

static struct world world_open(struct lab_device *device) {
    return (struct world){
        .a = fixture_stream(device), .b = fixture_stream(device), .event = fixture_event(device)};
}

static void world_close(struct world *world) {
    lab_stream_close(world->a);
    lab_stream_close(world->b);
    lab_event_close(world->event);
    sem_destroy(&world->gate);
}

static void store(struct cpu_stream *stream, void *flag) {
    (void)stream;
    *(int *)flag = 1; /* plain memory: only the event orders it */
}

struct seen {
    int flag, value;
};

static void look(struct cpu_stream *stream, void *context) {
    (void)stream;
    struct seen *seen = context;
    seen->value = seen->flag;
}

LAB_TEST(a_wait_orders_two_streams) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 0);
    struct seen seen[50] = {0};
    for (int i = 0; i < 50; i++) {
        stream_hold(world.a, &world.gate);
        cpu_stream_call((struct cpu_stream *)world.a, store, &seen[i].flag);
        ASSERT_OK(lab_event_record(world.event, world.a, err));
        ASSERT_OK(lab_event_wait(world.event, world.b, err));
        cpu_stream_call((struct cpu_stream *)world.b, look, &seen[i]);
    }
    for (int i = 0; i < 50; i++)
        sem_post(&world.gate);
    ASSERT_OK(lab_stream_sync(world.b, err));
    for (int i = 0; i < 50; i++)
        assert_int_equal(seen[i].value, 1);
    world_close(&world);
}

LAB_TEST(an_event_never_recorded_holds_nobody) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 0);
    int64_t time_ns;
    ASSERT_OK(lab_event_wait(world.event, world.a, err));
    ASSERT_OK(lab_stream_sync(world.a, err));
    ASSERT_OK(lab_event_sync(world.event, err));
    ASSERT_FAILS(lab_event_time(world.event, &time_ns, err), LAB_ERR_SYSTEM, "never recorded");
    world_close(&world);
}

LAB_TEST(a_wait_keeps_the_recording_it_was_given) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 0);
    struct lab_stream *c = fixture_stream(fixture->device);
    /* given a recording in b, and a wait for it, when the event is recorded anew in held a */
    ASSERT_OK(lab_event_record(world.event, world.b, err));
    ASSERT_OK(lab_event_wait(world.event, c, err));
    stream_hold(world.a, &world.gate);
    ASSERT_OK(lab_event_record(world.event, world.a, err));
    /* then the wait is over without a */
    ASSERT_OK(lab_stream_sync(c, err));
    sem_post(&world.gate);
    lab_stream_close(c);
    world_close(&world);
}

LAB_TEST(a_later_recording_elsewhere_releases_no_earlier_wait) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 0);
    struct lab_stream *c = fixture_stream(fixture->device);
    struct seen seen = {0};
    stream_hold(world.a, &world.gate);
    cpu_stream_call((struct cpu_stream *)world.a, store, &seen.flag);
    ASSERT_OK(lab_event_record(world.event, world.a, err));
    ASSERT_OK(lab_event_wait(world.event, c, err));
    cpu_stream_call((struct cpu_stream *)c, look, &seen);
    ASSERT_OK(lab_event_record(world.event, world.b, err));
    ASSERT_OK(lab_event_sync(world.event, err)); /* b's, while a is held */
    assert_false(stream_is_done(c));
    int64_t before_ns, after_ns;
    ASSERT_OK(lab_event_time(world.event, &before_ns, err));
    sem_post(&world.gate);
    ASSERT_OK(lab_stream_sync(c, err));
    assert_int_equal(seen.value, 1);
    /* and a's recording, passed later, is still not the last one */
    ASSERT_OK(lab_event_time(world.event, &after_ns, err));
    assert_true(before_ns == after_ns);
    lab_stream_close(c);
    world_close(&world);
}

LAB_TEST(times_follow_the_order_of_passing) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 1);
    struct lab_event *second = fixture_event(fixture->device);
    int64_t start_ns = lab_clock_now(fixture->device->clock), first_ns, second_ns;
    ASSERT_OK(lab_event_record(world.event, world.a, err));
    ASSERT_OK(lab_event_wait(world.event, world.b, err));
    ASSERT_OK(lab_event_record(second, world.b, err));
    ASSERT_OK(lab_event_time(second, &second_ns, err));
    ASSERT_OK(lab_event_time(world.event, &first_ns, err));
    assert_true(start_ns <= first_ns && first_ns <= second_ns);
    assert_true(second_ns <= lab_clock_now(fixture->device->clock));
    lab_event_close(second);
    world_close(&world);
}

LAB_TEST(events_and_streams_may_close_while_they_are_waited_for) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 0);
    struct lab_stream *c = fixture_stream(fixture->device);
    struct lab_event *brief = fixture_event(fixture->device);
    struct seen seen = {0};
    sem_t later;
    sem_init(&later, 0, 0);
    stream_hold(world.a, &world.gate);
    cpu_stream_call((struct cpu_stream *)world.a, store, &seen.flag);
    ASSERT_OK(lab_event_record(brief, world.a, err));
    stream_hold(c, &later);
    ASSERT_OK(lab_event_wait(brief, c, err));
    cpu_stream_call((struct cpu_stream *)c, look, &seen);
    lab_event_close(brief);
    stream_release(world.b, &world.gate);
    lab_stream_close(world.a);
    sem_post(&later);
    ASSERT_OK(lab_stream_sync(c, err));
    assert_int_equal(seen.value, 1);
    world.a = NULL;
    lab_stream_close(c);
    sem_destroy(&later);
    world_close(&world);
}

LAB_TEST(another_device_waits_but_records_nothing) {
    struct cpu_fixture *fixture = *state;
    struct world world = world_open(fixture->device);
    sem_init(&world.gate, 0, 0);
    struct lab_device *other = fixture_device(fixture, "cpu", -1);
    struct lab_event *foreign = fixture_event(other);
    ASSERT_FAILS(lab_event_record(foreign, world.a, err), LAB_ERR_SYSTEM, "belongs to");
    struct lab_stream *elsewhere = fixture_stream(other);
    struct seen seen = {0};
    stream_hold(elsewhere, &world.gate);
    cpu_stream_call((struct cpu_stream *)elsewhere, store, &seen.flag);
    ASSERT_OK(lab_event_record(foreign, elsewhere, err));
    ASSERT_OK(lab_event_wait(foreign, world.a, err));
    cpu_stream_call((struct cpu_stream *)world.a, look, &seen);
    sem_post(&world.gate);
    ASSERT_OK(lab_stream_sync(world.a, err));
    assert_int_equal(seen.value, 1);
    lab_stream_close(elsewhere);
    lab_event_close(foreign);
    lab_device_close(other);
    world_close(&world);
}

const struct lab_test_program lab_test_program = {.begin = on_all_and_on_one};
