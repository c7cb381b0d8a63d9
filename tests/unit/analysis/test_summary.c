/* What many recordings tell, on recordings whose answers can be worked out by hand. */
#include "recording_fixture.h"

static void add_flat(struct given *f, const char *name, const char *label, double memory,
                     double power, int seconds) {
    given_recording(f, name, label);
    struct lab_track *gpu = given_gpu(f, 0);
    for (int t = 0; t <= seconds; t++)
        given_tick(gpu, t, memory, 80, power, 50 + t % 20);
}

/* Three files of a label: all of them count, none is the one that stands for it. */
LAB_TEST(all_files_of_a_label_count) {
    struct given *f = *state;
    add_flat(f, "adam_1", "adam", 9000, 100, 10);
    add_flat(f, "adam_2", "adam", 10000, 200, 20);
    add_flat(f, "adam_3", "adam", 14000, 300, 40);
    add_flat(f, "sgd_1", "sgd", 5000, 150, 10);
    struct lab_recording_epoch *newest = f->recordings[1].recording->epochs;
    newest->offset_ns += 3600 * SECOND; /* an hour later than the others */
    f->recordings[3].rate = 1.7;
    f->recordings[3].rate_unit = "iterations/s";
    when_analysed(f, "summary", NULL);
    assert_int_equal(f->result.part_count, 2);
    assert_int_equal((int)figure(f, 0, "recordings")->value, 3);
    assert_near(figure(f, 0, "duration_s")->value, 70, 1e-9);
    assert_near(figure(f, 0, "memory_total_mib")->value, 11000, 1e-6);
    assert_near(figure(f, 0, "memory_peak_mib")->value, 14000, 1e-6);
    assert_near(figure(f, 0, "power_total_w")->value, 200, 1e-6);
    assert_near(figure(f, 0, "energy_j")->value, 100 * 10 + 200 * 20 + 300 * 40, 1e-6);
    assert_near(figure(f, 0, "temperature_peak_c")->value, 69, 1e-9);
    assert_string_equal(cell(f, 0, "files", 0, "name")->text, "adam_2");
    assert_string_equal(cell(f, 0, "files", 0, "started")->text, "2026-11-15T11:42:03Z");
    assert_int_equal((int)cell(f, 0, "files", 0, "newest")->value, 1);
    assert_int_equal((int)cell(f, 0, "files", 1, "newest")->value, 0);
    assert_near(figure(f, 1, "memory_total_mib")->value, 5000, 1e-6);
    assert_string_equal(figure(f, 1, "rate_unit")->text, "iterations/s");
    assert_string_equal(figure(f, 1, "rate_per_s")->unit, "iterations/s");
    assert_null(figure(f, 0, "rate_unit")->text); /* it has no rate */
    assert_non_null(strstr(f->result.answer, "4 recordings of 2 labels, 80.0 s, 18.5 kJ."));
    assert_true(has_note(f->result.notes, "means are means of theirs"));
}

/* As long as simulated runs are, or those of small models. */
LAB_TEST(short_recordings_take_some_time) {
    LAB_AUTO(str, text);
    lab_str_add_duration(&text, 0.0384, LAB_DURATION_PRECISE);
    assert_string_equal(text.text, "38.4 ms");
    lab_str_clear(&text);
    lab_str_add_duration(&text, 0, LAB_DURATION_PRECISE);
    assert_string_equal(text.text, "0.0 s");
    lab_str_clear(&text);
    lab_str_add_duration(&text, 22.14, LAB_DURATION_PRECISE);
    assert_string_equal(text.text, "22.1 s");
}

/* A counter is believed before power: here power says 100 W, the counter 50 J a second; it starts
 * anew at second 5, and what it had counted since second 4 is all that is lost. */
LAB_TEST(energy_is_the_counters_where_there_is_one) {
    struct given *f = *state;
    static const enum lab_metric_id metrics[] = {LAB_METRIC_POWER, LAB_METRIC_ENERGY};
    given_recording(f, "counted", "counted");
    struct lab_track *gpu = given_track(f, LAB_ENTITY_GPU, 0, metrics, 2);
    for (int t = 0; t <= 10; t++) {
        gpu->times_ns[gpu->count] = GIVEN_START + t * SECOND;
        put(gpu, 0, 100);
        put(gpu, 1, t < 5 ? 7000 + 50 * t : 50 * (t - 5));
        gpu->count++;
    }
    when_analysed(f, "summary", NULL);
    assert_near(figure(f, 0, "energy_j")->value, 4 * 50 + 5 * 50, 1e-6);
    assert_string_equal(figure(f, 0, "energy_j")->text, "by the GPUs' counters");
    for (int t = 0; t <= 10; t++)
        gpu->valid[1][t] = 0;
    when_analysed(f, "summary", NULL);
    assert_near(figure(f, 0, "energy_j")->value, 1000, 1e-6);
    assert_string_equal(figure(f, 0, "energy_j")->text,
                        "from their power, where there is no counter");
}

