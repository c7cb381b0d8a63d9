/* version.c: `gpulab version`: which program this is and what it is built from. */
#include "command/command.h"
#include "doc/doc.h"

#include "version.h"

#include <string.h>

/* Declared here, since their headers belong to the layers that use these libraries. */
extern const char *gsl_version;
unsigned hwloc_get_api_version(void);
char *openblas_get_config(void);
const char *jansson_version_str(void);
const char *yaml_get_version_string(void);
const char *sqlite3_libversion(void);

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__SANITIZE_ADDRESS__)
#define CHECKED ", address sanitizer"
#elif defined(__SANITIZE_THREAD__)
#define CHECKED ", thread sanitizer"
#else
#define CHECKED ""
#endif

#ifdef __OPTIMIZE__
#define BUILD "optimised" CHECKED
#else
#define BUILD "not optimised" CHECKED
#endif

static int version_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    (void)err;
    unsigned hwloc = hwloc_get_api_version();
    const char *blas = openblas_get_config(); /* names itself in front of its own version */
    blas += lab_str_starts(blas, "OpenBLAS ") ? strlen("OpenBLAS ") : 0;
    struct lab_doc *doc = lab_doc_open("gpulab", call->arena);
    lab_doc_text(doc, LAB_DOC_WHOLE, "gpulab %s", LAB_VERSION);
    lab_doc_data(doc, "version", lab_value_string(call->arena, LAB_VERSION));
    lab_doc_line_as(doc, "compiler", "compiler", COMPILER);
    lab_doc_line_as(doc, "build", "build", BUILD);
    lab_doc_begin(doc, (struct lab_doc_section){.key = "libraries"});
    /* as loaded, not as compiled against: with shared libraries they may differ */
    lab_doc_line_as(doc, "hwloc", "hwloc",
                    lab_arena_printf(call->arena, "%u.%u", hwloc >> 16, (hwloc >> 8) & 0xff));
    lab_doc_line_as(doc, "OpenBLAS", "OpenBLAS", blas);
    lab_doc_line_as(doc, "GSL", "GSL", gsl_version);
    lab_doc_line_as(doc, "jansson", "jansson", jansson_version_str());
    lab_doc_line_as(doc, "libyaml", "libyaml", yaml_get_version_string());
    lab_doc_line_as(doc, "SQLite", "SQLite", sqlite3_libversion());
    lab_doc_end(doc);
    lab_doc_print(doc, call->console);
    return 0;
}

const struct lab_command lab_command_version = {
    .name = "version",
    .summary = "show the version, the compiler and the libraries",
    .usage = "",
    .run = version_run,
};
