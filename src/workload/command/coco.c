/*
 * command/coco.c: what COCO's evaluation of a detector prints, under the names of its leader board:
 *
 *   Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.374     ap
 *   Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = 0.412     ap75
 *   Average Recall     (AR) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.231     ar_small
 *   Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.311     ar1
 *
 * -1 stands for nothing of that size, and is no value.
 */
#include "workload/command/form.h"

#include <ctype.h>
#include <string.h>

#define TEXT_BYTES 16

/* "0.50:0.95" of "IoU=0.50:0.95 | "; false = it has no such key. */
static bool take_key(const char *text, size_t length, const char *key, char ret[TEXT_BYTES]) {
    const char *end = text + length, *at = memmem(text, length, key, strlen(key));
    size_t count = 0;
    if (!at)
        return false;
    for (at += strlen(key); at < end && *at == ' ';)
        at++;
    for (; at < end && *at != ' ' && count + 1 < TEXT_BYTES; at++)
        ret[count++] = *at;
    ret[count] = '\0';
    return count > 0;
}

/* Within the brackets; false = it is none of theirs. */
static bool make_name(const char *text, size_t length, bool recall, struct lab_str *name) {
    char iou[TEXT_BYTES], area[TEXT_BYTES], most[TEXT_BYTES];
    double threshold, ignored;
    if (!take_key(text, length, "IoU=", iou) || !take_key(text, length, "area=", area) ||
        !take_key(text, length, "maxDets=", most) ||
        command_number(most, strlen(most), 0, COMMAND_UNGROUPED, &ignored) != strlen(most))
        return false;
    lab_str_add(name, recall ? "ar" : "ap");
    if (!strchr(iou, ':') &&
        command_number(iou, strlen(iou), 0, COMMAND_UNGROUPED, &threshold) == strlen(iou))
        lab_str_printf(name, "%.0f", 100 * threshold);
    else if (recall && strcmp(area, "all") == 0)
        lab_str_add(name, most);
    if (strcmp(area, "all") != 0)
        lab_str_printf(name, "_%s", area);
    return true;
}

bool command_coco_line(struct command_draft *draft, const char *text, size_t length) {
    static const char first[] = "Average ", middle[] = ") @[ ", last[] = " ] = ";
    const char *end = text + length;
    while (text < end && *text == ' ')
        text++;
    size_t left = (size_t)(end - text), blanks = (size_t)(text - (end - length)), place;
    if (left < 40 || memcmp(text, first, sizeof first - 1) != 0)
        return false;
    const char *begin = memmem(text, left, middle, sizeof middle - 1),
               *close = memmem(text, left, last, sizeof last - 1);
    if (!begin || !close || close < begin)
        return false;
    double value = -1;
    LAB_AUTO(str, name);
    command_draft_begin(draft, COMMAND_UNGROUPED);
    draft->lasting = false;
    begin += sizeof middle - 1;
    place = blanks + (size_t)(close - text) + sizeof last - 1;
    size_t stop = command_number(end - length, length, place, COMMAND_UNGROUPED, &value);
    if (stop > place && value >= 0 &&
        make_name(begin, (size_t)(close - begin), begin[-6] == 'R', &name))
        command_draft_add(draft,
                          &(struct command_field){name.text, "", 1,
                                                  command_draft_number(draft, place, stop, value),
                                                  -1, COMMAND_IS_VALUE | COMMAND_IS_KNOWN});
    return true;
}
