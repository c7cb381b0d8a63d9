/* top_grid.c: text, bars and figures on a grid of cells. */
#include "top/top_internal.h"

#include <math.h>

/* --- life --- */

void lab_top_grid_init(struct lab_top_grid *grid) {
    *grid = (struct lab_top_grid){.cells = NULL};
}

void lab_top_grid_release(struct lab_top_grid *grid) {
    lab_mem_free(grid->cells);
    lab_top_grid_init(grid);
}

void top_grid_resize(struct lab_top_grid *grid, int columns, int rows) {
    size_t count = (size_t)columns * (size_t)rows;
    grid->cells = lab_mem_resize(grid->cells, count + 1, sizeof *grid->cells);
    grid->columns = columns;
    grid->rows = rows;
    for (size_t i = 0; i < count; i++)
        grid->cells[i] = (struct lab_top_cell){" ", LAB_TOP_PLAIN};
}

/* --- out of it --- */

static struct lab_top_cell *cell_at(const struct lab_top_grid *grid, int row, int column) {
    return &grid->cells[(size_t)row * (size_t)grid->columns + (size_t)column];
}

void lab_top_grid_write(const struct lab_top_grid *grid, struct lab_str *out) {
    for (int row = 0; row < grid->rows; row++) {
        int end = grid->columns;
        while (end > 0 && lab_str_equal(cell_at(grid, row, end - 1)->glyph, " "))
            end--;
        for (int column = 0; column < end; column++)
            lab_str_add(out, cell_at(grid, row, column)->glyph);
        lab_str_add(out, "\n");
    }
}

/* --- text --- */

static uint32_t decode(const char *text, size_t *ret_bytes) {
    const unsigned char *b = (const unsigned char *)text;
    size_t need = b[0] < 0x80 ? 1 : b[0] < 0xc0 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    uint32_t point = need == 1 ? b[0] : b[0] & (0xffU >> (need + 1));
    *ret_bytes = 1;
    if (need == 0)
        return 0xfffd;
    for (size_t i = 1; i < need; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0xfffd;
        point = point << 6 | (b[i] & 0x3f);
    }
    *ret_bytes = need;
    return point;
}

/* Two columns on a terminal: East Asian and pictures. They would shift the line, so "?" stands for
 * them; what takes none is left out. */
static bool is_wide(uint32_t p) {
    return (p >= 0x1100 && p <= 0x115f) || (p >= 0x2e80 && p <= 0xa4cf) ||
           (p >= 0xac00 && p <= 0xd7a3) || (p >= 0xf900 && p <= 0xfaff) ||
           (p >= 0xfe30 && p <= 0xfe6f) || (p >= 0xff00 && p <= 0xff60) ||
           (p >= 0x1f300 && p <= 0x1faff) || p >= 0x20000;
}

static bool is_without_width(uint32_t p) {
    return (p >= 0x300 && p <= 0x36f) || (p >= 0x200b && p <= 0x200f) ||
           (p >= 0x202a && p <= 0x202e) || (p >= 0x2060 && p <= 0x206f) ||
           (p >= 0xfe00 && p <= 0xfe0f) || p == 0xfeff;
}

static void set_glyph(struct lab_top_cell *cell, const char *bytes, size_t length) {
    memset(cell->glyph, 0, sizeof cell->glyph);
    memcpy(cell->glyph, bytes, length);
}

int top_put(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
            const char *text) {
    if (row < 0 || row >= grid->rows || width <= 0)
        return column;
    int end = column + width < grid->columns ? column + width : grid->columns;
    struct lab_top_cell *last = NULL;
    for (; *text; column++) {
        size_t bytes;
        uint32_t point = decode(text, &bytes);
        if (is_without_width(point)) {
            text += bytes;
            column--;
            continue;
        }
        if (column >= end) {
            if (last)
                set_glyph(last, "…", strlen("…"));
            break;
        }
        bool shown =
            point >= ' ' && !(point >= 0x7f && point < 0xa0) && point != 0xfffd && !is_wide(point);
        if (column >= 0) {
            last = cell_at(grid, row, column);
            set_glyph(last, shown ? text : "?", shown ? bytes : 1);
            last->style = (uint8_t)style;
        }
        text += bytes;
    }
    return column;
}

int top_print(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
              const char *format, ...) {
    char text[512];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    return top_put(grid, row, column, width, style, text);
}

void top_right(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
               const char *text) {
    int columns = lab_str_columns(text);
    int indent = columns < width ? width - columns : 0;
    top_put(grid, row, column + indent, width - indent, style, text);
}

void top_style(struct lab_top_grid *grid, int row, int from, int to, enum lab_top_style style) {
    for (int column = from; row < grid->rows && column < to && column < grid->columns; column++)
        cell_at(grid, row, column)->style = (uint8_t)style;
}

