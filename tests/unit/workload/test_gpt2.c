/*
 * The gpt2 workload on a CPU device: that its launches are a loss and its derivative, that training
 * follows double precision and learns, what files of tokens it takes, and what it refuses.
 */
#include "base/file/file.h"
#include "base/random.h"
#include "unit/workload/on_cpu.h"
#include "workload/gpt2/gpt2.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct lab_workload lab_workload_gpt2;

#define TINY                                                                                       \
    "dtype=fp32", "depth=2", "width=64", "heads=1", "seq=5", "positions=7", "vocab=11",            \
        "batch_size=2"

static int cpu_open(void **state) {
    static struct on_cpu cpu;
    on_cpu_open(&cpu);
    *state = &cpu;
    return 0;
}

static int cpu_close(void **state) {
    on_cpu_close(*state);
    return 0;
}

/* --- the gradient, by differences --- */

static double loss_of(struct gpt2_reference *r, const struct gpt2_list *list) {
    const struct gpt2_model *m = r->model;
    double sum = 0;
    gpt2_reference_run(r, list);
    for (int64_t i = 0; i < m->shape.rows; i++)
        sum += r->singles[m->memory.losses + i];
    return sum / (double)(m->shape.rows * m->shape.accumulation);
}

static double *zeros(struct on_cpu *cpu, int64_t count) {
    return lab_arena_alloc(&cpu->arena, (size_t)count, sizeof(double));
}

/* Parameters of some size everywhere, and tokens. */
static struct gpt2_reference reference_of(struct on_cpu *cpu, const struct gpt2_training *t) {
    const struct gpt2_shape *s = &t->model.shape;
    const struct gpt2_memory *m = &t->model.memory;
    float tokens[2][64];
    struct gpt2_reference r = {&t->model, zeros(cpu, m->values), zeros(cpu, m->singles),
                               zeros(cpu, m->values)};
    for (int64_t i = 0; i < s->parameters; i++)
        r.values[i] = 0.3 * (double)lab_random_symmetric(3, (uint64_t)i) +
                      (i >= s->norms_at && (i - s->norms_at) / s->width % GPT2_NORM == 0);
    gpt2_data_read(&t->data, s, 0, tokens[0], tokens[1]);
    for (int64_t i = 0; i < s->rows; i++) {
        r.singles[m->tokens + i] = (double)tokens[0][i];
        r.singles[m->targets + i] = (double)tokens[1][i];
    }
    return r;
}

LAB_TEST(the_gradient_is_the_derivative_of_the_loss) {
    struct gpt2_training *t =
        on_cpu_start(*state, &lab_workload_gpt2, WORDS(TINY, "accumulation=2", "recompute=gelu"));
    const struct gpt2_shape *s = &t->model.shape;
    struct gpt2_reference r = reference_of(*state, t);
    int64_t square = s->width * s->width, linear = s->linear_at + GPT2_LINEAR * square;
    int64_t biases = s->biases_at + GPT2_BIASES * s->width;
    /* the table by embedding and head, positions; then q, k, v, projection, up and down of the
     * second block, their biases, and norms */
    const int64_t places[] = {0,
                              7 * s->width + 3,
                              s->positions_at + 4 * s->width + 1,
                              linear + 17,
                              linear + square + 700,
                              linear + 2 * square + 9,
                              linear + 3 * square + 33,
                              linear + 6 * square + 5,
                              linear + 10 * square + 1,
                              biases + 3,
                              biases + 2 * s->width + 6,
                              biases + 3 * s->width + 2,
                              biases + 5 * s->width,
                              biases + 6 * s->width + 7,
                              s->norms_at + 5,
                              s->norms_at + 2 * s->width + 1,
                              s->norms_at + 5 * s->width + 1,
                              s->norms_at + 6 * s->width + 4,
                              s->norms_at + 13 * s->width + 2};
    double size = 0;
    loss_of(&r, &t->first);
    double *gradient = zeros(*state, s->parameters);
    for (int64_t i = 0; i < s->parameters; i++) {
        gradient[i] = r.values[t->model.memory.gradient + i];
        size = fmax(size, fabs(gradient[i]));
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        double *p = &r.values[places[i]], keep = *p, h = 1e-4;
        *p = keep + h;
        double above = loss_of(&r, &t->first);
        *p = keep - h;
        double below = loss_of(&r, &t->first), found = (above - below) / (2 * h);
        *p = keep;
        if (!(fabs(found - gradient[places[i]]) <= 1e-6 * size))
            fail_msg("parameter %lld: gradient %g, by differences %g", (long long)places[i],
                     gradient[places[i]], found);
    }
    gpt2_close(t);
}

