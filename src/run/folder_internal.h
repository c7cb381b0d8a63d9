/*
 * folder_internal.h: what folder.c and its neighbours folder_*.c share.
 */
#pragma once

#include "run/folder.h"
#include "store/store.h"

#define FOLDER_DATABASE "study.db"
#define FOLDER_LOCK     "lock"

/* --- names: "<YYYY-MM-DD>/<HH-MM-SS>[_2]" --- */

bool folder_is_date(const char *name);
bool folder_is_time(const char *name);
/* As strcmp, but "_10" comes behind "_9". */
int folder_compare_times(const char *a, const char *b);

/* --- changing a study that has ended --- */

/* Fails unless it is this user's own folder with a study in it, and no link. */
int folder_check(const char *folder, struct lab_err *err);
/* The study's lock, which the caller closes; -1: it runs, and the error says who has it. */
int folder_hold(const char *folder, struct lab_err *err);

/* --- resuming --- */

/* The request's command with the keys of that study which are others now; NULL = unknown. */
const char *folder_resume_command(const struct lab_folder_request *request,
                                  const struct lab_store_study *study, struct lab_arena *arena);
