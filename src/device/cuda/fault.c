/*
 * fault.c: waits for a device that waits for others. A sum's kernel may be held up by another rank:
 * so who waits for the device looks at the sum, too, and not only at the device.
 */
#include "device/cuda/cuda.h"

#include <sched.h>

#define LOOK_NS (200 * LAB_NS_PER_US) /* between two looks at what may have failed */

void cuda_fault_add(struct cuda_device *device, struct cuda_fault *fault) {
    fault->next = device->faults;
    device->faults = fault;
}

void cuda_fault_remove(struct cuda_device *device, struct cuda_fault *fault) {
    struct cuda_fault **link = &device->faults;
    while (*link && *link != fault)
        link = &(*link)->next;
    if (*link)
        *link = fault->next;
}

int cuda_faults_check(struct cuda_device *device, struct lab_err *err) {
    for (struct cuda_fault *fault = device->faults; fault; fault = fault->next)
        if (fault->check(fault->state, err))
            return -1;
    return 0;
}

static struct cuda_fault *strictest(const struct cuda_device *device) {
    struct cuda_fault *found = NULL;
    for (struct cuda_fault *fault = device->faults; fault; fault = fault->next)
        if (fault->limit_s > 0 && (!found || fault->limit_s < found->limit_s))
            found = fault;
    return found;
}

int cuda_faults_wait(struct cuda_device *device, lab_cu_stream stream, lab_cu_event event,
                     struct lab_err *err) {
    const struct lab_clock *clock = device->base.clock;
    struct cuda_fault *fault = strictest(device);
    if (!fault)
        return 0;
    int64_t start_ns = lab_clock_now(clock), looked_ns = start_ns;
    for (;;) {
        lab_cu_result result =
            stream ? device->cuda->cuStreamQuery(stream) : device->cuda->cuEventQuery(event);
        if (result != LAB_CU_NOT_READY)
            return cuda_check(result, stream ? "cuStreamQuery" : "cuEventQuery", err);
        int64_t now_ns = lab_clock_now(clock);
        if (now_ns - looked_ns < LOOK_NS) {
            sched_yield();
            continue;
        }
        looked_ns = now_ns;
        if (cuda_faults_check(device, err))
            return -1;
        if (now_ns - start_ns <= (int64_t)(fault->limit_s * 1e9))
            continue;
        struct lab_err why = LAB_ERR_INIT;
        lab_err_set(&why, LAB_ERR_SYSTEM, "%s did not finish within %g s", device->base.ref.name,
                    fault->limit_s);
        fault->give_up(fault->state, &why);
        if (err)
            *err = why;
        return -1;
    }
}