/* --- training --- */

static double loss_after(struct gpt2_training *t, int steps) {
    struct lab_iteration records[64];
    ASSERT_OK(gpt2_run(t, steps, records, err));
    const float *told = (const float *)t->told.data + (int64_t)(steps - 1) * GPT2_TOLD;
    return (double)told[GPT2_LOSS] / (double)(t->model.shape.rows * t->model.shape.accumulation);
}

LAB_TEST(training_learns_and_is_the_same_each_time) {
    static const char *const ways[][2] = {{"compile_model=true", "recompute=none"},
                                          {"compile_model=false", "recompute=gelu"}};
    double found[2];
    for (int i = 0; i < 2; i++) {
        struct gpt2_training *t = on_cpu_start(
            *state, &lab_workload_gpt2, WORDS(TINY, "lr=0.01", "warmup=2", ways[i][0], ways[i][1]));
        double first = loss_after(t, 1);
        assert_true(fabs(first - log(11)) < 0.2);
        loss_after(t, 20);
        found[i] = loss_after(t, 40);
        assert_true(found[i] < first - 0.2);
        gpt2_close(t);
    }
    assert_true(found[0] == found[1]);
}

LAB_TEST(sgd_steps_along_the_gradient_and_its_momentum) {
    struct gpt2_training *t = on_cpu_start(
        *state, &lab_workload_gpt2,
        WORDS(TINY, "optimizer=sgd", "lr=0.5", "grad_clip=0", "weight_decay=0", "beta1=0.5"));
    int64_t count = t->model.shape.parameters;
    float *momentum = lab_mem_alloc((size_t)count, sizeof *momentum);
    float *before = lab_mem_alloc((size_t)count, sizeof *before);
    const float *now = t->values.data, *gradient = now + t->model.memory.gradient;
    memcpy(before, now, (size_t)count * sizeof *before); /* a CPU's memory is the program's */
    for (int step = 0; step < 3; step++) {
        loss_after(t, 1);
        for (int64_t i = 0; i < count; i++) {
            momentum[i] = 0.5f * momentum[i] + gradient[i];
            before[i] -= 0.5f * momentum[i];
            assert_true(fabsf(before[i] - now[i]) < 1e-5f);
        }
    }
    lab_mem_free(momentum);
    lab_mem_free(before);
    gpt2_close(t);
}

/* Two micro-steps of one sequence are one of two: rounding apart. */
LAB_TEST(accumulated_gradients_are_those_of_the_whole_batch) {
    double found[2];
    for (int i = 0; i < 2; i++) {
        struct gpt2_training *t = on_cpu_start(*state, &lab_workload_gpt2,
                                               WORDS(TINY, i ? "batch_size=1" : "batch_size=2",
                                                     i ? "accumulation=2" : "accumulation=1"));
        found[i] = loss_after(t, 8);
        gpt2_close(t);
    }
    assert_true(fabs(found[0] - found[1]) < 1e-4 * found[0]);
}

LAB_TEST(rates_rise_and_fall) {
    const struct gpt2_config *config = on_cpu_configure(
        *state, &lab_workload_gpt2, WORDS("lr=1", "warmup=4", "steps=12", "min_lr=0.1"));
    static const double rates[] = {0.25, 0.5, 0.75, 1, 1};
    for (int i = 0; i < 5; i++)
        assert_true(fabs(gpt2_rate(config, i) - rates[i]) < 1e-12);
    assert_true(fabs(gpt2_rate(config, 8) - 0.55) < 1e-12);
    assert_true(fabs(gpt2_rate(config, 12) - 0.1) < 1e-12);
    assert_true(fabs(gpt2_rate(config, 1000) - 0.1) < 1e-12);
}

/* --- energy --- */

#define S INT64_C(1000000000)

