/* tracker_about.h: what trackers are told about a run: who it is, its settings, its result. */
#pragma once

#include "load/study_file.h"
#include "track/tracker_send.h"

/* `asked` as it may stand in names; NULL = the study's own. */
const char *track_about_project(const struct lab_study_file *file, const char *asked,
                                struct lab_arena *arena);
/* On which host the study ran; "" = unknown. */
const char *track_about_host(const struct lab_study_file *file, struct lab_arena *arena);
/* Everything is in the arena, or lives as long as the file. */
struct lab_track_run track_about_run(const struct lab_study_file *file, const struct lab_run *run,
                                     const char *project, const char *host,
                                     struct lab_arena *arena);
/* Name, folder and names of values as they were asked for. */
void track_about_override(struct lab_track_run *about, const struct lab_track_request *request,
                          struct lab_arena *arena);
/* Of a run that is done or failed. */
struct lab_track_end track_about_end(const struct lab_run *run, struct lab_arena *arena);
