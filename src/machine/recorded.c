/*
 * recorded.c: loads a machine from hwloc's XML.
 *
 * hwloc trusts such a file: a missing cpuset or a broken number can end in a segmentation fault,
 * and what it read of a refused one is never freed. People edit these files and cut them off, so a
 * child process reads the file first; only what it survives is loaded here.
 */
#include "base/file/file.h"
#include "machine/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define XML_MAX_BYTES (64u << 20) /* the largest recorded machines have about 3 MiB */
#define TRIAL_SECONDS 10          /* they take some milliseconds */

static int load_xml(struct topology *topology, const char *text, size_t length) {
    if (hwloc_topology_init(&topology->hwloc) < 0)
        return -1;
    topology_keep_types(topology->hwloc);
    /* the length counts the NUL behind the text */
    if (hwloc_topology_set_xmlbuffer(topology->hwloc, text, (int)length + 1) < 0)
        return -1;
    return hwloc_topology_load(topology->hwloc);
}

/* Whatever happens to the child stays with it: no output, no core dump, no end without end. */
static void keep_to_oneself(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
    struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    alarm(TRIAL_SECONDS);
}

static int try_all(const char *text, size_t length) {
    struct topology trial = {.machine = {.recorded = true}};
    lab_arena_init(&trial.arena);
    if (load_xml(&trial, text, length) < 0)
        return 1;
    topology_read_nodes(&trial);
    topology_read_pci(&trial);
    return 0;
}

static bool survives(const char *text, size_t length) {
    pid_t child = fork();
    if (child == 0) {
        keep_to_oneself();
        _exit(try_all(text, length));
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return true; /* somebody else took its result: nothing speaks against the file */
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The major version that the file names itself; 0 = it names none. */
static long version_of(const char *text) {
    const char *version = strstr(text, "<topology version=\"");
    return version ? strtol(version + strlen("<topology version=\""), NULL, 10) : 0;
}

static int refuse(const char *path, const char *text, struct lab_err *err) {
    long version = version_of(text), known = (long)(hwloc_get_api_version() >> 16);
    if (version > known)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is a topology of hwloc %ld, and this is hwloc %ld: write it with "
                           "lstopo --export-xml-flags v%ld",
                           path, version, known, known);
    return lab_err_set(err, LAB_ERR_USER,
                       "%s is a damaged hwloc topology (lstopo -i FILE must read it)", path);
}

int topology_load_recorded(struct topology *topology, const char *path, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    char *text;
    size_t length;
    int result = lab_file_read(path, XML_MAX_BYTES, &arena, &text, &length, err);
    if (result < 0) {
        if (err)
            err->code = LAB_ERR_USER;
        lab_err_context(err, "topology file");
    } else if (!strstr(text, "<topology")) {
        result = lab_err_set(err, LAB_ERR_USER,
                             "%s is not a hwloc topology (lstopo --of xml FILE writes one)", path);
    } else if (!survives(text, length) || load_xml(topology, text, length) < 0) {
        result = refuse(path, text, err);
    }
    return result;
}
