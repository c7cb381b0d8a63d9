/*
 * analyzer.h: what clang-tidy can't see, since it looks at one source at a time: setting an error
 * always returns -1. Without it, every `return lab_err_set(…)` looks as if it might succeed with its
 * outputs unset. tools/tidy includes it before each source but err.c.
 */
#include "base/err.h"

#define lab_err_set(...)       (lab_err_set(__VA_ARGS__), -1)
#define lab_err_vset(...)      (lab_err_vset(__VA_ARGS__), -1)
#define lab_err_set_errno(...) (lab_err_set_errno(__VA_ARGS__), -1)
#define lab_err_context(...)   (lab_err_context(__VA_ARGS__), -1)
#define lab_err_hint(...)      (lab_err_hint(__VA_ARGS__), -1)