void top_bar(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
             double share, bool unicode) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double clamped = isnan(share) ? 0 : fmin(fmax(share, 0), 1);
    int filled = (int)lround(clamped * width * (unicode ? 8 : 1));
    if (clamped > 0 && filled == 0)
        filled = 1; /* little is not nothing */
    int per_cell = unicode ? 8 : 1;
    for (int i = 0; i < width; i++, filled -= per_cell) {
        if (filled >= per_cell)
            top_put(grid, row, column + i, 1, style, unicode ? "█" : "#");
        else if (filled > 0)
            top_put(grid, row, column + i, 1, style, eighths[filled]);
        else
            top_put(grid, row, column + i, 1, LAB_TOP_DIM, unicode ? "·" : ".");
    }
}

static const struct {
    const char *from, *to;
} ascii_for[] = {{"…", "~"}, {"·", "-"}, {"°", "'"}, {"–", "-"}, {"│", "|"}, {"─", "-"},
                 {"▲", "^"}, {"▼", "v"}, {"›", ">"}, {"→", ">"}, {"↓", "v"}, {"↑", "^"},
                 {"└", "`"}, {"×", "x"}, {"←", "<"}, {"▶", ">"}, {"█", "#"}, {"µ", "u"},
                 {"┌", "+"}, {"┐", "+"}, {"┘", "+"}, {"━", "*"}, {"┅", "o"}};

void top_grid_to_ascii(struct lab_top_grid *grid) {
    size_t count = (size_t)grid->columns * (size_t)grid->rows;
    for (size_t i = 0; i < count; i++) {
        char *glyph = grid->cells[i].glyph;
        if ((unsigned char)*glyph < 0x80)
            continue;
        const char *to = "?";
        for (size_t k = 0; k < sizeof ascii_for / sizeof *ascii_for; k++)
            if (lab_str_equal(glyph, ascii_for[k].from))
                to = ascii_for[k].to;
        set_glyph(&grid->cells[i], to, 1);
    }
}

/* --- figures --- */

static const char *none(char text[TOP_TEXT]) {
    snprintf(text, TOP_TEXT, "–");
    return text;
}

/* Up to three digits, 9.81, 98.1, 981, or two of them where there is less room: 9.8, 98, 981. */
static const char *scaled(double value, double step, const char *letters, int precision,
                          char text[TOP_TEXT]) {
    int unit = 0;
    while (value >= 999.5 && letters[unit + 1]) {
        value /= step;
        unit++;
    }
    int before = value >= 99.95 ? 3 : value >= 9.995 ? 2 : 1;
    int digits = unit == 0 || before >= precision ? 0 : precision - before;
    snprintf(text, TOP_TEXT, "%.*f%c", digits, fmin(value, 1e9), letters[unit]);
    return text;
}

const char *top_size(double bytes, char text[TOP_TEXT]) {
    return isnan(bytes) ? none(text) : scaled(bytes, 1024, "BKMGTP", 3, text);
}

const char *top_rate(double bytes_per_s, char text[TOP_TEXT]) {
    if (isnan(bytes_per_s))
        return none(text);
    if (bytes_per_s < 0.5) {
        snprintf(text, TOP_TEXT, "0");
        return text;
    }
    return scaled(bytes_per_s, 1000, "BkMGTP", 2, text);
}

const char *top_percent(double value, char text[TOP_TEXT]) {
    if (isnan(value))
        return none(text);
    snprintf(text, TOP_TEXT, "%.0f%%", value);
    return text;
}

const char *top_whole(double value, const char *unit, char text[TOP_TEXT]) {
    if (isnan(value))
        return none(text);
    snprintf(text, TOP_TEXT, "%.0f%s", value, unit);
    return text;
}

/* Both in the total's unit, so that the letter stands once. */
const char *top_used(double used, double total, char text[TOP_TEXT]) {
    if (isnan(total))
        return top_size(used, text);
    double unit = 1;
    int letter = 0;
    for (double rest = total; rest >= 999.5 && letter < 5; rest /= 1024, letter++)
        unit *= 1024;
    double shown = fmin(used / unit, 9999), of = fmin(total / unit, 9999);
    int at = isnan(used) ? snprintf(text, TOP_TEXT, "–")
                         : snprintf(text, TOP_TEXT, "%.*f", shown < 99.95, shown);
    snprintf(text + at, (size_t)(TOP_TEXT - at), "/%.*f%c", of < 99.95, of, "BKMGTP"[letter]);
    return text;
}

const char *top_energy(double joules, char text[TOP_TEXT]) {
    if (isnan(joules))
        return none(text);
    static const char *const units[] = {"J", "kJ", "MJ", "GJ", "TJ"};
    int unit = 0;
    for (; joules >= 999.5 && unit < 4; unit++)
        joules /= 1000;
    snprintf(text, TOP_TEXT, "%.*f %s",
             joules >= 99.95   ? 0
             : joules >= 9.995 ? 1
                               : 2,
             joules, units[unit]);
    return text;
}

const char *top_seconds(double seconds, char text[TOP_TEXT]) {
    if (isnan(seconds))
        return none(text);
    LAB_AUTO(str, words);
    lab_str_add_duration(&words, seconds, LAB_DURATION_PARTS);
    snprintf(text, TOP_TEXT, "%s", words.text);
    return text;
}
