/*
 * lease.h: physical devices are lent to one measurement at a time, across all users of the machine.
 */
#pragma once

#include "base/err.h"
#include "base/file/lock.h"
#include "base/mem.h"

#include <stdbool.h>

/*
 * $GPULAB_LOCK_DIR, or the first of /run/lock and /tmp that is open to all users: a file for each
 * physical device ("cpu:0"). Two studies that measured on one device would measure each other.
 */
struct lab_lease {
    int *fds;
    int count;
};

/*
 * Takes all of them (names may repeat) or none. While someone else holds one, `wait` is called
 * about five times a second with the device and its holder; it returns false to give up
 * (LAB_ERR_INTERRUPTED). NULL = doesn't wait: LAB_ERR_USER that says who.
 */
int lab_lease_take(const char *const *devices, int count, const struct lab_holder *self,
                   bool (*wait)(const char *device, const struct lab_holder *holder, void *state),
                   void *state, struct lab_lease *ret_lease, struct lab_err *err);
void lab_lease_release(struct lab_lease *lease); /* accepts a zeroed one */

/* Where they are; NULL with an error where there is no such directory. */
const char *lab_lease_folder(struct lab_arena *arena, struct lab_err *err);

/* The first of these directories in which every user can make files: the same one whoever asks.
 * Where there is none, as on a machine of one user, the first in which the caller can; NULL = no
 * such one. */
const char *lab_lease_directory(const char *const *places);
