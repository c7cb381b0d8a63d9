/* top_terminal.c: ncursesw behind a small door. */
#include "top/top_terminal.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdatomic.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* curses.h takes common words for itself */
#undef columns
#undef lines

struct lab_top_terminal {
    SCREEN *screen;
    struct lab_top_grid shown;
    attr_t attributes[LAB_TOP_STYLE_COUNT];
    short pairs[LAB_TOP_STYLE_COUNT];
};

/* --- when a fault ends the program --- */

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define FAULT_COUNT (sizeof faults / sizeof *faults)

static struct {
    atomic_bool taken;
    struct termios before;
    bool has_before;
    char undo[256]; /* what brings the screen back, as bytes */
    size_t undo_length;
    struct sigaction old[FAULT_COUNT];
} rescue;

static void on_fault(int number) {
    if (atomic_exchange(&rescue.taken, false)) {
        ssize_t done = write(STDOUT_FILENO, rescue.undo, rescue.undo_length);
        (void)done;
        if (rescue.has_before)
            tcsetattr(STDIN_FILENO, TCSANOW, &rescue.before);
    }
    raise(number); /* the handler was for once: this ends as it would have */
}

static void add_undo(const char *capability) {
    const char *text = tigetstr(capability);
    if (!text || text == (const char *)-1) /* NOLINT(performance-no-int-to-ptr): its own mark */
        return;
    size_t length = strcspn(text, "$"); /* "$<20>" asks for a pause: no terminal needs it today */
    if (rescue.undo_length + length > sizeof rescue.undo)
        return;
    memcpy(rescue.undo + rescue.undo_length, text, length);
    rescue.undo_length += length;
}

static void prepare_rescue(void) {
    static const char *const capabilities[] = {"sgr0", "rmkx", "cnorm", "rmcup"};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    rescue.undo_length = 0;
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        add_undo(capabilities[i]);
    atomic_store(&rescue.taken, true);
    for (size_t i = 0; i < FAULT_COUNT; i++)
        sigaction(faults[i], &action, &rescue.old[i]);
}

static void end_rescue(void) {
    atomic_store(&rescue.taken, false);
    for (size_t i = 0; i < FAULT_COUNT; i++)
        sigaction(faults[i], &rescue.old[i], NULL);
}

/* --- colours --- */

/*
 * Blue and orange: colour-blind safe. With eight colours cyan and yellow stand for
 * them, since blue on black can't be read.
 */
static void choose_styles(struct lab_top_terminal *terminal, bool colour) {
    static const attr_t plain[LAB_TOP_STYLE_COUNT] = {
        [LAB_TOP_DIM] = A_DIM,       [LAB_TOP_BOLD] = A_BOLD,
        [LAB_TOP_TITLE] = A_REVERSE, [LAB_TOP_SELECTED] = A_BOLD | A_REVERSE,
        [LAB_TOP_WARNING] = A_BOLD,  [LAB_TOP_ALARM] = A_BOLD | A_REVERSE,
    };
    memcpy(terminal->attributes, plain, sizeof plain);
    if (!colour || !has_colors() || start_color() == ERR)
        return;
    short behind = use_default_colors() == OK ? -1 : COLOR_BLACK;
    bool many = COLORS >= 256;
    short first = many ? 39 : COLOR_CYAN, second = many ? 214 : COLOR_YELLOW;
    init_pair(1, first, behind);
    init_pair(2, second, behind);
    init_pair(3, COLOR_BLACK, first);
    init_pair(4, COLOR_BLACK, second);
    terminal->pairs[LAB_TOP_FIRST] = 1;
    terminal->pairs[LAB_TOP_SECOND] = terminal->pairs[LAB_TOP_WARNING] = 2;
    terminal->pairs[LAB_TOP_TITLE] = 3;
    terminal->attributes[LAB_TOP_TITLE] = 0;
    terminal->pairs[LAB_TOP_ALARM] = 4;
    terminal->attributes[LAB_TOP_ALARM] = A_BOLD;
    if (many) { /* A_DIM is nearly black on some terminals */
        init_pair(5, 245, behind);
        terminal->pairs[LAB_TOP_DIM] = 5;
        terminal->attributes[LAB_TOP_DIM] = 0;
    }
}

/* --- life --- */

/* The locale that the user's terminal has is often not installed in a container. Numbers keep their
 * point: only letters are of interest here. */
static void choose_letters(void) {
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
}

int lab_top_terminal_open(bool colour, struct lab_top_terminal **ret_terminal,
                          struct lab_err *err) {
    const char *name = getenv("TERM");
    choose_letters();
    rescue.has_before = tcgetattr(STDIN_FILENO, &rescue.before) == 0;
    use_tioctl(TRUE); /* an exported COLUMNS may be another terminal's: this one knows its size */
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return lab_err_set(
            err, LAB_ERR_USER,
            "unknown terminal '%s': set TERM=xterm-256color or TERM=vt100; --once needs none",
            name ? name : "");
    struct lab_top_terminal *terminal = lab_mem_alloc(1, sizeof *terminal);
    terminal->screen = screen;
    lab_top_grid_init(&terminal->shown);
    set_term(screen);
    prepare_rescue();
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    choose_styles(terminal, colour);
    *ret_terminal = terminal;
    return 0;
}

