/*
 * xid.c: errors that the driver reports of a GPU (Xid), through a set of events. They are fetched
 * without waiting; a wait that returns at once with nothing in it is not tried again before the
 * next reading.
 */
#include "probe/nvml/nvml.h"

#define NEW_MAX (int)(sizeof((struct nvml_gpu *)0)->new_xids / sizeof(int))

static void forget(struct nvml_gpu *gpu) {
    if (gpu->events)
        gpu->probe->nvml->nvmlEventSetFree(gpu->events);
    gpu->events = NULL;
}

void nvml_watch_xids(struct nvml_gpu *gpu) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    struct nvml_unit *unit = &gpu->unit;
    if (gpu->events || !nvml_may_ask(unit, NVML_ASK_XID) || !nvml->nvmlEventSetCreate ||
        !nvml->nvmlEventSetFree || !nvml->nvmlDeviceRegisterEvents ||
        (!nvml->nvmlEventSetWait_v2 && !nvml->nvmlEventSetWait))
        return;
    if (nvml->nvmlEventSetCreate(&gpu->events) != LAB_NVML_SUCCESS)
        gpu->events = NULL;
    else if (!nvml_answered(
                 unit, NVML_ASK_XID, "nvmlDeviceRegisterEvents",
                 nvml->nvmlDeviceRegisterEvents(unit->handle, LAB_NVML_EVENT_XID, gpu->events)))
        forget(gpu);
}

void nvml_read_xids(struct nvml_gpu *gpu) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    for (int i = 0; gpu->events && i < NEW_MAX; i++) {
        struct lab_nvml_event event = {0};
        lab_nvml_result result = nvml->nvmlEventSetWait_v2
                                     ? nvml->nvmlEventSetWait_v2(gpu->events, &event, 0)
                                     : nvml->nvmlEventSetWait(gpu->events, &event, 0);
        if (nvml_is_refusal(result))
            forget(gpu);
        if (result != LAB_NVML_SUCCESS || event.type != LAB_NVML_EVENT_XID)
            break; /* a GPU that is lost shows in what is read of it */
        gpu->xids++;
        gpu->last_xid = (int64_t)event.data;
        gpu->new_xids[gpu->new_xid_count++] = (int)event.data;
    }
}

const char *nvml_xid_words(int xid) {
    switch (xid) {
    case 13:
        return "a program's kernel failed";
    case 31:
        return "invalid memory access of a program";
    case 43:
        return "a program's work was stopped after an error of its own";
    case 45:
        return "work was removed with the program that launched it";
    case 48:
        return "memory error that could not be corrected";
    case 63:
        return "a row of memory was remapped";
    case 64:
        return "a row of memory could not be remapped";
    case 74:
        return "NVLink error";
    case 79:
        return "the GPU fell off the bus";
    case 94:
        return "memory error, contained in one program";
    case 95:
        return "memory error that was not contained: reset the GPU";
    case 119:
    case 120:
        return "the GPU's own firmware doesn't answer";
    default:
        return "";
    }
}
