/*
 * fuzz_lock.c: what a lock says of its holder, which anybody may have written, is a bounded text; the
 * description names the process, or says that it is unknown.
 * covers: src/base/file/lock.c
 */
#include "base/file/lock.h"
#include "base/str.h"
#include "folder.h"

#include <fcntl.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(str, text);
    struct lab_holder holder;
    int fd = open(folder_write("lock", data, size), O_RDONLY | O_CLOEXEC);
    require(fd >= 0);
    lab_lock_read(fd, &holder);
    close(fd);
    require(holder.pid >= 0);
    lab_holder_describe(&holder, &text);
    require(memchr(holder.host, 0, sizeof holder.host) &&
            memchr(holder.command, 0, sizeof holder.command) &&
            memchr(holder.folder, 0, sizeof holder.folder));
    require(lab_str_starts(text.text, holder.pid ? "process " : "another process") &&
            text.length < sizeof holder);
    return 0;
}
