/*
 * zip.h: texts as one ZIP archive, which every system and every bug tracker opens. They are stored
 * as they are: what is packed is small.
 */
#pragma once

#include "base/str.h"

struct lab_zip {
    struct lab_str bytes;     /* the archive, once it is ended */
    struct lab_str directory; /* what stands at its end */
    int count;
};

void lab_zip_init(struct lab_zip *zip);
void lab_zip_release(struct lab_zip *zip);

/* `name`: "gpulab/version.json". Of all of it less than 4 GiB. */
void lab_zip_add(struct lab_zip *zip, const char *name, const char *bytes, size_t length);
/* Nothing can be added after it. */
void lab_zip_end(struct lab_zip *zip);
