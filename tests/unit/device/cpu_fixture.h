/*
 * cpu_fixture.h: what the tests of the cpu backend share: this machine, a device of it, and streams
 * that can be held at a gate. Not timing but rendezvous proves what runs beside what: where streams
 * didn't really run side by side, these tests would never end.
 */
#pragma once

#include "test.h"

#include "base/mem.h"
#include "device/cpu/cpu.h"
#include "machine/machine.h"

#include <semaphore.h>

struct cpu_fixture {
    struct lab_machine *machine;
    struct lab_arena arena;
    struct lab_device *device;
};

static inline struct lab_device *fixture_device(struct cpu_fixture *fixture, const char *selector,
                                                int copy_cores) {
    struct lab_device_list list;
    struct lab_device *device = NULL;
    ASSERT_OK(lab_device_select(fixture->machine, selector, &fixture->arena, &list, err));
    ASSERT_OK(lab_device_open(fixture->machine, &list.items[0],
                              (struct lab_device_setup){.copy_cores = copy_cores}, &device, err));
    return device;
}

static inline int fixture_open(void **state) {
    struct cpu_fixture *fixture = lab_mem_alloc(1, sizeof *fixture);
    lab_arena_init(&fixture->arena);
    ASSERT_OK(lab_machine_open(NULL, &fixture->machine, err));
    fixture->device = fixture_device(fixture, "cpu", -1);
    *state = fixture;
    return 0;
}

/* The same with a device of one core: what holds for many must hold there, only slower. */
static inline int fixture_open_one_core(void **state) {
    char selector[32];
    fixture_open(state);
    struct cpu_fixture *fixture = *state;
    snprintf(selector, sizeof selector, "%s/%d.0", fixture->device->ref.name,
             fixture->device->ref.cpus.count);
    lab_device_close(fixture->device);
    fixture->device = fixture_device(fixture, selector, -1);
    return 0;
}

static inline int fixture_close(void **state) {
    struct cpu_fixture *fixture = *state;
    lab_device_close(fixture->device);
    lab_machine_close(fixture->machine);
    lab_arena_release(&fixture->arena);
    lab_mem_free(fixture);
    return 0;
}

/* A program's `begin`: runs its tests with either. */
static inline int on_all_and_on_one(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return lab_test_run("all cores", fixture_open, fixture_close) +
           lab_test_run("one core", fixture_open_one_core, fixture_close);
}

static inline struct lab_stream *fixture_stream(struct lab_device *device) {
    struct lab_stream *stream = NULL;
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, err));
    return stream;
}

static inline struct lab_event *fixture_event(struct lab_device *device) {
    struct lab_event *event = NULL;
    ASSERT_OK(lab_event_open(device, &event, err));
    return event;
}

/* --- commands whose effect the test sees and steers --- */

static inline void gate_wait_now(struct cpu_stream *stream, void *gate) {
    (void)stream;
    while (sem_wait(gate))
        continue;
}

static inline void gate_open_now(struct cpu_stream *stream, void *gate) {
    (void)stream;
    sem_post(gate);
}

/* The stream does nothing more until somebody posts the gate. */
static inline void stream_hold(struct lab_stream *stream, sem_t *gate) {
    cpu_stream_call((struct cpu_stream *)stream, gate_wait_now, gate);
}

static inline void stream_release(struct lab_stream *stream, sem_t *gate) {
    cpu_stream_call((struct cpu_stream *)stream, gate_open_now, gate);
}

static inline bool stream_is_done(struct lab_stream *base) {
    struct cpu_stream *stream = (struct cpu_stream *)base;
    return cpu_counter_value(&stream->done) >= stream->enqueued;
}