LAB_TEST(energy_is_the_counters_over_windows_that_steps_fill) {
    struct gpt2_energy energy = {0};
    assert_true(gpt2_energy_is_due(&energy, 0));
    gpt2_energy_take(&energy, 10 * S, 1000);
    /* given two windows, then both count, and what is between them does in neither twice */
    gpt2_energy_add(&energy, 20, S);
    assert_false(gpt2_energy_is_due(&energy, 11 * S));
    gpt2_energy_add(&energy, 20, S);
    assert_true(gpt2_energy_of_step(&energy) == 0);
    assert_true(gpt2_energy_is_due(&energy, 12 * S));
    gpt2_energy_take(&energy, 12 * S, 2000);
    assert_true(gpt2_energy_of_step(&energy) == 25);
    gpt2_energy_add(&energy, 40, 2 * S);
    gpt2_energy_take(&energy, 14 * S, 3400);
    assert_true(gpt2_energy_of_step(&energy) == 30);
    /* given one that was mostly something else, or a counter that began anew, then it doesn't */
    gpt2_energy_add(&energy, 20, S);
    gpt2_energy_take(&energy, 16 * S, 9000);
    gpt2_energy_add(&energy, 40, 2 * S);
    gpt2_energy_take(&energy, 18 * S, 5);
    assert_true(gpt2_energy_of_step(&energy) == 30);
    /* given a device without a counter, then it stays unknown, and is asked again */
    struct gpt2_energy none = {0};
    for (int i = 0; i < 3; i++) {
        gpt2_energy_add(&none, 20, 3 * S);
        assert_true(gpt2_energy_is_due(&none, 3 * i * S));
        gpt2_energy_take(&none, 3 * i * S, 0);
    }
    assert_true(gpt2_energy_of_step(&none) == 0);
}

static double counted_j;

static double growing_energy(struct lab_device *device) {
    (void)device;
    return counted_j += 700;
}

static void keep_joules(void *state, const struct lab_reported_metric *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (lab_str_equal(items[i].name, "joules_per_million_tokens"))
            *(double *)state = items[i].value;
}

static double hundred_watts(struct lab_device *device) {
    (void)device;
    return 100;
}

/* A second of 100 W over a second's tokens, until the counter was read twice. */
LAB_TEST(a_training_tells_energy_by_power_then_by_the_counter) {
    struct on_cpu *cpu = *state;
    double told = 0;
    struct lab_sink sink = {.metrics = keep_joules, .state = &told};
    faulty_begin(cpu->device, -1, -1);
    faulty.swapped.power_w = hundred_watts;
    faulty.swapped.energy_j = growing_energy;
    cpu->rank.sink = &sink;
    struct gpt2_training *t = on_cpu_start(cpu, &lab_workload_gpt2, WORDS(TINY));
    struct lab_iteration records[8];
    ASSERT_OK(gpt2_run(t, 8, records, err));
    double seconds = 1e-9 * (double)(records[7].end_ns - records[0].start_ns);
    assert_true(fabs(told - 1e6 * 100 * seconds / (8 * 10)) < 1e-6 * told);
    t->energy.since_ns -= 2 * S; /* two seconds later */
    t->energy.busy_ns += 2 * S;
    ASSERT_OK(gpt2_run(t, 8, records, err));
    assert_true(fabs(told - 1e6 * 700 / (16 * 10)) < 1e-6 * told);
    gpt2_close(t);
    cpu->rank.sink = NULL;
    faulty_end(cpu->device);
}

/* --- files --- */

static const char *write_file(struct on_cpu *cpu, const void *bytes, size_t length) {
    struct lab_err err = LAB_ERR_INIT;
    if (lab_file_write_atomic("test_gpt2.bin", bytes, length, &err))
        fail_msg("%s", err.text);
    return lab_arena_printf(&cpu->arena, "data=test_gpt2.bin");
}

LAB_TEST(files_of_both_kinds_are_read) {
    uint16_t tokens[40];
    struct {
        int32_t header[256];
        uint16_t tokens[40];
    } llmc = {.header = {20240520, 1, 40}};
    for (int i = 0; i < 40; i++)
        llmc.tokens[i] = tokens[i] = (uint16_t)(i % 11);
    for (int kind = 0; kind < 2; kind++) {
        const char *word = kind ? write_file(*state, &llmc, sizeof llmc)
                                : write_file(*state, tokens, sizeof tokens);
        struct gpt2_training *t = on_cpu_start(*state, &lab_workload_gpt2, WORDS(TINY, word));
        float read[2][10];
        assert_int_equal(t->data.count, 40);
        gpt2_data_read(&t->data, &t->model.shape, 4, read[0], read[1]); /* of three batches */
        for (int i = 0; i < 10; i++) {
            assert_true(read[0][i] == (float)((10 + i) % 11));
            assert_true(read[1][i] == (float)((11 + i) % 11));
        }
        gpt2_close(t);
    }
    remove("test_gpt2.bin");
}

