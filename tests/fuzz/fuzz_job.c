/*
 * fuzz_job.c: a worker's job is refused with words, or all of it is within bounds; written again, it
 * is read the same.
 * covers: src/run/job.c
 */
#include "folder.h"
#include "run/job.h"

#include <math.h>

static void check(const struct lab_job *job) {
    require(*job->run_id && *job->workload && job->options->type == LAB_VALUE_MAP);
    require(job->rank_count >= 1 && job->rank_count <= job->gang_size && job->repeat >= 0);
    require(job->iterations >= 0 && job->warmup_iterations >= 0 && job->port >= 0);
    require(isfinite(job->duration_s) && (job->iterations > 0 || job->duration_s > 0));
    require(job->seed >> 53 == 0 && job->chance >> 53 == 0 && job->tune_s >= 0);
    for (int i = 0; i < job->rank_count; i++) {
        const struct lab_job_rank *rank = &job->ranks[i];
        require(rank->index >= 0 && rank->index < job->gang_size && rank->gpu_id >= 0);
        require(i == 0 || rank->index > rank[-1].index);
        require(*rank->device && rank->numa_node >= -1 && (!rank->config || *rank->config));
        for (int c = 0; c < rank->cpu_count; c++)
            require(rank->cpus[c] >= 0 && (c == 0 || rank->cpus[c] > rank->cpus[c - 1]));
        for (int c = 0; c < rank->choice_count; c++)
            require(*rank->choices[c].phase && *rank->choices[c].config);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    LAB_AUTO(str, again);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_job job;
    if (lab_job_read(lab_arena_strndup(&arena, (const char *)data, size), size, &arena, &job,
                     &err) < 0) {
        require_error(&err);
        return 0;
    }
    check(&job);
    lab_job_write(&job, &text);
    require(lab_job_read(text.text, text.length, &arena, &job, &err) == 0);
    check(&job);
    lab_job_write(&job, &again);
    require(lab_str_equal(text.text, again.text));
    return 0;
}