/* Power over a gap isn't known: 100 W for 10 s, nothing for 20 s, 100 W for 10 s are 2 kJ. */
LAB_TEST(energy_from_power_leaves_gaps_out) {
    struct given *f = *state;
    given_recording(f, "lost", "lost");
    struct lab_track *gpu = given_gpu(f, 0);
    for (int t = 0; t <= 40; t++)
        if (t <= 10 || t >= 30)
            given_tick(gpu, t, 1000, 50, 100, 60);
    when_analysed(f, "summary", NULL);
    assert_near(figure(f, 0, "energy_j")->value, 2000, 1e-6);
    assert_near(figure(f, 0, "missing_s")->value, 19, 1e-9);
    assert_int_equal((int)cell(f, 0, "gpus", 0, "gaps")->value, 1);
    assert_true(has_note(f->result.parts[0].notes, "GPU 0 has no samples for 47.5% of the time"));
}

/* Clocks are held back by power from second 4 to 7, by power and heat at 8, and idle later, which
 * is nobody's fault: each tick stands for the second before it. */
LAB_TEST(reasons_at_once_count_once) {
    struct given *f = *state;
    static const enum lab_metric_id metrics[] = {LAB_METRIC_UTILIZATION, LAB_METRIC_CLOCK_REASONS,
                                                 LAB_METRIC_THROTTLED_POWER};
    given_recording(f, "hot", "hot");
    struct lab_track *gpu = given_track(f, LAB_ENTITY_GPU, 0, metrics, 3);
    for (int t = 0; t <= 10; t++) {
        gpu->times_ns[gpu->count] = GIVEN_START + t * SECOND;
        put(gpu, 0, 99);
        put(gpu, 1, t < 4 ? 0 : t < 8 ? 0x4 : t == 8 ? 0x24 : 0x1);
        put(gpu, 2, 0.5 * t);
        gpu->count++;
    }
    when_analysed(f, "summary", NULL);
    assert_near(figure(f, 0, "throttled_s")->value, 5, 1e-9);
    assert_string_equal(figure(f, 0, "throttled_s")->text,
                        "of all GPUs' time, by: power limit and thermal limit (driver)");
    gpu->values[1] = NULL; /* the reasons weren't recorded: the counter is what is left */
    when_analysed(f, "summary", NULL);
    assert_near(figure(f, 0, "throttled_s")->value, 5, 1e-9);
    assert_null(figure(f, 0, "throttled_s")->text);
}

/* What only some GPUs report isn't told as if it were all GPUs'. */
LAB_TEST(the_headline_says_of_how_many_gpus) {
    struct given *f = *state;
    static const enum lab_metric_id memory[] = {LAB_METRIC_MEMORY_USED};
    add_flat(f, "a", "a", 9000, 100, 10);
    struct lab_track *other = given_track(f, LAB_ENTITY_GPU, 1, memory, 1);
    for (int t = 0; t <= 10; t++) {
        other->times_ns[t] = GIVEN_START + t * SECOND;
        put(other, 0, 1000 * 1048576.0);
        other->count++;
    }
    when_analysed(f, "summary", NULL);
    assert_string_equal(f->result.answer, "a: GPUs 80.0% busy (of 1 of 2 GPUs), 9.77 GiB of "
                                          "memory, 1.00 kJ (of 1 of 2 GPUs) in 10.0 s.");
}

/* No GPU, but a host: that is told, and what isn't. */
LAB_TEST(a_host_without_gpus_has_a_summary) {
    struct given *f = *state;
    static const enum lab_metric_id cpu[] = {LAB_METRIC_CPU_UTILIZATION};
    static const enum lab_metric_id host[] = {LAB_METRIC_HOST_USED};
    given_recording(f, "host", "host");
    struct lab_track *cpus = given_track(f, LAB_ENTITY_CPU, 0, cpu, 1);
    struct lab_track *memory = given_track(f, LAB_ENTITY_MEMORY, 0, host, 1);
    for (int t = 0; t < 4; t++) {
        cpus->times_ns[t] = memory->times_ns[t] = GIVEN_START + t * SECOND;
        put(cpus, 0, 10.0 * t);
        put(memory, 0, (1024 + t) * 1048576.0);
        cpus->count++;
        memory->count++;
    }
    when_analysed(f, "summary", NULL);
    assert_near(figure(f, 0, "cpu_percent")->value, 15, 1e-9);
    assert_near(figure(f, 0, "host_memory_peak_mib")->value, 1027, 1e-9);
    assert_string_equal(f->result.answer,
                        "host: CPUs 15.0% busy, at most 1.00 GiB of the host's memory in 3.0 s.");
    assert_true(has_note(f->result.parts[0].notes, "no GPU was recorded"));
    assert_null(table(f, 0, "gpus"));
}

LAB_TEST(nothing_recorded_is_an_error) {
    struct given *f = *state;
    given_recording(f, "empty", "empty");
    ASSERT_FAILS(ask(f, "summary", NULL, err), LAB_ERR_USER,
                 "nothing to analyse: empty holds no samples");
}

const struct lab_test_program lab_test_program = {.set_up = given_setup,
                                                  .tear_down = given_teardown};
