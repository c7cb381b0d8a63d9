/*
 * folder_internal.h: what folder.c, folder_tree.c and folder_known.c share: names.
 */
#ifndef LAB_RUN_FOLDER_INTERNAL_H
#define LAB_RUN_FOLDER_INTERNAL_H

#include "run/folder.h"

#define FOLDER_DATABASE "study.db"
#define FOLDER_LOCK     "lock"

/* --- names: "<YYYY-MM-DD>/<HH-MM-SS>[_2]" --- */

bool folder_is_date(const char *name);
bool folder_is_time(const char *name);
/* As strcmp, but "_10" comes behind "_9". */
int folder_compare_times(const char *a, const char *b);

#endif
