/*
 * programs.h: the programs that studies of this user run now, on this host, read again and again:
 * each time only what is new. `top` and `status` show them.
 */
#pragma once

#include "model/program.h"

struct lab_programs;

struct lab_programs *lab_programs_open(void);
void lab_programs_close(struct lab_programs *programs); /* accepts NULL */

/* Of one study, by its folder, or of all that run (NULL). What is returned holds until the next
 * call. One that can't be read is passed over. Returns how many. */
int lab_programs_read(struct lab_programs *programs, const char *folder,
                      const struct lab_program **ret_items);
