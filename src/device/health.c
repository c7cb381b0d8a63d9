/*
 * health.c: what health.h promises, apart from the backends' part: the dispatch, and errors in the
 * kernel log.
 */
#include "device/health.h"

#include "base/file/file.h"
#include "base/list.h"
#include "base/str.h"
#include "device/device.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_BYTES_MOST ((size_t)64 << 20)
#define XIDS_MOST      4096

int lab_device_health(const struct lab_machine *machine, const struct lab_device_list *devices,
                      struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err) {
    const struct lab_backend *backend =
        devices->count ? lab_backend_find(devices->items[0].backend) : NULL;
    if (!backend || !backend->health)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s reports no state",
                           backend ? backend->name : "no device");
    return backend->health(machine, devices, arena, ret_health, err);
}

struct lab_gpu_health lab_gpu_health_unknown(void) {
    struct lab_gpu_health health = {.name = "",
                                    .address = "",
                                    .node = LAB_HEALTH_UNKNOWN,
                                    .fabric = LAB_FABRIC_UNKNOWN,
                                    .process_count = LAB_HEALTH_UNKNOWN,
                                    .clock_most_mhz = NAN,
                                    .power_limit_w = NAN,
                                    .power_default_w = NAN,
                                    .temperature_c = NAN};
    int64_t *const numbers[] = {
        &health.pcie_generation, &health.pcie_generation_most, &health.pcie_width,
        &health.pcie_width_most, &health.performance_state,    &health.ecc_on,
        &health.ecc_corrected,   &health.ecc_uncorrected,      &health.rows_remapped,
        &health.rows_pending,    &health.rows_failed,          &health.recovery_action,
        &health.persistence,     &health.clock_reasons,        &health.nvlinks,
        &health.nvlinks_active,  &health.fabric_status,        &health.fabric_clique,
        &health.fabric_degraded, &health.memory_bytes,         &health.memory_used_bytes,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = LAB_HEALTH_UNKNOWN;
    return health;
}

/* --- the kernel log --- */

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=…": the domain may have 4 or 8 digits. */
static void read_line(const char *line, struct lab_arena *arena, struct lab_health *health) {
    static const char mark[] = "NVRM: Xid (PCI:";
    const char *at = strstr(line, mark);
    char *end;
    if (!at || health->xid_count == XIDS_MOST)
        return;
    unsigned long parts[3];
    at += sizeof mark - 1;
    for (int i = 0; i < 3; i++, at = end + 1) {
        parts[i] = strtoul(at, &end, 16);
        if (end == at || *end != (i < 2 ? ':' : i == 2 && *end == '.' ? '.' : ')'))
            return;
    }
    const char *number = strchr(end, ':');
    if (!number || !isdigit((unsigned char)*(number += strspn(number, ": "))))
        return;
    struct lab_xid *xid = &LAB_ADD(health->xids, health->xid_count, arena);
    *xid = (struct lab_xid){.number = (int)strtol(number, NULL, 10)};
    snprintf(xid->address, sizeof xid->address, "%04x:%02x:%02x.0", (unsigned)parts[0] & 0xffffu,
             (unsigned)parts[1] & 0xffu, (unsigned)parts[2] & 0xffu);
}

/* Of /dev/kmsg a read gives one record, and EAGAIN at the end. */
static int read_log(int fd, struct lab_str *text) {
    char record[8192];
    while (text->length < LOG_BYTES_MOST) {
        ssize_t got = read(fd, record, sizeof record);
        if (got > 0)
            lab_str_add_bytes(text, record, (size_t)got);
        else if (got == 0 || errno == EAGAIN)
            return 0;
        else if (errno != EPIPE && errno != EINTR && errno != EINVAL) /* overwritten meanwhile */
            return errno;
    }
    return 0;
}

void lab_health_read_xids(const char *path, struct lab_arena *arena, struct lab_health *health) {
    LAB_AUTO(str, text);
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int problem = fd < 0 ? errno : read_log(fd, &text);
    if (problem) {
        health->xids_unknown = lab_arena_printf(
            arena, "the kernel log can't be read (%s: %s)", path,
            problem == EPERM || problem == EACCES ? "needs root or dmesg_restrict=0"
                                                  : strerror(problem));
        return;
    }
    unsigned long long first, time_us; /* of the first record: "6,608,51747123456,-;…" */
    if (sscanf(text.text, "%*u,%llu,%llu,", &first, &time_us) == 2 && first > 0)
        health->xids_from_s = 1e-6 * (double)time_us;
    for (char *line = text.text; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        read_line(line, arena, health);
        line = end ? end + 1 : NULL;
    }
}
