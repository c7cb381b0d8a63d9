/* machine_internal.h: parts of the machine's document that others of it add. */
#pragma once

#include "report/report.h"

/* Cells: a size, a node's number; what is unknown (below 0) is said. */
void report_add_size(struct lab_doc *doc, int64_t bytes);
void report_add_node(struct lab_doc *doc, int number);

/* A box for each node with its cores, memory, bridges and devices. `state`: the machine. */
void report_draw_map(const void *state, struct lab_style style, struct lab_str *out);
/* How GPUs and network cards reach each other, as nvidia-smi topo -m shows it, with a legend. */
void report_add_links(struct lab_doc *doc, const struct lab_machine *machine);
/* "GPU0 and GPU1 are fed by node 0 (CPUs 0-15)": a line for each node. */
void report_add_feeding(struct lab_doc *doc, const struct lab_machine *machine);
