/*
 * Topology files that aren't: each ends in one clear line of ours, LAB_ERR_USER, and nothing on
 * stderr from hwloc.
 */
#include "base/file/file.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include "test.h"

static const char scratch_path[] = LAB_TEST_BINARY_DIR "/test_machine_files.xml";
static const char fixture_path[] = LAB_TEST_SOURCE_DIR "/tests/fixtures/2socket-4gpu.xml";

static void write_scratch(const char *bytes, size_t length) {
    int file = open(scratch_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, length), (ssize_t)length);
    close(file);
}

/* Opens with stderr turned into a file; that file must stay empty. */
static int open_quietly(const char *path, struct lab_machine **ret_machine, struct lab_err *err) {
    int saved = dup(STDERR_FILENO);
    FILE *said = tmpfile();
    assert_non_null(said);
    dup2(fileno(said), STDERR_FILENO);
    int result = lab_machine_open(path, ret_machine, err);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(lseek(fileno(said), 0, SEEK_END), 0);
    fclose(said);
    return result;
}

static void assert_refused(const char *path, const char *expected) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine = NULL;
    assert_int_equal(open_quietly(path, &machine, &err), -1);
    assert_null(machine);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_null(strchr(err.text, '\n'));
    assert_contains(err.text, path);
    assert_contains(err.text, expected);
}

static void assert_bytes_refused(const char *bytes, size_t length, const char *expected) {
    write_scratch(bytes, length);
    assert_refused(scratch_path, expected);
}

LAB_TEST(a_missing_file_and_a_directory_are_named) {
    assert_refused("/nowhere/machine.xml", "No such file");
    assert_refused("/tmp", "/tmp");
}

LAB_TEST(other_content_is_no_topology) {
    static const char binary[] = "\x7f"
                                 "ELF\0\0\1\2\3\xff\xfe";
    static const char html[] = "<?xml version=\"1.0\"?>\n<html><body>machine</body></html>\n";
    static const char word[] = "this is not a <topology, is it\n";
    assert_bytes_refused("", 0, "is not a hwloc topology");
    assert_bytes_refused(binary, sizeof binary, "is not a hwloc topology");
    assert_bytes_refused(html, sizeof html - 1, "is not a hwloc topology");
    assert_bytes_refused(word, sizeof word - 1, "a damaged hwloc topology");
}

LAB_TEST(a_topology_without_a_machine_is_damaged) {
    static const char empty[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                                "<topology version=\"2.0\">\n</topology>\n";
    static const char future[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                 "<topology version=\"9.0\">\n<object type=\"Warp\"/></topology>\n";
    assert_bytes_refused(empty, sizeof empty - 1, "a damaged hwloc topology");
    assert_bytes_refused(future, sizeof future - 1, "a topology of hwloc 9, and this is hwloc");
}

/* Cut anywhere before its last tag, a recording is refused; what remains is never half a
 * machine. */
LAB_TEST(a_truncated_topology_is_damaged) {
    LAB_AUTO(arena, arena);
    char *text;
    size_t length;
    assert_int_equal(lab_file_read(fixture_path, 1 << 20, &arena, &text, &length, NULL), 0);
    for (size_t cut = length - 14; cut > 100; cut -= length / 97)
        assert_bytes_refused(text, cut, "a damaged hwloc topology");
    assert_bytes_refused(text, 60, "is not a hwloc topology");
}

/* hwloc trusts such a file and dies of it; gpulab must not. */
LAB_TEST(a_topology_that_kills_hwloc_is_damaged) {
    LAB_AUTO(arena, arena);
    char *text;
    size_t length;
    assert_int_equal(lab_file_read(fixture_path, 1 << 20, &arena, &text, &length, NULL), 0);
    char *core = strstr(text, "type=\"Core\"");
    assert_non_null(core);
    memcpy(strstr(core, "cpuset="), "spuset=", 7);
    assert_bytes_refused(text, length, "a damaged hwloc topology");
}

/* As hwloc 1 wrote it: memory is an attribute of the node, and the node holds the socket. */
LAB_TEST(a_recording_of_hwloc_1_is_read) {
    static const char old[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n"
        "<topology>\n"
        " <object type=\"Machine\" os_index=\"0\" cpuset=\"0x00000003\" "
        "complete_cpuset=\"0x00000003\" online_cpuset=\"0x00000003\" "
        "allowed_cpuset=\"0x00000003\" nodeset=\"0x00000003\" complete_nodeset=\"0x00000003\" "
        "allowed_nodeset=\"0x00000003\">\n"
        "  <info name=\"HostName\" value=\"old\"/>\n"
        "  <object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x00000001\" "
        "complete_cpuset=\"0x00000001\" nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" "
        "local_memory=\"1073741824\">\n"
        "   <object type=\"Core\" os_index=\"0\" cpuset=\"0x00000001\" "
        "complete_cpuset=\"0x00000001\" nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\">\n"
        "    <object type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\" "
        "complete_cpuset=\"0x00000001\" nodeset=\"0x00000001\" "
        "complete_nodeset=\"0x00000001\"/>\n"
        "   </object>\n"
        "  </object>\n"
        "  <object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x00000002\" "
        "complete_cpuset=\"0x00000002\" nodeset=\"0x00000002\" complete_nodeset=\"0x00000002\" "
        "local_memory=\"2147483648\">\n"
        "   <object type=\"Core\" os_index=\"1\" cpuset=\"0x00000002\" "
        "complete_cpuset=\"0x00000002\" nodeset=\"0x00000002\" complete_nodeset=\"0x00000002\">\n"
        "    <object type=\"PU\" os_index=\"1\" cpuset=\"0x00000002\" "
        "complete_cpuset=\"0x00000002\" nodeset=\"0x00000002\" "
        "complete_nodeset=\"0x00000002\"/>\n"
        "   </object>\n"
        "  </object>\n"
        " </object>\n"
        "</topology>\n";
    write_scratch(old, sizeof old - 1);
    struct lab_machine *machine = NULL;
    ASSERT_OK(open_quietly(scratch_path, &machine, err));
    assert_string_equal(machine->host, "old");
    assert_int_equal(machine->node_count, 2);
    assert_int_equal(machine->nodes[1].memory_bytes, 2LL << 30);
    assert_int_equal(machine->nodes[1].cpus.count, 1);
    assert_int_equal(machine->nodes[1].cpus.items[0], 1);
    assert_int_equal(lab_machine_distance(machine, 0, 1), 0);
    lab_machine_close(machine);
}

/* Programs that are started later must not find hwloc's switch in their environment. */
LAB_TEST(the_environment_is_left_as_it_was) {
    assert_refused("/nowhere/machine.xml", "No such file");
    assert_null(getenv("HWLOC_HIDE_ERRORS"));
}

static int remove_scratch(void **state) {
    (void)state;
    unlink(scratch_path);
    return 0;
}

const struct lab_test_program lab_test_program = {.close = remove_scratch};
