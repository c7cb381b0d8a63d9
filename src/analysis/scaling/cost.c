/*
 * cost.c: the cost model, fitted by least squares of relative errors.
 *
 * With the ridge ρ = compute rate / memory bandwidth a kernel takes launch + max(FLOPs, ρ bytes) /
 * compute rate: linear in the launch and in 1 / rate. So ρ alone is searched for.
 */
#include "analysis/scaling/scaling.h"

#include <math.h>

#define GRID     96
#define HALVINGS 40
#define ALIKE    2.25 /* times the least sum of squares: about where an F test at 95% is */
#define ROUNDING 1e-8

struct totals { /* of an iteration's kernels, at a ridge */
    double launches, work;
};

static struct totals total(const struct lab_study_work *work, double ridge) {
    struct totals totals = {0, 0};
    for (int i = 0; i < work->kernel_count; i++) {
        const struct lab_study_kernel *kernel = &work->kernels[i];
        totals.launches += kernel->count;
        totals.work += kernel->count * fmax(kernel->flops, ridge * kernel->bytes);
    }
    return totals;
}

/* --- one fit at a ridge --- */

struct line {
    double launch_s, flop_s;
    double squares; /* of relative errors */
};

static double compute_s(const struct scaling_sample *sample) {
    return sample->times.compute_s > 0 ? sample->times.compute_s : sample->iteration_s;
}

static double squares_of(const struct scaling_sample *samples, int count, int without, double ridge,
                         double launch_s, double flop_s) {
    double squares = 0;
    for (int i = 0; i < count; i++) {
        struct totals totals = total(samples[i].work, ridge);
        double time_s = compute_s(&samples[i]);
        double error = (launch_s * totals.launches + flop_s * totals.work) / time_s - 1;
        squares += i == without ? 0 : error * error;
    }
    return squares;
}

/* Neither is below 0. */
static struct line fit_line(const struct scaling_sample *samples, int count, int without,
                            double ridge) {
    double nn = 0, nw = 0, ww = 0, n = 0, w = 0;
    for (int i = 0; i < count; i++) {
        if (i == without)
            continue;
        struct totals totals = total(samples[i].work, ridge);
        double launches = totals.launches / compute_s(&samples[i]),
               work = totals.work / compute_s(&samples[i]);
        nn += launches * launches;
        nw += launches * work;
        ww += work * work;
        n += launches;
        w += work;
    }
    double determinant = nn * ww - nw * nw;
    struct line line = {(n * ww - w * nw) / determinant, (w * nn - n * nw) / determinant, 0};
    if (!(line.launch_s > 0))
        line = (struct line){0, w / ww, 0};
    else if (!(line.flop_s > 0))
        line = (struct line){n / nn, 0, 0};
    line.squares = squares_of(samples, count, without, ridge, line.launch_s, line.flop_s);
    return line;
}

/* --- the ridge --- */

static void find_range(const struct scaling_sample *samples, int count, double *ret_low,
                       double *ret_high) {
    *ret_low = INFINITY;
    *ret_high = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < samples[i].work->kernel_count; k++) {
            const struct lab_study_kernel *kernel = &samples[i].work->kernels[k];
            double intensity = kernel->flops / kernel->bytes;
            if (intensity > 0 && isfinite(intensity)) {
                *ret_low = fmin(*ret_low, intensity);
                *ret_high = fmax(*ret_high, intensity);
            }
        }
}

static struct scaling_cost cost_at(const struct line *line, double ridge) {
    return (struct scaling_cost){.seconds = {line->launch_s, line->flop_s, line->flop_s * ridge},
                                 .squares = line->squares};
}

/* How far the parameters move among ridges that fit about as well as the best does. */
static void find_spread(const struct line *lines, double low, double step, double least,
                        double ret_spread[SCALING_PARAMETERS]) {
    double smallest[SCALING_PARAMETERS], largest[SCALING_PARAMETERS];
    for (int p = 0; p < SCALING_PARAMETERS; p++) {
        smallest[p] = INFINITY;
        largest[p] = 0;
    }
    for (int i = 0; i <= GRID; i++) {
        struct scaling_cost cost = cost_at(&lines[i], low * exp(i * step));
        for (int p = 0; p < SCALING_PARAMETERS && lines[i].squares <= ALIKE * least + ROUNDING;
             p++) {
            smallest[p] = fmin(smallest[p], cost.seconds[p]);
            largest[p] = fmax(largest[p], cost.seconds[p]);
        }
    }
    for (int p = 0; p < SCALING_PARAMETERS; p++)
        ret_spread[p] = largest[p] / smallest[p];
}

