/*
 * pci_names.c: what PCI numbers are called. hwloc knows names only where it was built with
 * libpciaccess, which Debian's isn't; so they come from the system's pci.ids, and where that is
 * missing (bare containers) the few vendors that matter here are known by heart.
 */
#include "base/file/file.h"
#include "machine/topology.h"

#define IDS_MAX_BYTES (16u << 20) /* it has 1.4 MiB today */

static const struct {
    unsigned vendor_id;
    const char *name;
} vendors[] = {
    {0x1002, "AMD"},    {0x1022, "AMD"},     {0x102b, "Matrox"},   {0x10de, "NVIDIA"},
    {0x1234, "QEMU"},   {0x144d, "Samsung"}, {0x14e4, "Broadcom"}, {0x15b3, "Mellanox"},
    {0x1a03, "ASPEED"}, {0x1af4, "virtio"},  {0x1b36, "QEMU"},     {0x1d0f, "Amazon"},
    {0x1da3, "Habana"}, {0x1e0f, "KIOXIA"},  {0x8086, "Intel"},
};

/*
 * Each line is "vvvv  name" for a vendor and "\tdddd  name" for a device of the vendor above it.
 *                                                     All
 * searches know where the text ends: a machine has a hundred devices, the file a million
 * characters.
 */
static const char *find_line(const char *from, const char *end, const char *start) {
    size_t length = strlen(start);
    while (from < end) {
        const char *at = memmem(from, (size_t)(end - from), start, length);
        if (!at)
            return NULL;
        if (at == from || at[-1] == '\n')
            return at + length;
        from = at + 1;
    }
    return NULL;
}

static const char *next_line(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline + 1 : end;
}

static const char *rest_of_line(const char *at, const char *end, struct lab_arena *arena) {
    if (!at)
        return "";
    size_t length = 0;
    while (at + length < end && at[length] != '\n' && at[length] != '\r')
        length++;
    return lab_arena_strndup(arena, at, length);
}

/* Where the vendor's own lines end: at the next line that is neither a device's nor a comment. */
static const char *section_end(const char *at, const char *end) {
    while ((at = next_line(at, end)) < end)
        if (*at != '\t' && *at != '#')
            return at;
    return end;
}

void topology_parse_pci_ids(const char *ids, size_t length, unsigned vendor_id, unsigned device_id,
                            struct lab_arena *arena, const char **ret_vendor,
                            const char **ret_name) {
    *ret_vendor = *ret_name = "";
    const char *end = ids + length;
    char start[16];
    snprintf(start, sizeof start, "%04x  ", vendor_id);
    const char *section = find_line(ids, end, start);
    if (!section)
        return;
    *ret_vendor = rest_of_line(section, end, arena);
    end = section_end(section, end);
    snprintf(start, sizeof start, "\t%04x  ", device_id);
    *ret_name = rest_of_line(find_line(next_line(section, end), end, start), end, arena);
}

static const char *vendor_by_heart(unsigned vendor_id) {
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (vendors[i].vendor_id == vendor_id)
            return vendors[i].name;
    return "";
}

static const char *read_ids(struct lab_arena *arena, size_t *ret_length) {
    static const char *const paths[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
    char *text;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (lab_file_read(paths[i], IDS_MAX_BYTES, arena, &text, ret_length, NULL) == 0)
            return text;
    *ret_length = 0;
    return "";
}

void topology_name_pci(struct topology *topology) {
    LAB_AUTO(arena, scratch);
    const char *ids = NULL;
    size_t length = 0;
    for (int i = 0; i < topology->machine.pci_count; i++) {
        struct lab_pci *pci = &topology->machine.pci[i];
        if (*pci->vendor && *pci->name)
            continue;
        if (!ids)
            ids = read_ids(&scratch, &length);
        const char *vendor, *name;
        topology_parse_pci_ids(ids, length, pci->vendor_id, pci->device_id, &topology->arena,
                               &vendor, &name);
        if (!*pci->vendor)
            pci->vendor = *vendor ? vendor : vendor_by_heart(pci->vendor_id);
        if (!*pci->name)
            pci->name = name;
    }
}
