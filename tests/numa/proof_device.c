/*
 * proof_device.c: the cpu device `cpu:2` in the four-node machine (see proof.c): its threads stay
 * on node 2's CPUs and its memory on node 2, while host memory lies where it was asked for.
 */
#include "proof.h"

#include "base/str.h"
#include "device/device.h"
#include "machine/machine.h"

#include <dirent.h>
#include <unistd.h>

#define SIZE_BYTES ((size_t)4 << 20)

/* Whether all threads but this one may run within `cpus` only; `ret_count` is how many they are. */
static bool others_within(const struct lab_cpus *cpus, int *ret_count, struct lab_err *err) {
    DIR *tasks = opendir("/proc/self/task");
    bool within = tasks != NULL;
    *ret_count = 0;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct lab_cpus allowed = {0};
        if (tid == 0 || tid == gettid())
            continue;
        if (lab_bind_read_cpus(tid, &allowed, err) < 0 || !cpus_within(&allowed, cpus))
            within = false;
        lab_mem_free(allowed.items);
        *ret_count += 1;
    }
    if (tasks)
        closedir(tasks);
    return within;
}

/* Copies there and back between a host buffer on `host_node` and the device, then asks for both. */
static void prove_copies(const struct lab_machine *machine, struct lab_device *device,
                         struct lab_stream *stream, enum lab_memory_kind kind, int host_node) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_buffer host = {0}, memory = {0};
    if (lab_buffer_open(device, kind, host_node, SIZE_BYTES, &host, &err) < 0 ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, SIZE_BYTES, &memory, &err) < 0) {
        claim(false, &err, "buffers can be had on node %d and the device", host_node);
        lab_buffer_close(&host);
        return;
    }
    memset(host.data, 0x5a, SIZE_BYTES);
    bool copied =
        lab_copy(stream, memory.data, host.data, SIZE_BYTES, LAB_MEMORY_DEVICE, kind, &err) == 0 &&
        lab_stream_sync(stream, &err) == 0;
    memset(host.data, 0, SIZE_BYTES);
    copied =
        copied &&
        lab_copy(stream, host.data, memory.data, SIZE_BYTES, kind, LAB_MEMORY_DEVICE, &err) == 0 &&
        lab_stream_sync(stream, &err) == 0;
    const unsigned char *bytes = host.data;
    claim(copied && bytes[0] == 0x5a && memcmp(bytes, bytes + 1, SIZE_BYTES - 1) == 0, &err,
          "data goes from node %d to the device and back", host_node);
    claim(lab_memory_prove(machine, memory.data, SIZE_BYTES, 2, &err) == 0, &err,
          "the device's memory is on node 2");
    claim(lab_memory_prove(machine, host.data, SIZE_BYTES, host_node, &err) == 0, &err,
          "the host's is on node %d", host_node);
    lab_buffer_close(&memory);
    lab_buffer_close(&host);
}

static void prove_open_device(const struct lab_machine *machine, struct lab_device *device) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_stream *stream = NULL;
    if (lab_stream_open(device, LAB_STREAM_COPY, &stream, &err) < 0) {
        claim(false, &err, "a stream can be opened");
        return;
    }
    prove_copies(machine, device, stream, LAB_MEMORY_HOST_PINNED, 1);
    prove_copies(machine, device, stream, LAB_MEMORY_HOST_PAGEABLE, 0);
    prove_copies(machine, device, stream, LAB_MEMORY_HOST_PINNED, 3);
    int threads;
    bool within = others_within(&device->ref.cpus, &threads, &err);
    claim(within && threads > 0, &err, "all %d threads of %s may run on its CPUs only", threads,
          device->ref.name);
    struct lab_buffer huge = {0};
    int result = lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, (size_t)1 << 30, &huge, &err);
    claim(failed_with(result, &err, LAB_ERR_MEMORY, "1.00 GiB"), &err,
          "more memory than node 2 has is refused");
    lab_stream_close(stream);
}

static void prove_selected(const struct lab_machine *machine, const char *selector,
                           const char *expected_cpus) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_device_list list = {0};
    struct lab_device *device = NULL;
    struct lab_str cpus;
    lab_str_init(&cpus);
    int result = lab_device_select(machine, selector, &arena, &list, &err);
    if (result == 0 && list.count > 0)
        lab_cpus_write(&list.items[0].cpus, &cpus);
    claim(result == 0 && list.count == 1 && list.items[0].node == 2 &&
              lab_str_equal(cpus.text, expected_cpus),
          &err, "%s is one device on node 2 with CPUs %s", selector, expected_cpus);
    if (result == 0 && list.count == 1) {
        result = lab_device_open(machine, &list.items[0], LAB_DEVICE_SETUP, &device, &err);
        claim(result == 0, &err, "%s opens", selector);
        if (result == 0)
            prove_open_device(machine, device);
        lab_device_close(device);
    }
    lab_str_release(&cpus);
    lab_arena_release(&arena);
}

void prove_device(const struct lab_machine *machine) {
    struct lab_err err = LAB_ERR_INIT;
    lab_bind_thread_to_node(machine, 0, &err);
    prove_selected(machine, "cpu:2", "4-5");
    prove_selected(machine, "cpu:2/2.1", "5");

    LAB_AUTO(arena, arena);
    struct lab_device_list list = {0};
    int result = lab_device_select(machine, "cpu:3", &arena, &list, &err);
    claim(failed_with(result, &err, LAB_ERR_USER, "3"), &err,
          "cpu:3 is refused: that node has memory only");
    result = lab_device_select(machine, "cpu", &arena, &list, &err);
    claim(result == 0 && list.count == 3, &err, "cpu is a device for each node with cores");
}