static struct scaling_cost fit_kernels(const struct scaling_sample *samples, int count,
                                       int without) {
    double low, high, best = NAN, least = INFINITY;
    struct line lines[GRID + 1];
    find_range(samples, count, &low, &high);
    if (!(high > 0)) { /* nothing has both FLOPs and bytes */
        struct line line = fit_line(samples, count, without, 0);
        return cost_at(&line, 0);
    }
    double step = log(high / low) / GRID;
    for (int i = 0; i <= GRID; i++) {
        lines[i] = fit_line(samples, count, without, low * exp(i * step));
        if (lines[i].squares < least) {
            least = lines[i].squares;
            best = low * exp(i * step);
        }
    }
    double from = best * exp(-step), until = best * exp(step);
    for (int i = 0; i < HALVINGS; i++) {
        double a = from * pow(until / from, 1 / 3.0), b = from * pow(until / from, 2 / 3.0);
        if (fit_line(samples, count, without, a).squares <
            fit_line(samples, count, without, b).squares)
            until = b;
        else
            from = a;
    }
    double ridge = sqrt(from * until);
    struct line line = fit_line(samples, count, without, ridge);
    struct scaling_cost cost = cost_at(&line, ridge);
    find_spread(lines, low, step, line.squares, cost.spread);
    return cost;
}

/* --- copies --- */

/* Seconds a byte, over all samples that copy any. */
static double byte_s(const struct scaling_sample *samples, int count, int without, bool h2d) {
    double logs = 0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        double bytes = h2d ? samples[i].work->h2d_bytes : samples[i].work->d2h_bytes;
        double time_s = h2d ? samples[i].times.h2d_s : samples[i].times.d2h_s;
        if (i == without || !(bytes > 0) || !(time_s > 0))
            continue;
        logs += log(time_s / bytes);
        n++;
    }
    return n > 0 ? exp(logs / n) : 0;
}

struct scaling_cost scaling_cost_fit(const struct scaling_sample *samples, int count, int without) {
    struct scaling_cost cost = fit_kernels(samples, count, without);
    cost.h2d_byte_s = byte_s(samples, count, without, true);
    cost.d2h_byte_s = byte_s(samples, count, without, false);
    return cost;
}

/* --- launches of the host --- */

#define HOST_ALIKE  1.02 /* times the least time for a launch: bound by the host as well */
#define HOST_BETTER 9    /* times smaller is the mean square of errors without those */

double scaling_cost_find_host(const struct scaling_sample *samples, int count, bool *ret_bound) {
    LAB_AUTO_FREE struct scaling_sample *rest = lab_mem_alloc((size_t)count + 1, sizeof *rest);
    double least = INFINITY, host_s = 0;
    int kept = 0;
    for (int i = 0; i < count; i++)
        least = fmin(least, compute_s(&samples[i]) / total(samples[i].work, 0).launches);
    for (int i = 0; i < count; i++) {
        double each = compute_s(&samples[i]) / total(samples[i].work, 0).launches;
        ret_bound[i] = each <= HOST_ALIKE * least;
        if (!ret_bound[i])
            rest[kept++] = samples[i];
    }
    if (kept >= SCALING_MODELS_LEAST && kept < count) {
        struct scaling_cost all = fit_kernels(samples, count, -1),
                            without = fit_kernels(rest, kept, -1);
        bool better = all.squares * (kept - SCALING_PARAMETERS) >
                      HOST_BETTER * without.squares * (count - SCALING_PARAMETERS);
        for (int i = 0; i < count; i++) /* the device alone would take less */
            better = better &&
                     (!ret_bound[i] ||
                      scaling_cost_iteration_s(&without, samples[i].work) < compute_s(&samples[i]));
        host_s = better ? least : 0;
    }
    for (int i = 0; i < count; i++)
        ret_bound[i] = ret_bound[i] && host_s > 0;
    return host_s;
}

/* --- what it says --- */

static void add_parts(const struct scaling_cost *cost, const struct lab_study_work *work,
                      double ret_parts[SCALING_PARAMETERS]) {
    for (int p = 0; p < SCALING_PARAMETERS; p++)
        ret_parts[p] = 0;
    for (int i = 0; i < work->kernel_count; i++) {
        const struct lab_study_kernel *kernel = &work->kernels[i];
        double flops_s = kernel->flops * cost->seconds[SCALING_COMPUTE],
               bytes_s = kernel->bytes * cost->seconds[SCALING_MEMORY];
        ret_parts[SCALING_LAUNCH] += kernel->count * cost->seconds[SCALING_LAUNCH];
        ret_parts[flops_s > bytes_s ? SCALING_COMPUTE : SCALING_MEMORY] +=
            kernel->count * fmax(flops_s, bytes_s);
    }
}

double scaling_cost_share(const struct scaling_cost *cost, const struct lab_study_work *work,
                          enum scaling_parameter parameter) {
    double parts[SCALING_PARAMETERS];
    add_parts(cost, work, parts);
    return parts[parameter] /
           (parts[SCALING_LAUNCH] + parts[SCALING_COMPUTE] + parts[SCALING_MEMORY]);
}

double scaling_cost_iteration_s(const struct scaling_cost *cost,
                                const struct lab_study_work *work) {
    double parts[SCALING_PARAMETERS];
    add_parts(cost, work, parts);
    double kernels_s = fmax(parts[SCALING_LAUNCH] + parts[SCALING_COMPUTE] + parts[SCALING_MEMORY],
                            cost->host_s * total(work, 0).launches),
           h2d_s = work->h2d_bytes * cost->h2d_byte_s, d2h_s = work->d2h_bytes * cost->d2h_byte_s,
           sum_s = h2d_s + kernels_s + d2h_s;
    return cost->serial ? sum_s : fmax(fmax(h2d_s, d2h_s), fmax(kernels_s, sum_s / 2));
}
