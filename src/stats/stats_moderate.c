/*
 * stats_moderate.c: what many variances of few values each have in common. Each is taken as drawn
 * from one distribution, a scaled inverse chi-squared, which is fitted by the moments of their
 * logarithms (Smyth, "Linear models and empirical Bayes methods", 2004). Where they differ no more
 * than chance has it, all are one.
 */
#include "stats/stats.h"

#include <math.h>

#define ASYMPTOTIC 6   /* from here on the series are exact to 1e-8 */
#define LARGEST    1e6 /* degrees of freedom that are as good as infinite */

static double digamma(double x) {
    double sum = 0;
    while (x < ASYMPTOTIC) {
        sum -= 1 / x;
        x += 1;
    }
    double y = 1 / (x * x);
    return sum + log(x) - 1 / (2 * x) - y * (1. / 12 - y * (1. / 120 - y / 252));
}

static double trigamma(double x) {
    double sum = 0;
    while (x < ASYMPTOTIC) {
        sum += 1 / (x * x);
        x += 1;
    }
    double y = 1 / (x * x);
    return sum + 1 / x + y / 2 + y / x * (1. / 6 - y * (1. / 30 - y / 42));
}

/* It falls from infinity to 0: bisection of the logarithm. */
static double inverse_trigamma(double value) {
    enum { STEPS = 60 };
    double low = log(1e-6), high = log(LARGEST);
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2;
        *(trigamma(exp(middle)) > value ? &low : &high) = middle;
    }
    return exp(low);
}

struct lab_variance_prior lab_stats_variance_prior(const double *variances, const double *freedoms,
                                                   size_t n) {
    struct lab_variance_prior prior = {NAN, 0};
    double sum = 0, squares = 0, expected = 0, total = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double half = freedoms[i] / 2;
        if (!(variances[i] > 0) || !(half > 0))
            continue;
        double scaled = log(variances[i]) - digamma(half) + log(half);
        sum += scaled;
        squares += scaled * scaled;
        expected += trigamma(half);
        total += variances[i];
        count++;
    }
    if (count < 2)
        return prior;
    double mean = sum / count,
           beyond = (squares - count * mean * mean) / (count - 1) - expected / count;
    double half = beyond > 0 ? inverse_trigamma(beyond) : LARGEST;
    if (half >= LARGEST / 2)
        return (struct lab_variance_prior){total / count, INFINITY};
    return (struct lab_variance_prior){exp(mean + digamma(half) - log(half)), 2 * half};
}
