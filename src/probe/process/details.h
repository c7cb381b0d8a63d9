/* details.h: what is read of a process more rarely: who runs it, where it may run, where it
 * runs. */
#pragma once

#include "probe/process/known.h"

/* Names of users, asked for once: with a directory service each question may take long. */
struct details_users {
    struct details_user {
        uint32_t uid;
        char *name;
    } * items;
    int count;
};

void details_users_release(struct details_users *users);

/* Command line, container and user; they stay unless it runs another program. */
void details_describe(struct known *known, const char *root, struct details_users *users);

/* Where it may run; with `threads`, where most of them ran last, else where the first one did. */
void details_locate(struct known *known, const char *root, const struct probe_nodes *nodes,
                    bool threads);

/* The container's short id or name in a path of control groups ("" = none), as Docker, Podman,
 * CRI-O, containerd, Kubernetes, LXC and systemd-nspawn write them. */
void details_container(const char *cgroup, char *ret_name, size_t size);
