/*
 * report.h: figures and machines as text for people. Everything is appended to a string: the caller
 * decides where it goes. Text fits `columns` and uses UTF-8 where `style.unicode`.
 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "base/tty/text.h"
#include "base/value.h"
#include "doc/doc.h"
#include "model/plan.h"
#include "session/bench_run.h"
#include "vendor/vendor.h"

#include <stdbool.h>

/* --- the machine --- */

/* "H100 SXM5 80GB" of "GH100 [H100 SXM5 80GB]", else the name, the vendor, or the ids. */
void lab_report_pci_model(const struct lab_pci *pci, struct lab_str *out);

/* Nodes, cores, caches, PCI devices with their node and links: tables; or, as a map, a drawing: a
 * box for each node with its cores, memory, bridges and devices. */
void lab_report_add_machine(struct lab_doc *doc, const struct lab_machine *machine, bool map);
/* Where the vendor's libraries lie, and below the table a line for each thing that is missing. */
void lab_report_add_libraries(struct lab_doc *doc, const struct lab_vendor_library *libraries,
                              int count);
/* What can be given to --device, backend by backend. */
void lab_report_add_backends(struct lab_doc *doc, const struct lab_device_offer *offers, int count);
struct lab_value *lab_report_device_value(const struct lab_device_ref *device,
                                          struct lab_arena *arena);

/* --- one bench --- */

void lab_report_add_bench(struct lab_doc *doc, const struct lab_bench_report *report);
struct lab_value *lab_report_bench_value(const struct lab_bench_report *report,
                                         struct lab_arena *arena);

/* --- the plan of a study --- */

/* "48 points × 5 repeats = 240 runs"; where points share runs "9 points, 8 distinct × …". */
void lab_report_add_counts(const struct lab_plan *plan, struct lab_str *out);

/* For people the first runs and all that is said about them together; for programs all of it. */
void lab_report_add_plan(struct lab_doc *doc, const struct lab_plan *plan,
                         const struct lab_plan_estimate *estimate);
