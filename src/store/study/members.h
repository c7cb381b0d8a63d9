/*
 * members.h: the members of a JSON object as they stand in its text. Files and tables are made of
 * thousands of stored texts of which only some members are wanted, as they are: reading each text
 * into a tree and writing it again would cost a hundred times as much.
 *
 * Texts are checked on the way, since what is spliced into a document must not break it: whatever
 * came from a worker or stands in a file that anybody could have changed.
 */
#ifndef LAB_STORE_STUDY_MEMBERS_H
#define LAB_STORE_STUDY_MEMBERS_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct lab_member {
    const char *key; /* in the text, without its quotes; escapes as they are */
    size_t key_length;
    const char *value; /* likewise: JSON */
    size_t value_length;
};

struct lab_members {
    struct lab_member *items; /* in their order */
    int count, capacity;
};

#define LAB_MEMBERS_INIT ((struct lab_members){0})

void lab_members_release(struct lab_members *members);

/* Replaces what was there. Refers to `text`. What isn't a JSON object has no members: returns
 * -1. */
int lab_members_read(struct lab_members *members, const char *text);
int lab_members_read_value(struct lab_members *members, const struct lab_member *object);

/* The one with that key, or NULL. */
const struct lab_member *lab_members_find(const struct lab_members *members, const char *key);

/* Whether the whole text is one JSON value. */
bool lab_members_check(const char *text);

#endif