void lab_top_terminal_close(struct lab_top_terminal *terminal) {
    if (!terminal)
        return;
    endwin();
    end_rescue();
    delscreen(terminal->screen);
    lab_top_grid_release(&terminal->shown);
    lab_mem_free(terminal);
}

void lab_top_terminal_size(struct lab_top_terminal *terminal, int *ret_columns, int *ret_rows) {
    (void)terminal;
    *ret_columns = COLS;
    *ret_rows = LINES;
}

/* --- painting --- */

static wchar_t code_point(const char *glyph) {
    const unsigned char *b = (const unsigned char *)glyph;
    if (b[0] < 0x80)
        return (wchar_t)b[0];
    if (b[0] < 0xe0)
        return (wchar_t)((b[0] & 0x1f) << 6 | (b[1] & 0x3f));
    if (b[0] < 0xf0)
        return (wchar_t)((b[0] & 0x0f) << 12 | (b[1] & 0x3f) << 6 | (b[2] & 0x3f));
    return (wchar_t)((b[0] & 0x07) << 18 | (b[1] & 0x3f) << 12 | (b[2] & 0x3f) << 6 |
                     (b[3] & 0x3f));
}

void lab_top_terminal_paint(struct lab_top_terminal *terminal, const struct lab_top_grid *grid) {
    struct lab_top_grid *shown = &terminal->shown;
    size_t count = (size_t)grid->columns * (size_t)grid->rows;
    bool anew = shown->columns != grid->columns || shown->rows != grid->rows;
    if (anew) {
        shown->cells = lab_mem_resize(shown->cells, count + 1, sizeof *shown->cells);
        shown->columns = grid->columns;
        shown->rows = grid->rows;
        erase();
    }
    for (size_t i = 0; i < count; i++) {
        const struct lab_top_cell *cell = &grid->cells[i];
        if (!anew && memcmp(cell, &shown->cells[i], sizeof *cell) == 0)
            continue;
        cchar_t wide;
        wchar_t text[2] = {code_point(cell->glyph), 0};
        setcchar(&wide, text, terminal->attributes[cell->style], terminal->pairs[cell->style],
                 NULL);
        mvadd_wch((int)(i / (size_t)grid->columns), (int)(i % (size_t)grid->columns), &wide);
        shown->cells[i] = *cell;
    }
    refresh();
}

/* --- keys --- */

static int from_code(wint_t code) {
    static const struct {
        wint_t code;
        int key;
    } keys[] = {
        {KEY_UP, LAB_TOP_KEY_UP},
        {KEY_DOWN, LAB_TOP_KEY_DOWN},
        {KEY_LEFT, LAB_TOP_KEY_LEFT},
        {KEY_RIGHT, LAB_TOP_KEY_RIGHT},
        {KEY_SLEFT, LAB_TOP_KEY_SHIFT_LEFT},
        {KEY_SRIGHT, LAB_TOP_KEY_SHIFT_RIGHT},
        {KEY_HOME, LAB_TOP_KEY_HOME},
        {KEY_END, LAB_TOP_KEY_END},
        {KEY_PPAGE, LAB_TOP_KEY_PAGE_UP},
        {KEY_NPAGE, LAB_TOP_KEY_PAGE_DOWN},
        {KEY_ENTER, LAB_TOP_KEY_ENTER},
        {KEY_BACKSPACE, LAB_TOP_KEY_BACKSPACE},
        {KEY_BTAB, LAB_TOP_KEY_BACK_TAB},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].code == code)
            return keys[i].key;
    for (wint_t i = 1; i <= 10; i++)
        if (code == (wint_t)KEY_F(i))
            return LAB_TOP_KEY_F1 + (int)i - 1;
    return 0;
}

int lab_top_terminal_key(struct lab_top_terminal *terminal) {
    (void)terminal;
    wint_t code;
    int kind = get_wch(&code);
    if (kind == ERR)
        return -1;
    if (kind == KEY_CODE_YES)
        return from_code(code);
    static const struct {
        wint_t code;
        int key;
    } signs[] = {{'\r', LAB_TOP_KEY_ENTER},  {'\n', LAB_TOP_KEY_ENTER},    {27, LAB_TOP_KEY_ESCAPE},
                 {8, LAB_TOP_KEY_BACKSPACE}, {127, LAB_TOP_KEY_BACKSPACE}, {'\t', LAB_TOP_KEY_TAB},
                 {4 /* Ctrl-D */, 'q'}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (signs[i].code == code)
            return signs[i].key;
    return (int)code;
}