LAB_TEST(bad_files_are_one_clear_line) {
    struct {
        int32_t header[256];
        uint16_t tokens[40];
    } llmc = {.header = {20240520, 1, 41}}, wide = {.header = {20240801, 7, 20}},
      negative = {.header = {20240520, 1, -5}}, model = {.header = {20240326, 3, 1024}};
    uint16_t high[40] = {[3] = 11};
    const struct {
        const void *bytes;
        size_t length;
        const char *text;
    } cases[] = {
        {&llmc, sizeof llmc, "cut short, 40 of the 41 tokens"},
        {&llmc, 600, "cut short, 600 of the 1024 bytes of its header"},
        {&negative, sizeof negative, "damaged, its header names -5 tokens"},
        {&wide, sizeof wide, "llm.c's tokens of 32 bits, must be of 16"},
        {&model, sizeof model, "llm.c's file of kind 20240326, must be 20240520"},
        {high, 0, "0 tokens, a batch of 2 sequences of 5 needs 11"},
        {high, sizeof high - 1, "cut short, 79 bytes aren't whole tokens"},
        {high, sizeof high, "token 3 is 11, must be below vocab=11"},
        {high, 20, "10 tokens, a batch of 2 sequences of 5 needs 11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *word = write_file(*state, cases[i].bytes, cases[i].length);
        void *config = on_cpu_configure(*state, &lab_workload_gpt2, WORDS(TINY, word));
        void *training = NULL;
        struct on_cpu *cpu = *state;
        ASSERT_FAILS(gpt2_open(config, &cpu->rank, &training, err), LAB_ERR_USER, cases[i].text);
    }
    remove("test_gpt2.bin");
    const void *config = on_cpu_configure(*state, &lab_workload_gpt2, WORDS(TINY, "data=none.bin"));
    void *training = NULL;
    struct on_cpu *cpu = *state;
    ASSERT_FAILS(gpt2_open(config, &cpu->rank, &training, err), LAB_ERR_USER,
                 "data: none.bin: No such file");
}

/* Each of some thousands is looked at together: the one that is too high is named all the same. */
LAB_TEST(a_high_token_far_inside_is_named) {
    enum { COUNT = 10000 };
    static uint16_t tokens[COUNT];
    struct on_cpu *cpu = *state;
    tokens[9001] = 40;
    const char *word = write_file(cpu, tokens, sizeof tokens);
    const void *config = on_cpu_configure(cpu, &lab_workload_gpt2, WORDS(TINY, word));
    void *training = NULL;
    ASSERT_FAILS(gpt2_open(config, &cpu->rank, &training, err), LAB_ERR_USER,
                 "token 9001 is 40, must be below vocab=11");
    remove("test_gpt2.bin");
}

/* --- verification --- */

/* A new parameter is rounded, by more than a small rate changes it, and one at the threshold of
 * pruning goes either way: neither is wrong. Nor is it the device's fault that a training diverges.
 */
LAB_TEST(verification_passes_at_every_rate) {
    static const char *const cases[][3] = {
        {"optimizer=adamw", "warmup=10000"}, {"optimizer=adam", "lr=1e-7"},
        {"optimizer=sgd", "lr=1e-5"},        {"optimizer=sgd", "lr=1e-4", "weight_decay=0"},
        {"optimizer=adamw", "prune=100"},    {"optimizer=adamw", "epsilon=1"},
        {"beta1=0", "beta2=0.001"},          {"optimizer=adamw", "lr=0"}};
    struct lab_verification v;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpt2_training *t = on_cpu_start(*state, &lab_workload_gpt2,
                                               WORDS(TINY, cases[i][0], cases[i][1], cases[i][2]));
        ASSERT_OK(gpt2_verify(t, 3, &v, err));
        if (!v.passed)
            fail_msg("%s %s: %s", cases[i][0], cases[i][1], v.text);
        assert_contains(v.text, "over 100 steps");
        gpt2_close(t);
    }
    struct gpt2_training *t = on_cpu_start(*state, &lab_workload_gpt2, WORDS(TINY, "lr=100"));
    ASSERT_OK(gpt2_verify(t, 3, &v, err));
    if (!v.passed)
        fail_msg("%s", v.text);
    assert_contains(v.text, ", then its loss doubled");
    gpt2_close(t);
}

