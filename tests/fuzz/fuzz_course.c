/*
 * fuzz_course.c: a campaign's folder, whose campaign.json anybody may have written, is refused with
 * words or opened: its name is part of a path, times are none below 0. Written again, it is opened
 * the same.
 * covers: src/command/campaign/folder.c
 */
#include "command/campaign/course.h"
#include "folder.h"

#include <math.h>
#include <string.h>

static const char plan[] =
    "title: A plan\n"
    "questions:\n"
    "  - {name: loss, ask: 'How much is lost?', analysis: numa, phases: [near]}\n"
    "phases:\n"
    "  - {name: near, studies: ['quick_test', 'quick_test seed=7']}\n"
    "  - {name: far, after: [near], studies: ['-m numa_study seed=1,2']}\n";

static void check(const struct course *course) {
    require(!strchr(course->campaign.name, '/') && course->campaign.name[0] != '-');
    require(course->campaign.study_count == 3 && course->overrides);
    for (int i = 0; i < course->campaign.study_count; i++) {
        double taken_s = course->found[i].taken_s;
        require(isnan(taken_s) || (taken_s >= 0 && !isinf(taken_s)));
        require(lab_str_starts(course->studies[i].slot, folder));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_shared shared = {.device = "auto"};
    struct lab_command_call call = {.arena = &arena, .shared = &shared};
    struct course course = {.call = &call, .arena = &arena, .lock_fd = -1}, again = course;
    static const char machine[] = "{\"simulated\": true}";
    folder_write("campaign.yaml", plan, strlen(plan));
    folder_write("machine.json", machine, strlen(machine));
    folder_write("campaign.json", data, size);
    require(course_is_folder(folder));
    if (course_reopen(&course, folder, &err) < 0) {
        require_error(&err);
        return 0;
    }
    check(&course);
    struct lab_campaign_known known = course_known(&course);
    const struct lab_campaign_status *statuses =
        lab_campaign_decide(&course.campaign, &known, &arena);
    require(course.simulated && course_write(&course, statuses, true, &err) == 0);
    require(course_reopen(&again, folder, &err) == 0 && again.identity == course.identity);
    check(&again);
    for (int i = 0; i < course.campaign.study_count; i++)
        require(isnan(course.found[i].taken_s) ? isnan(again.found[i].taken_s)
                                               : again.found[i].taken_s == course.found[i].taken_s);
    require(lab_str_equal(again.campaign.name, course.campaign.name) &&
            lab_str_equal(again.machine_note, course.machine_note));
    return 0;
}
