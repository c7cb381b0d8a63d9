/*
 * xml.c: is a text one whole XML element? hwloc's own small parser takes what it gets: a file that
 * was cut off is noticed late, without a place, and with memory left behind. So ends are counted
 * here first; what the elements mean is hwloc's business.
 */
#include "base/str.h"
#include "machine/topology.h"

/* Behind the '>' that ends the tag at `at`, with '>' in quotes passed over; NULL if there is none. */
static const char *tag_end(const char *at) {
    char quote = 0;
    for (; *at; at++) {
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at + 1;
    }
    return NULL;
}

static const char *past(const char *at, const char *end) {
    const char *found = strstr(at, end);
    return found ? found + strlen(end) : NULL;
}

bool topology_xml_is_whole(const char *text) {
    int open = 0, elements = 0;
    const char *at = strchr(text, '<');
    while (at) {
        if (lab_str_starts(at, "<!--")) {
            at = past(at + 4, "-->");
        } else if (at[1] == '?') {
            at = past(at + 2, "?>");
        } else {
            bool declares = at[1] == '!', closes = at[1] == '/';
            at = tag_end(at);
            if (!at)
                return false;
            bool empty = at[-2] == '/';
            elements += !declares;
            open += declares || empty ? 0 : closes ? -1 : 1;
            if (open < 0)
                return false;
        }
        if (!at)
            return false;
        at = strchr(at, '<');
    }
    return open == 0 && elements > 0;
}
