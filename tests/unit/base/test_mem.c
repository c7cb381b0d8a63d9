/* test_mem.c: allocation and arenas. */
#include "base/mem.h"

#include "test.h"
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_zero(const void *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)memory)[i])
            return false;
    return true;
}

LAB_TEST(memory_is_zeroed) {
    int *numbers = lab_mem_alloc(100, sizeof *numbers);
    assert_true(is_zero(numbers, 100 * sizeof *numbers));
    numbers[99] = 7;
    numbers = lab_mem_resize(numbers, 200, sizeof *numbers);
    assert_int_equal(numbers[99], 7);
    lab_mem_free(numbers);
    lab_mem_free(lab_mem_alloc(0, 0));
    lab_mem_free(NULL);
}

LAB_TEST(an_array_grows) {
    int *squares = NULL, *others = NULL, other_count = 0;
    LAB_AUTO(arena, arena);
    for (int i = 0; i < 1000;) {
        int square = i * i;
        LAB_PUSH(squares, i) = square;
        LAB_ADD(others, other_count, &arena) = square;
        assert_int_equal(others[other_count], 0); /* a zeroed item stands behind the last */
    }
    for (int i = 0; i < 1000; i++)
        assert_true(squares[i] == i * i && others[i] == i * i);
    lab_mem_free(squares);
}

LAB_TEST(an_arena_gives_small_and_large_pieces) {
    struct lab_arena arena;
    lab_arena_init(&arena);
    unsigned char *pieces[300];
    size_t sizes[300];
    for (int i = 0; i < 300; i++) {
        sizes[i] = i % 50 == 49 ? 200000 : (size_t)i * 7 % 900;
        pieces[i] = lab_arena_alloc(&arena, sizes[i], 1);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        assert_true(is_zero(pieces[i], sizes[i]));
        memset(pieces[i], i + 1, sizes[i]);
    }
    /* none lies over another */
    for (int i = 0; i < 300; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(pieces[i][j], (unsigned char)(i + 1));
    lab_arena_release(&arena);
    lab_arena_release(&arena);
}

LAB_TEST(an_arena_keeps_texts) {
    LAB_AUTO(arena, arena);
    assert_string_equal(lab_arena_strdup(&arena, "copy"), "copy");
    assert_string_equal(lab_arena_strndup(&arena, "cut here", 3), "cut");
    assert_string_equal(lab_arena_printf(&arena, "%s-%d", "x", 5), "x-5");
    assert_string_equal(lab_arena_strdup(&arena, ""), "");
    char *copy = lab_mem_strdup("text");
    assert_string_equal(copy, "text");
    lab_mem_free(copy);
}

/* The signal that ends a process which does this, or 1000 + its status. */
static int end_of(void (*action)(void), void (*on_abort)(int)) {
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, on_abort);
        action();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
}

static void rescue(int number) {
    (void)number; /* gives a terminal back */
}

static void overflow_resize(void) {
    lab_mem_free(lab_mem_resize(NULL, SIZE_MAX / 2, 4));
}

static void overflow_arena(void) {
    struct lab_arena arena;
    lab_arena_init(&arena);
    lab_arena_alloc(&arena, SIZE_MAX / 2, 4);
}

LAB_TEST(a_size_that_overflows_ends_the_program) {
    assert_int_equal(end_of(overflow_resize, SIG_DFL), 1001);
    assert_int_equal(end_of(overflow_arena, SIG_DFL), 1001);
    assert_int_equal(end_of(overflow_resize, rescue), SIGABRT);
}
