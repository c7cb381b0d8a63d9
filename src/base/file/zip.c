/*
 * zip.c: APPNOTE 6.3's parts: before each file a header, at the end the same headers again with
 * where each begins, and a record that says how many. Dates are the format's first, 1980-01-01: the
 * same texts make the same archive.
 */
#include "base/file/zip.h"

#include <string.h>

#define VERSION   20     /* of the format: what any reader has */
#define FIRST_DAY 0x0021 /* 1980-01-01 */

void lab_zip_init(struct lab_zip *zip) {
    *zip = (struct lab_zip){0};
    lab_str_init(&zip->bytes);
    lab_str_init(&zip->directory);
}

void lab_zip_release(struct lab_zip *zip) {
    lab_str_release(&zip->bytes);
    lab_str_release(&zip->directory);
}

/* CRC-32 of ISO 3309, bit by bit. */
static uint32_t checksum(const char *bytes, size_t length) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* The lowest byte first. */
static void add(struct lab_str *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        char byte = (char)(value >> 8 * i & 0xff);
        lab_str_add_bytes(out, &byte, 1);
    }
}

/* What a file's header and its row of the directory have in common. */
static void add_file(struct lab_str *out, const char *name, uint32_t crc, size_t length) {
    add(out, VERSION, 2);
    add(out, 0, 4); /* flags, method: stored */
    add(out, 0, 2); /* time */
    add(out, FIRST_DAY, 2);
    add(out, crc, 4);
    add(out, (uint32_t)length, 4); /* in the archive and outside */
    add(out, (uint32_t)length, 4);
    add(out, (uint32_t)strlen(name), 2);
    add(out, 0, 2); /* extra fields */
}

void lab_zip_add(struct lab_zip *zip, const char *name, const char *bytes, size_t length) {
    uint32_t start = (uint32_t)zip->bytes.length, crc = checksum(bytes, length);
    lab_str_add_bytes(&zip->bytes, "PK\3\4", 4);
    add_file(&zip->bytes, name, crc, length);
    lab_str_add(&zip->bytes, name);
    lab_str_add_bytes(&zip->bytes, bytes, length);

    lab_str_add_bytes(&zip->directory, "PK\1\2", 4);
    add(&zip->directory, VERSION, 2);
    add_file(&zip->directory, name, crc, length);
    add(&zip->directory, 0, 6); /* comment, disk, attributes */
    add(&zip->directory, 0, 4);
    add(&zip->directory, start, 4);
    lab_str_add(&zip->directory, name);
    zip->count++;
}

void lab_zip_end(struct lab_zip *zip) {
    uint32_t start = (uint32_t)zip->bytes.length;
    lab_str_add_bytes(&zip->bytes, zip->directory.text, zip->directory.length);
    lab_str_add_bytes(&zip->bytes, "PK\5\6", 4);
    add(&zip->bytes, 0, 4); /* disks */
    add(&zip->bytes, (uint32_t)zip->count, 2);
    add(&zip->bytes, (uint32_t)zip->count, 2);
    add(&zip->bytes, (uint32_t)zip->directory.length, 4);
    add(&zip->bytes, start, 4);
    add(&zip->bytes, 0, 2); /* comment */
}