/* --- checkpoints --- */

#define KEPT "test_gpt2.ckpt"

static void train_and_keep(struct on_cpu *cpu, const char *const *words, int steps, char **bytes,
                           size_t *length) {
    struct gpt2_training *t = on_cpu_start(cpu, &lab_workload_gpt2, words);
    loss_after(t, steps);
    ASSERT_OK(gpt2_finish(t, err));
    gpt2_close(t);
    ASSERT_OK(lab_file_read(KEPT, 1 << 30, &cpu->arena, bytes, length, err));
}

#define SCHEDULE "checkpoint=" KEPT, "lr=0.01", "warmup=2", "steps=9", "accumulation=2"

LAB_TEST(a_training_that_resumes_leaves_the_same_bytes) {
    static const char *const optimizers[] = {"optimizer=adamw", "optimizer=sgd"};
    char *whole, *resumed;
    size_t length, again;
    for (int i = 0; i < 2; i++) {
        const char *kind = optimizers[i];
        train_and_keep(*state, WORDS(TINY, SCHEDULE, kind), 7, &whole, &length);
        train_and_keep(*state, WORDS(TINY, SCHEDULE, kind), 3, &resumed, &again);
        train_and_keep(*state, WORDS(TINY, SCHEDULE, kind, "resume_from=" KEPT), 4, &resumed,
                       &again);
        assert_int_equal(again, length);
        assert_memory_equal(resumed, whole, length);
    }
    /* given checkpoints on the way, then the last of them is there without an end */
    struct gpt2_training *t = on_cpu_start(
        *state, &lab_workload_gpt2, WORDS(TINY, SCHEDULE, "optimizer=sgd", "checkpoint_steps=7"));
    loss_after(t, 5);
    struct lab_verification verified;
    ASSERT_OK(gpt2_verify(t, 3, &verified, err)); /* begins anew, and keeps none of its own */
    loss_after(t, 8);
    gpt2_close(t);
    struct on_cpu *cpu = *state;
    ASSERT_OK(lab_file_read(KEPT, 1 << 30, &cpu->arena, &resumed, &again, err));
    assert_memory_equal(resumed, whole, length);
    remove(KEPT);
}

static void count_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    (void)items;
    *(size_t *)state += count;
}

/* given a training that has ended, then what a trace runs of it leaves no file and no metric */
LAB_TEST(steps_behind_the_end_leave_nothing) {
    struct on_cpu *cpu = *state;
    size_t told = 0;
    char *before, *after;
    size_t length;
    struct lab_sink sink = {.metrics = count_metrics, .state = &told};
    cpu->rank.sink = &sink;
    struct gpt2_training *t = on_cpu_start(cpu, &lab_workload_gpt2,
                                           WORDS(TINY, "checkpoint=" KEPT, "checkpoint_steps=2"));
    loss_after(t, 5);
    ASSERT_OK(gpt2_finish(t, err));
    ASSERT_OK(lab_file_read(KEPT, 1 << 30, &cpu->arena, &before, &length, err));
    assert_true(told > 0);
    told = 0;
    loss_after(t, 5);
    ASSERT_OK(lab_file_read(KEPT, 1 << 30, &cpu->arena, &after, &length, err));
    assert_memory_equal(after, before, length);
    assert_int_equal(told, 0);
    gpt2_close(t);
    remove(KEPT);
    cpu->rank.sink = NULL;
}

