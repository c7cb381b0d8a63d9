/* Lines to paste follow from what recommend found; a gain stands only on what was measured. */
#include "unit/analysis/study_fixture.h"

#include "advise/advise.h"
#include "analysis/analysis.h"
#include "base/str.h"

#include "test.h"

static int low[] = {0, 1, 2, 3}, high[] = {16, 17, 18, 19};
static struct lab_node nodes[] = {{.number = 0, .core_count = 4, .cpus = {low, 4}},
                                  {.number = 1, .core_count = 4, .cpus = {high, 4}}};
static const struct lab_machine machine = {.nodes = nodes, .node_count = 2};

/* What each line that starts PROGRAM must have: the third GPU's name, and node 1. */
#define GPU   "GPU-33333333-1111-2222-3333-444444444444"
#define PLACE "CUDA_VISIBLE_DEVICES=" GPU
#define BIND  "numactl --cpunodebind=1 --membind=1 PROGRAM"

static struct lab_advice advise(struct given_study *given) {
    const struct lab_analysis *recommend = lab_analysis_find("recommend", NULL);
    struct lab_analysis_input input = given_input(given);
    struct lab_analysis_result result;
    assert_int_equal(recommend->run(lab_analysis_config(recommend, &given->arena), &input,
                                    &given->arena, &result, NULL),
                     0);
    assert_int_equal(result.part_count, 1);
    for (int i = 0; i < given->table.run_count; i++) /* as the driver names them */
        for (int k = 0; k < given->table.runs[i].rank_count; k++) {
            struct lab_study_rank *rank = &given->table.runs[i].ranks[k];
            rank->gpu = rank->gpu_id;
            rank->uuid = rank->gpu_id == 3 ? GPU : NULL;
        }
    given->table.machine = &machine;
    return lab_advice_make(&result, 0, &given->table, &given->arena);
}

static const struct lab_advice_line *find(const struct lab_advice *advice, const char *tool) {
    for (int i = 0; i < advice->count; i++)
        if (lab_str_equal(advice->lines[i].tool, tool))
            return &advice->lines[i];
    return NULL;
}

/* GPU 3 at home on node 1, fed from both nodes. */
static void given_nodes(struct given_study *given, double local, double remote, int runs,
                        double spread) {
    given_begin(given, "numa_study");
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < runs; i++)
            given_add(given, (struct given_run){.model = "vit32x2x128",
                                                .gpu = 3,
                                                .node = node,
                                                .home = 1,
                                                .repeat = i,
                                                .rate = (node ? local : remote) *
                                                        (1 + spread * given_normal(given))});
}

static void write(const struct lab_advice *list, int count, struct lab_style style,
                  struct lab_arena *arena, struct lab_str *out) {
    struct lab_doc *doc = lab_doc_open(NULL, arena);
    lab_advice_add(doc, list, count);
    lab_doc_write(doc, "text", style, out);
}

LAB_TEST(a_node_that_pays_is_a_line_with_its_gain) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    const struct lab_advice_line *line = find(&advice, "numactl");
    assert_non_null(line);
    assert_string_equal(line->line, PLACE " " BIND);
    assert_string_equal(line->choice, "node");
    assert_int_equal(line->state, LAB_ADVICE_WORTH);
    assert_true(line->low < .2 && .2 < line->high);
    assert_string_equal(line->why, "the local node rather than Remote NUMA nodes");
    assert_string_equal(find(&advice, "slurm")->line,
                        "srun -n 1 --cpu-bind=none env " PLACE " " BIND);
    assert_contains(find(&advice, "slurm")->why, "the whole host");
    assert_string_equal(find(&advice, "openmpi")->line,
                        "mpirun --bind-to none -n 1 env " PLACE " " BIND);
    assert_string_equal(find(&advice, "taskset")->line, PLACE " taskset -c 16-19 PROGRAM");
    assert_string_equal(find(&advice, "openmp")->line,
                        PLACE " OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close " BIND);
    assert_string_equal(find(&advice, "mps")->line,
                        PLACE " nvidia-cuda-mps-control -d && " PLACE " " BIND);
    const char *answer = lab_advice_answer(&advice, 1, &given.arena);
    assert_contains(answer, "Worth most: the local node rather than Remote NUMA nodes gains 2");
    given_end(&given);
}

