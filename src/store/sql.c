/*
 * sql.c: opening databases; values into SQLite's statements and out of them.
 *
 * SQLite opens the files beside a database when it needs them, at any time: what may be opened is
 * checked in the call that it opens files with, on the descriptor.
 */
#include "store/sql.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- opening --- */

static const char *const beside[] = {"-wal", "-shm", "-journal"};

static bool is_beside(const char *path) {
    for (int i = 0; i < (int)(sizeof beside / sizeof *beside); i++)
        if (lab_str_ends(path, beside[i]))
            return true;
    return false;
}

/* SQLite opens folders and /dev/urandom too. */
static bool is_refused(const char *path, const struct stat *info) {
    return S_ISFIFO(info->st_mode) ||
           (S_ISREG(info->st_mode) && info->st_nlink > 1 && is_beside(path));
}

static int open_checked(const char *path, int flags, int mode) {
    struct stat info;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY, (mode_t)mode);
    if (fd < 0 || fstat(fd, &info) < 0 || !is_refused(path, &info))
        return fd;
    close(fd);
    errno = ELOOP; /* as where it is a link */
    return -1;
}

static void set_open(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (vfs && vfs->iVersion >= 3)
        vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_checked);
}

int lab_sql_open(const char *file, int flags, sqlite3 **ret_db) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_open);
    return sqlite3_open_v2(file, ret_db, flags, NULL);
}

const char *lab_sql_find_refused(const char *path, struct lab_arena *arena) {
    for (int i = 0; i < (int)(sizeof beside / sizeof *beside); i++) {
        const char *name = lab_arena_printf(arena, "%s%s", path, beside[i]);
        struct stat info;
        if (lstat(name, &info) == 0 && (!S_ISREG(info.st_mode) || is_refused(name, &info)))
            return name;
    }
    return NULL;
}

/* --- values --- */

void lab_sql_bind(sqlite3_stmt *statement, const struct lab_sql_cell *row) {
    for (int i = 0; row[i].type != LAB_SQL_END; i++) {
        const struct lab_sql_cell *cell = &row[i];
        if (cell->type == LAB_SQL_INT)
            sqlite3_bind_int64(statement, i + 1, cell->integer);
        else if (cell->type == LAB_SQL_NUMBER)
            sqlite3_bind_double(statement, i + 1, cell->number);
        else if (cell->type == LAB_SQL_TEXT) /* one too long for SQLite stays NULL */
            sqlite3_bind_text(statement, i + 1, cell->text ? cell->text : "", -1, SQLITE_STATIC);
        else if (cell->type == LAB_SQL_BLOB)
            sqlite3_bind_blob64(statement, i + 1, cell->bytes, cell->size, SQLITE_STATIC);
        else
            sqlite3_bind_null(statement, i + 1);
    }
}

char *lab_sql_text(sqlite3_stmt *row, int column, struct lab_arena *arena) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return lab_arena_strndup(arena, text ? text : "",
                             text ? (size_t)sqlite3_column_bytes(row, column) : 0);
}

double lab_sql_number(sqlite3_stmt *row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN
                                                           : sqlite3_column_double(row, column);
}

int64_t lab_sql_time(sqlite3_stmt *row, int column) {
    int64_t time_ns = sqlite3_column_int64(row, column);
    return time_ns >= -1 && time_ns <= 4000000000000000000 ? time_ns : 0; /* -1 = unknown */
}

int64_t lab_sql_count(sqlite3_stmt *row, int column) {
    int64_t count = sqlite3_column_int64(row, column);
    return count >= 0 && count <= (int64_t)1 << 53 ? count : 0;
}

int lab_sql_small(sqlite3_stmt *row, int column) {
    int64_t number = sqlite3_column_int64(row, column);
    return number >= -1 && number <= 1000000000 ? (int)number : -1;
}
