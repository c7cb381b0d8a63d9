/* main.c: hands over to the commands; the only place that ends the process. */
#include "command/command.h"

int main(int argc, char **argv) {
    return lab_command_main(argc, argv);
}
