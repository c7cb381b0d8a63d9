/* device_info.h: devices as reports want them: plain data, without the backend behind it. */
#ifndef LAB_DEVICE_DEVICE_INFO_H
#define LAB_DEVICE_DEVICE_INFO_H

#include "device/device.h"
#include "report/report.h"

/* Shares the strings of `ref`. */
struct lab_report_device lab_device_describe(const struct lab_device_ref *ref);

/* Asks every backend what it has on this machine; returns how many backends there are. */
int lab_device_backends(const struct lab_machine *machine, struct lab_arena *arena,
                        struct lab_report_backend **ret_backends);

/* Only what the selector names, backend by backend; backends without a member are left out. Returns
 * how many there are, or -1. */
int lab_device_selected(const struct lab_machine *machine, const char *selector,
                        struct lab_arena *arena, struct lab_report_backend **ret_backends,
                        struct lab_err *err);

#endif
