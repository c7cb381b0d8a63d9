/*
 * limit.h: what the control groups of a container or job leave to this process.
 */
#pragma once

#include <stdint.h>

/* Memory that they leave; -1 = they have no limit. */
int64_t lab_limit_memory_left(void);
/* CPU time for each second that passes: 1.5 = one CPU and a half; -1 = they have no limit. */
double lab_limit_cpus(void);