LAB_TEST(a_checkpoint_that_cannot_be_written_is_known_at_the_start) {
    struct on_cpu *cpu = *state;
    static const char *const cases[][2] = {
        {"checkpoint=no/such/folder", "no/such/folder can't be written: No such file"},
        {"checkpoint=/", "/ is a directory"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *training = NULL;
        const void *config = on_cpu_configure(cpu, &lab_workload_gpt2, WORDS(TINY, cases[i][0]));
        ASSERT_FAILS(gpt2_open(config, &cpu->rank, &training, err), LAB_ERR_USER, cases[i][1]);
    }
    struct gpt2_training *t =
        on_cpu_start(cpu, &lab_workload_gpt2, WORDS(TINY, "checkpoint=" KEPT));
    char *bytes;
    size_t length;
    ASSERT_FAILS(lab_file_read(KEPT, 1 << 30, &cpu->arena, &bytes, &length, err), LAB_ERR_USER,
                 "No such file"); /* nothing is there before its time */
    gpt2_close(t);
}

LAB_TEST(bad_checkpoints_are_one_clear_line) {
    struct on_cpu *cpu = *state;
    char *bytes;
    size_t length;
    train_and_keep(cpu, WORDS(TINY, "checkpoint=" KEPT), 1, &bytes, &length);
    bytes = lab_arena_copy(&cpu->arena, bytes, length + 1, 1); /* with a NUL behind it */
    const struct {
        const char *word;
        size_t length, flipped;
        const char *text;
    } cases[] = {
        {"depth=3", length, 0, "its depth is 2, this training's is 3"},
        {"vocab=12", length, 0, "its vocab is 11, this training's is 12"},
        {"optimizer=sgd", length, 0, "its optimizer is adam or adamw, this training's is sgd"},
        {"lr=1", length - 1, 0, "cut short, "},
        {"lr=1", 100, 0, "cut short, 100 of "},
        {"lr=1", length + 1, 0, " bytes, must be "},
        {"lr=1", 0, 0, "no checkpoint of a gpt2 training"},
        {"lr=1", length, 9, "version "},
        {"lr=1", length, 300, "damaged, its hash doesn't match"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes[cases[i].flipped] ^= (char)(cases[i].flipped ? 1 : 0);
        ASSERT_OK(lab_file_write_atomic(KEPT, bytes, cases[i].length, err));
        bytes[cases[i].flipped] ^= (char)(cases[i].flipped ? 1 : 0);
        void *training = NULL;
        const void *config = on_cpu_configure(cpu, &lab_workload_gpt2,
                                              WORDS(TINY, "resume_from=" KEPT, cases[i].word));
        ASSERT_FAILS(gpt2_open(config, &cpu->rank, &training, err), LAB_ERR_USER, cases[i].text);
    }
    remove(KEPT);
    void *training = NULL;
    const void *config =
        on_cpu_configure(cpu, &lab_workload_gpt2, WORDS(TINY, "resume_from=" KEPT));
    ASSERT_FAILS(gpt2_open(config, &cpu->rank, &training, err), LAB_ERR_USER, "No such file");
}

LAB_TEST(sizes_that_do_not_fit_are_refused) {
    static const struct {
        const char *words[3], *text;
    } cases[] = {{{"seq=1025"}, "the position table ends at positions=1024"},
                 {{"heads=7"}, "heads must have 64 or 128 elements each"},
                 {{"data=''"}, "data=: the name of a file is empty"},
                 {{"checkpoint=''"}, "checkpoint=: the name of a file is empty"},
                 {{"resume_from=''"}, "resume_from=: the name of a file is empty"},
                 {{"checkpoint_steps=5"}, "checkpoint_steps=5: no file is named, checkpoint=FILE"},
                 {{"warmup=9", "steps=9"}, "warmup=9: the cosine ends at steps=9"},
                 {{"width=12288", "heads=96", "batch_size=65536"}, "make depth, width"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct on_cpu *cpu = *state;
        void *config = lab_workload_config(&lab_workload_gpt2, &cpu->arena);
        for (int j = 0; j < 3 && cases[i].words[j]; j++)
            ASSERT_OK(lab_options_set_word(lab_workload_gpt2.options, config, &cpu->arena,
                                           cases[i].words[j], err));
        ASSERT_FAILS(lab_workload_gpt2.check(config, err), LAB_ERR_USER, cases[i].text);
    }
}

/* Each call that can fail does so once: an error, and nothing stays open. */
LAB_TEST(failures_lose_nothing) {
    struct on_cpu *cpu = *state;
    const void *config =
        on_cpu_configure(cpu, &lab_workload_gpt2, WORDS(TINY, "depth=1", "sync_frequency=1"));
    int failed = 0;
    for (int at = 0; at < 1000; at += at < 12 ? 1 : 7) {
        struct lab_err err = LAB_ERR_INIT;
        struct lab_iteration record;
        void *training = NULL;
        faulty_begin(cpu->device, at, -1);
        int status =
            gpt2_open(config, &cpu->rank, &training, &err) || gpt2_run(training, 1, &record, &err);
        faulty_end(cpu->device);
        gpt2_close(training);
        if (!status)
            break;
        assert_int_equal(err.code, LAB_ERR_MEMORY);
        failed++;
    }
    assert_true(failed > 12);
}

const struct lab_test_program lab_test_program = {.set_up = cpu_open, .tear_down = cpu_close};
