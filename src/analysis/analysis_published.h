/*
 * analysis_published.h: what a published study of training measured on two RTX 4070 Ti SUPER
 * without peer access, with TensorFlow: samples a second on one of them and on both. Its models are
 * `medium` and `large`; it gave them sizes that their layers don't have.
 */
#pragma once

struct lab_published {
    const char *model;
    int batch;
    double one, two;
};

extern const struct lab_published lab_published[]; /* ends with a model of NULL */

/* "258 K": the parameters that a model was said to have; NULL = there is no such model. */
const char *lab_published_size(const char *model);
