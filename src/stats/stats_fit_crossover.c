/*
 * stats_fit_crossover.c: where two fitted lines meet, by Fieller's theorem. Their difference
 * D(x) = d₀ + d₁ x has the variance v₀₀ + 2 v₀₁ x + v₁₁ x², so D² ≤ t² var is a quadratic in x.
 */
#include "stats/fit.h"

#include <math.h>

static const struct lab_interval unknown = {NAN, NAN, NAN};

struct difference {
    double at0, slope; /* d₀, d₁, scaled */
    double v00, v01, v11;
    double unit; /* of x */
};

/* Units in which neither part is huge, so that squares stay finite. */
static struct difference difference_of(const struct lab_fit *a, const struct lab_fit *b) {
    double d0 = a->coefficients[0] - b->coefficients[0];
    double d1 = a->coefficients[1] - b->coefficients[1];
    double a0 = a->standard_errors[0], a1 = a->standard_errors[1];
    double b0 = b->standard_errors[0], b1 = b->standard_errors[1];
    double height = fmax(fabs(d0), fmax(a0, b0)), steepness = fmax(fabs(d1), fmax(a1, b1));
    height = height > 0 ? height : 1;
    steepness = steepness > 0 ? steepness : 1;
    a0 /= height, b0 /= height;
    a1 /= steepness, b1 /= steepness;
    return (struct difference){
        .at0 = d0 / height,
        .slope = d1 / steepness,
        .v00 = a0 * a0 + b0 * b0,
        .v01 = a0 * a1 * a->correlation[0][1] + b0 * b1 * b->correlation[0][1],
        .v11 = a1 * a1 + b1 * b1,
        .unit = height / steepness,
    };
}

/* Of the line itself. */
static double variance_at(const struct lab_fit *fit, double x) {
    return lab_fit_covariance(fit, 0, 0) + 2 * x * lab_fit_covariance(fit, 0, 1) +
           x * x * lab_fit_covariance(fit, 1, 1);
}

/* Welch and Satterthwaite's, for the difference of the lines at x. */
static double degrees_at(const struct lab_fit *a, const struct lab_fit *b, double x) {
    double va = variance_at(a, x), vb = variance_at(b, x);
    double da = a->degrees_of_freedom, db = b->degrees_of_freedom;
    if (!(va + vb > 0) || isinf(va + vb))
        return fmin(da, db); /* no spread to weigh them by: the careful choice */
    double sa = va / (va + vb), sb = vb / (va + vb);
    return 1 / (sa * sa / da + sb * sb / db);
}

static struct lab_interval hull(double low, double high, double from, double to,
                                double confidence) {
    low = fmax(low, from);
    high = fmin(high, to);
    return low <= high ? (struct lab_interval){low, high, confidence} : unknown;
}

static struct lab_interval indistinct(const struct difference *d, double t, double from, double to,
                                      double confidence) {
    double a = d->slope * d->slope - t * t * d->v11;
    double b = d->at0 * d->slope - t * t * d->v01;
    double c = d->at0 * d->at0 - t * t * d->v00;
    double root = b * b - a * c;
    if (a > 0) { /* the slopes differ for sure: between the roots, which exist */
        double reach = sqrt(fmax(root, 0));
        return hull((-b - reach) / a * d->unit, (-b + reach) / a * d->unit, from, to, confidence);
    }
    if (!(root > 0) || a == 0)
        return hull(-INFINITY, INFINITY, from, to, confidence);
    /* outside the roots; a < 0 orders them the other way */
    double low = (-b + sqrt(root)) / a * d->unit, high = (-b - sqrt(root)) / a * d->unit;
    struct lab_interval left = hull(-INFINITY, low, from, to, confidence);
    struct lab_interval right = hull(high, INFINITY, from, to, confidence);
    if (isnan(left.low))
        return right;
    return isnan(right.low) ? left : hull(left.low, right.high, from, to, confidence);
}

static bool line(const struct lab_fit *fit) {
    return fit->state == LAB_FIT_OK && fit->model == &lab_law_line && fit->degrees_of_freedom > 0;
}

struct lab_crossover lab_fit_crossover(const struct lab_fit *a, const struct lab_fit *b,
                                       double from, double to, double confidence) {
    struct lab_crossover crossover = {NAN, unknown};
    if (!line(a) || !line(b) || !(confidence > 0 && confidence < 1))
        return crossover;
    struct difference d = difference_of(a, b);
    double at = d.slope != 0 ? -d.at0 / d.slope * d.unit : NAN;
    if (at >= from && at <= to)
        crossover.at = at;
    double t = lab_stats_t_quantile(0.5 + confidence / 2, degrees_at(a, b, isnan(at) ? 0 : at));
    crossover.interval = indistinct(&d, t, from, to, confidence);
    return crossover;
}