/* Every line that starts a program, of whatever state: nothing of the place is left out. */
LAB_TEST(no_line_starts_a_program_without_gpu_cores_and_memory) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    int started = 0;
    for (int i = 0; i < advice.count; i++) {
        const char *line = advice.lines[i].line;
        if (!strstr(line, "PROGRAM"))
            continue;
        started++;
        assert_contains(line, PLACE " ");
        if (!lab_str_equal(advice.lines[i].tool, "taskset"))
            assert_contains(line, BIND);
        else /* it can't bind memory, and says so */
            assert_contains(advice.lines[i].why, "memory isn't bound");
    }
    assert_int_equal(started, 6); /* numactl, slurm, openmpi, taskset, openmp, mps */
    given_end(&given);
}

/* Two GPUs, each from its own node alone: which GPU is the choice, and the line has its node. */
LAB_TEST(a_device_that_pays_has_its_node_in_the_line) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 2; gpu < 4; gpu++)
        for (int i = 0; i < 5; i++)
            given_add(&given, (struct given_run){.model = "vit32x2x128",
                                                 .gpu = gpu,
                                                 .node = 1,
                                                 .home = 1,
                                                 .repeat = i,
                                                 .rate = (gpu == 3 ? 1200 : 1000) *
                                                         (1 + .005 * given_normal(&given))});
    struct lab_advice advice = advise(&given);
    const struct lab_advice_line *line = &advice.lines[0];
    assert_string_equal(line->choice, "device");
    assert_int_equal(line->state, LAB_ADVICE_WORTH);
    assert_string_equal(line->line, PLACE " " BIND);
    assert_non_null(find(&advice, "slurm"));
    given_end(&given);
}

/* No line can set the batch of a program that nobody knows: it starts the program, and words say
 * so. */
LAB_TEST(a_batch_that_pays_is_left_to_the_program) {
    struct given_study given;
    given_begin(&given, "quick_test");
    for (int batch = 1; batch < 3; batch++)
        for (int i = 0; i < 5; i++)
            given_add(&given,
                      (struct given_run){.model = "vit32x2x128",
                                         .gpu = 3,
                                         .node = 1,
                                         .home = 1,
                                         .repeat = i,
                                         .suffix = batch == 2 ? "_b2" : "_b1",
                                         .options = batch == 2 ? "{\"batch_size\": 2}"
                                                               : "{\"batch_size\": 1}",
                                         .rate = 1000 * batch * (1 + .005 * given_normal(&given))});
    struct lab_advice advice = advise(&given);
    assert_string_equal(advice.lines[0].choice, "batch");
    assert_string_equal(advice.lines[0].line, PLACE " " BIND);
    assert_string_equal(advice.lines[0].setting, "batch_size=2");
    assert_null(find(&advice, "slurm")); /* the place was no choice */
    struct lab_str text;
    lab_str_init(&text);
    write(&advice, 1, (struct lab_style){.columns = 120}, &given.arena, &text);
    assert_contains(text.text, "Batch 2 rather than batch 1; set it in PROGRAM");
    lab_str_release(&text);
    given_end(&given);
}

LAB_TEST(a_slice_that_pays_has_no_line) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].ranks[0].device = "cuda:0/4.3";
    struct lab_advice advice = advise(&given);
    assert_int_equal(advice.count, 1);
    assert_null(advice.lines[0].line);
    assert_contains(advice.no_line, "slice of a GPU");
    struct lab_str text;
    lab_str_init(&text);
    write(&advice, 1, (struct lab_style){.columns = 120}, &given.arena, &text);
    assert_null(strstr(text.text, "PROGRAM"));
    assert_contains(text.text, "  No line to paste: cuda:0/4.3 is a slice of a GPU");
    lab_str_release(&text);
    struct lab_value *value = lab_advice_value(&advice, &given.arena);
    assert_contains(lab_value_get(value, "no_line")->string, "slice");
    given_end(&given);
}

