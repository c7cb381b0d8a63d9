/* save.c: a document as a file, in the format that its name ends in, or on the console. */
#include "base/file/out_file.h"
#include "doc/doc.h"

int lab_doc_check_output(const char *path, struct lab_err *err) {
    const char *endings[16] = {NULL};
    if (!path || lab_doc_format_find(path))
        return 0;
    for (int i = 0, count = 0; count < 15 && lab_doc_formats[i]; i++)
        if (lab_doc_formats[i]->write)
            endings[count++] = lab_doc_formats[i]->ending;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, endings, "or");
    return lab_err_set(err, LAB_ERR_USER, "--output %s: a file's name has to end in %s", path,
                       list.text);
}

int lab_doc_save(const struct lab_doc *doc, const char *path, struct lab_err *err) {
    static const struct lab_style style = {.columns = 100, .unicode = true};
    LAB_AUTO(str, text);
    lab_doc_write(doc, path, style, &text);
    return lab_out_file_save(path, text.text, text.length, err);
}

void lab_doc_print_markdown(const struct lab_doc *doc, const struct lab_console *console) {
    LAB_AUTO(str, text);
    lab_doc_write(doc, "markdown", console->style, &text);
    lab_console_write(console, text.text, text.length);
}

int lab_doc_output(const struct lab_doc *doc, const struct lab_console *console, bool markdown,
                   const char *path, struct lab_err *err) {
    if (path)
        return lab_doc_save(doc, path, err);
    if (markdown)
        lab_doc_print_markdown(doc, console);
    else
        lab_doc_print(doc, console);
    return 0;
}
