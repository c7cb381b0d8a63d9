/*
 * test_measure_log.c: loops of every kind by a clock that is moved by hand, step by step, against
 * tests/golden: what is reported after each chunk, in which order subjects run, and what is measured.
 */
#include "golden.h"
#include "measure_fixture.h"

#include "base/str.h"

static struct lab_str told;

static bool tell(const struct lab_measure_progress *p, void *state) {
    (void)state;
    lab_str_printf(&told, "  %d %s %.4g left %.4g s, median %.5g s, precision %.3g, %lld\n",
                   (int)p->phase, p->name, p->fraction, p->left_s, p->median_s, p->precision,
                   (long long)p->iterations);
    return false;
}

static double clock_mhz(void *state) {
    (void)state;
    return 1000 + (double)(now_ns / MS % 7);
}

static int64_t settling(int64_t index) { /* slow at first */
    return noisy(MS + (index < 150 ? (150 - index) * 20 * US : 0), 0.02, index);
}

static int64_t drifting(int64_t index) {
    return noisy(MS + index * US, 0.05, index);
}

static int64_t with_outliers(int64_t index) {
    return noisy(index % 37 == 0 ? 5 * MS : MS, 0.01, index);
}

static int64_t steady_200ms(int64_t index) {
    return noisy(200 * MS, 0.1, index);
}

static void add_summary(const char *name, const struct lab_summary *s) {
    lab_str_printf(&told, " %s %zu: %.6g ±%.4g [%.6g, %.6g] %.6g..%.6g of %.5g, %zu+%zu outliers\n",
                   name, s->n, s->median, s->mad, s->median_interval.low, s->median_interval.high,
                   s->min, s->max, s->effective_n, s->outliers.low_severe, s->outliers.high_severe);
}

static void add_measurement(const struct lab_measurement *m) {
    const struct lab_work work = {8, 1e6, 3e5, 2e4, 1e3};
    struct lab_rates r = lab_measure_rates(m, &work);
    lab_str_printf(&told,
                   " %zu after %lld in %d chunks, stop %d, steady %d, warnings %u, first %.4g s, "
                   "warm-up %.5g s, wall %.6g s, precision %.4g, overlap %.3g, %g to %g MHz\n",
                   m->count, (long long)m->warmup_iterations, (int)m->chunk_count, (int)m->stop,
                   m->steady, m->warnings, m->first_s, m->warmup_s, m->wall_s, m->precision,
                   m->overlap, m->clock_min_mhz, m->clock_max_mhz);
    lab_str_printf(&told, " rates %.6g %.6g %.6g %.6g %.6g %.6g %.6g, computing %.4g\n",
                   r.iterations_per_s, r.samples_per_s, r.flops_per_s, r.memory_bytes_per_s,
                   r.copy_bytes_per_s, r.h2d_bytes_per_s, r.d2h_bytes_per_s, r.compute_share);
    add_summary("intervals", &m->interval);
    add_summary("latencies", &m->latency);
    for (int s = 0; s < LAB_STAGE_COUNT; s++)
        if (m->stages[s].n)
            add_summary("stage", &m->stages[s]);
    for (unsigned w = 1; w <= LAB_WARN_CLOCK; w *= 2)
        if (m->warnings & w) {
            lab_str_add(&told, "  ");
            lab_measure_explain(m, (enum lab_measure_warning)w, &told);
            lab_str_add(&told, "\n");
        }
}

static void run_case(const char *name, struct lab_measure_plan plan, struct fake *fakes,
                     int count) {
    struct lab_subject subjects[3];
    struct lab_measurement measurements[3];
    set_up(NULL);
    plan.clock = &clock_by_hand;
    plan.progress = tell;
    plan.clock_mhz = clock_mhz;
    for (int i = 0; i < count; i++) {
        fakes[i].letter = (char)('a' + i);
        subjects[i] = (struct lab_subject){
            .name = i ? "second" : "first", .run = run_fake, .state = &fakes[i]};
    }
    lab_str_printf(&told, "%s\n", name);
    ASSERT_OK(lab_measure(&plan, subjects, count, &test_arena, measurements, err));
    lab_str_printf(&told, " order %s\n", run_order);
    for (int i = 0; i < count; i++)
        add_measurement(&measurements[i]);
}

LAB_TEST(what_is_told_and_measured) {
    struct lab_measure_plan by_test = LAB_MEASURE_PLAN, counted = by_test, timed = by_test,
                            chunks = by_test, brief = by_test, loose = by_test;
    counted.iterations = 350, counted.warmup_iterations = 60;
    timed.duration_s = 0.9, timed.warmup_iterations = 0;
    chunks.chunk_iterations = 7, chunks.iterations = 40, chunks.warmup_iterations = 10;
    brief.limit_s = 1.2, brief.max_iterations = 500;
    loose.precision = 0.2, loose.min_iterations = 400, loose.min_time_s = 0.1, loose.seed = 7;
    lab_str_init(&told);
    run_case("by test", by_test, &(struct fake){.duration_ns = steady_1ms}, 1);
    run_case("settling", by_test, &(struct fake){.duration_ns = settling}, 1);
    run_case("drifting", brief, &(struct fake){.duration_ns = drifting}, 1);
    run_case("counted", counted, &(struct fake){.duration_ns = with_outliers}, 1);
    run_case("timed", timed, &(struct fake){.duration_ns = wild_1ms}, 1);
    run_case("chunks", chunks,
             (struct fake[]){{.duration_ns = steady_200ms}, {.duration_ns = steady_1ms}}, 2);
    run_case("stages", loose,
             (struct fake[]){{.duration_ns = steady_1ms, .stage_ns = 300 * US},
                             {.duration_ns = settling, .stage_ns = 200 * US}},
             2);
    run_case("long", brief, &(struct fake){.duration_ns = steady_200ms}, 1);
    assert_golden(told.text, "measure-loops.txt");
    lab_str_release(&told);
}
