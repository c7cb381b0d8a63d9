/*
 * workload_data.c: values in a device's number format, and their way there and back outside the
 * measured path. The conversions are written out because gcc 12 and clang 14 agree on no half type.
 */
#include "workload/workload.h"

#include "base/random.h"

#include <math.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if (isnan(value))
        return (uint16_t)((bits >> 16) | 0x40); /* quiet, or the rounding could make it infinite */
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static uint16_t to_fp16(float value) {
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return sign | 0x7e00;
    if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { /* below 2⁻¹⁴: a multiple of 2⁻²⁴, and lrint rounds to even */
        return sign | (uint16_t)lrintf(float_of(magnitude) * 0x1p24f);
    }
    uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return sign | (uint16_t)((rounded - 0x38000000) >> 13);
}

static float from_fp16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00)
        return float_of(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
    if (magnitude < 0x400)
        return sign ? -(float)magnitude * 0x1p-24f : (float)magnitude * 0x1p-24f;
    return float_of(sign | ((magnitude << 13) + 0x38000000));
}

void lab_data_encode(enum lab_dtype dtype, const float *values, int64_t count, void *out) {
    uint16_t *halves = out;
    switch (dtype) {
    case LAB_FP32:
    case LAB_TF32:
        memcpy(out, values, (size_t)count * sizeof *values);
        break;
    case LAB_BF16:
        for (int64_t i = 0; i < count; i++)
            halves[i] = to_bf16(values[i]);
        break;
    case LAB_FP16:
        for (int64_t i = 0; i < count; i++)
            halves[i] = to_fp16(values[i]);
        break;
    }
}

void lab_data_decode(enum lab_dtype dtype, const void *data, int64_t count, float *out) {
    const uint16_t *halves = data;
    switch (dtype) {
    case LAB_FP32:
    case LAB_TF32:
        memcpy(out, data, (size_t)count * sizeof *out);
        break;
    case LAB_BF16:
        for (int64_t i = 0; i < count; i++)
            out[i] = float_of((uint32_t)halves[i] << 16);
        break;
    case LAB_FP16:
        for (int64_t i = 0; i < count; i++)
            out[i] = from_fp16(halves[i]);
        break;
    }
}

void lab_data_constant(const void *state, int64_t first, int64_t count, float *out) {
    (void)first;
    for (int64_t i = 0; i < count; i++)
        out[i] = *(const float *)state;
}

void lab_data_random(const void *state, int64_t first, int64_t count, float *out) {
    uint64_t seed = *(const uint64_t *)state;
    for (int64_t i = 0; i < count; i++)
        out[i] = lab_random_symmetric(seed, (uint64_t)(first + i));
}

/* --- to the device and back, a chunk at a time --- */

enum { CHUNK = 1 << 18 }; /* elements: 1 MiB of fp32 stays in cache */

static int open_staging(struct lab_stream *stream, int64_t count, struct lab_buffer *ret_staging,
                        struct lab_err *err) {
    int64_t elements = count < CHUNK ? count : CHUNK;
    return lab_buffer_open(stream->device, LAB_MEMORY_HOST_PAGEABLE, -1,
                           (size_t)elements * sizeof(float), ret_staging, err);
}

int lab_data_upload(struct lab_stream *stream, void *to, enum lab_dtype dtype, int64_t count,
                    lab_data_source *source, const void *state, struct lab_err *err) {
    if (stream->device->ref.simulated) /* its memory has no content */
        return 0;
    struct lab_buffer staging = {0};
    if (count == 0)
        return 0;
    if (open_staging(stream, count, &staging, err))
        return -1;
    LAB_AUTO_FREE float *values = lab_mem_alloc(CHUNK, sizeof *values);
    int failed = 0;
    for (int64_t done = 0; done < count && !failed; done += CHUNK) {
        int64_t part = count - done < CHUNK ? count - done : CHUNK;
        size_t bytes = (size_t)part * lab_dtype_bytes(dtype);
        source(state, done, part, values);
        lab_data_encode(dtype, values, part, staging.data);
        failed = lab_copy(stream, (char *)to + (size_t)done * lab_dtype_bytes(dtype), staging.data,
                          bytes, LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err) ||
                 lab_stream_sync(stream, err);
    }
    lab_buffer_close(&staging);
    return failed ? -1 : 0;
}

int lab_data_download(struct lab_stream *stream, const void *from, enum lab_dtype dtype,
                      int64_t count, float *out, struct lab_err *err) {
    struct lab_buffer staging = {0};
    if (count == 0)
        return 0;
    if (open_staging(stream, count, &staging, err))
        return -1;
    int failed = 0;
    for (int64_t done = 0; done < count && !failed; done += CHUNK) {
        int64_t part = count - done < CHUNK ? count - done : CHUNK;
        size_t bytes = (size_t)part * lab_dtype_bytes(dtype);
        failed = lab_copy(stream, staging.data,
                          (const char *)from + (size_t)done * lab_dtype_bytes(dtype), bytes,
                          LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, err) ||
                 lab_stream_sync(stream, err);
        if (!failed)
            lab_data_decode(dtype, staging.data, part, out + done);
    }
    lab_buffer_close(&staging);
    return failed ? -1 : 0;
}

int lab_data_require(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype,
                     struct lab_err *err) {
    bool supported =
        device->ops->supports ? device->ops->supports(device, op, dtype) : dtype == LAB_FP32;
    if (supported)
        return 0;
    LAB_AUTO(str, there);
    for (int i = 0; lab_dtype_names[i]; i++) {
        enum lab_dtype other;
        if (lab_dtype_parse(lab_dtype_names[i], &other) || other == dtype)
            continue;
        if (device->ops->supports ? device->ops->supports(device, op, other) : other == LAB_FP32)
            lab_str_printf(&there, "%s%s", there.length ? ", " : "", lab_dtype_names[i]);
    }
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s does no %s in %s%s%s", device->ref.name,
                       lab_op_get(op)->name, lab_dtype_name(dtype),
                       there.length ? ", only in " : "", there.text);
}
