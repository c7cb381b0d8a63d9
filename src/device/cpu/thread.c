/*
 * thread.c: how this backend starts a thread: bound, named and deaf to signals, so that it is in
 * its place before it touches memory and a Ctrl-C reaches the program's own threads.
 */
#include "device/cpu/cpu.h"
#include "machine/machine.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

struct start {
    const struct lab_machine *machine;
    const struct lab_cpus *cpus;
    const char *name;
    void (*run)(void *argument);
    void *argument;
    int status;
    struct lab_err *err;
    sem_t bound;
};

static void *thread_main(void *state) {
    struct start *start = state;
    void (*run)(void *) = start->run;
    void *argument = start->argument;
    int status = start->status = lab_bind_cpus(start->machine, start->cpus, false, start->err);
    char name[16]; /* what the kernel keeps */
    snprintf(name, sizeof name, "%.15s", start->name);
    pthread_setname_np(pthread_self(),
                       name); /* once it is bound: who sees the name sees it there */
    sem_post(&start->bound);  /* `start` is gone from here on */
    if (status == 0)
        run(argument);
    return NULL;
}

int cpu_thread_start(const struct lab_machine *machine, const struct lab_cpus *cpus,
                     const char *name, void (*run)(void *argument), void *argument,
                     pthread_t *ret_thread, struct lab_err *err) {
    struct start start = {.machine = machine,
                          .cpus = cpus,
                          .name = name,
                          .run = run,
                          .argument = argument,
                          .err = err};
    sem_init(&start.bound, 0, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, thread_main, &start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        sem_destroy(&start.bound);
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, failed, "starting thread '%s'", name);
    }
    while (sem_wait(&start.bound) && errno == EINTR)
        continue;
    if (start.status) {
        pthread_join(thread, NULL);
        sem_destroy(&start.bound);
        return lab_err_context(err, "thread '%s'", name);
    }
    sem_destroy(&start.bound);
    *ret_thread = thread;
    return 0;
}
