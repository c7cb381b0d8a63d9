/*
 * patches.cu: images into rows of patches, and rows of patches into tokens. Pure movement: a thread
 * does one element.
 *
 *     grid: ⌈count / 256⌉ blocks of 256 threads; count = elements of the output
 */
extern "C" __global__ void __launch_bounds__(256)
    patchify(const element *image, element *out, s64 count, int channels, int height, int width,
             int patch) {
    s64 i = (s64)blockIdx.x * 256 + threadIdx.x;
    if (i >= count)
        return;
    int columns = patch * patch * channels, across = width / patch;
    int patches = across * (height / patch);
    int c = (int)(i % columns);
    s64 r = i / columns, b = r / patches;
    int p = (int)(r % patches), k = c % channels, at = c / channels;
    int y = p / across * patch + at / patch, x = p % across * patch + at % patch;
    out[i] = image[((b * channels + k) * height + y) * width + x];
}

extern "C" __global__ void __launch_bounds__(256)
    embed(const element *x, const element *first, const element *position, element *out, s64 count,
          int patches, int columns) {
    s64 i = (s64)blockIdx.x * 256 + threadIdx.x;
    if (i >= count)
        return;
    int c = (int)(i % columns);
    s64 r = i / columns, b = r / (patches + 1);
    int t = (int)(r % (patches + 1));
    float v = to_float(t ? x[(b * patches + t - 1) * columns + c] : first[c]);
    out[i] = from_float(v + to_float(position[(s64)t * columns + c]));
}