/* Choices of one place share its line; each study is named once. */
LAB_TEST(a_line_is_printed_once_for_all_that_it_gains) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    struct lab_advice_line lines[2] = {advice.lines[0], advice.lines[0]};
    lines[1].why = "device 3 rather than device 2";
    advice.lines = lines;
    advice.count = 2;
    struct lab_advice both[2] = {advice, advice};
    both[1].model = "another";
    struct lab_str text;
    lab_str_init(&text);
    write(both, 2, (struct lab_style){.columns = 120}, &given.arena, &text);
    const char *first = strstr(text.text, "  " PLACE), *other = strstr(text.text, "another:");
    assert_true(lab_str_starts(text.text, "Study: outputs/given\n\n"));
    assert_null(strstr(text.text, "  from "));
    assert_true(first && other && first < other);
    assert_true(strstr(first + 1, "  " PLACE) > other);
    assert_contains(text.text, "device 3 rather than device 2");
    both[1].study = "elsewhere";
    both[1].simulated = true;
    lab_str_clear(&text);
    write(both, 2, (struct lab_style){.columns = 120}, &given.arena, &text);
    assert_true(
        lab_str_starts(text.text, "Study: outputs/given\nStudy: elsewhere (simulated)\n\n"));
    assert_contains(text.text, "  from elsewhere\n");
    lab_str_release(&text);
    given_end(&given);
}

LAB_TEST(what_was_not_measured_says_so) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    for (int i = 0; i < advice.count; i++) {
        const struct lab_advice_line *line = &advice.lines[i];
        assert_int_equal(isnan(line->gain), line->state >= LAB_ADVICE_SAME_PLACE);
        assert_true(line->why && *line->why);
    }
    assert_int_equal(find(&advice, "mps")->state, LAB_ADVICE_NOT_MEASURED);
    struct lab_str text;
    lab_str_init(&text);
    write(&advice, 1, (struct lab_style){.columns = 80, .unicode = true}, &given.arena, &text);
    const char *apart = strstr(text.text, "Not measured here");
    assert_non_null(apart);
    assert_true(strstr(text.text, "numactl --cpunodebind=1") < apart);
    assert_contains(apart, "nvidia-smi -i " GPU " -c EXCLUSIVE_PROCESS");
    lab_str_release(&text);
    given_end(&given);
}

LAB_TEST(a_node_that_gains_nothing_is_not_advised) {
    struct given_study given;
    given_nodes(&given, 1000, 1000, 6, .005);
    struct lab_advice advice = advise(&given);
    assert_int_equal(find(&advice, "numactl")->state, LAB_ADVICE_NOT_WORTH);
    assert_string_equal(advice.best, "GPU 3, any NUMA node");
    assert_null(find(&advice, "slurm"));
    assert_null(find(&advice, "taskset"));
    const char *answer = lab_advice_answer(&advice, 1, &given.arena);
    assert_true(lab_str_starts(answer, "Nothing is worth it: none of 1 choice gains more than"));
    struct lab_str text;
    lab_str_init(&text);
    write(&advice, 1, (struct lab_style){.columns = 80}, &given.arena, &text);
    assert_null(strstr(text.text, "  " PLACE " numactl"));
    assert_contains(text.text, "none larger than");
    lab_str_release(&text);
    given_end(&given);
}

LAB_TEST(one_run_each_advises_nothing_but_more_runs) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 1, 0);
    struct lab_advice advice = advise(&given);
    assert_int_equal(find(&advice, "numactl")->state, LAB_ADVICE_UNDECIDED);
    assert_true(
        lab_str_starts(lab_advice_answer(&advice, 1, &given.arena), "Nothing can be advised yet"));
    assert_non_null(advice.next);
    assert_contains(advice.next, "experiment.repeat=5");
    given_end(&given);
}

LAB_TEST(programs_get_states_and_intervals) {
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    struct lab_value *value = lab_advice_value(&advice, &given.arena);
    const struct lab_value *first = lab_value_get(value, "lines")->items[0];
    assert_string_equal(lab_value_get(first, "state")->string, "worth");
    assert_true(lab_value_get(first, "measured")->boolean);
    const struct lab_value *interval = lab_value_get(first, "gain_interval");
    assert_true(lab_value_get(interval, "low")->number < lab_value_get(interval, "high")->number);
    given_end(&given);
}
