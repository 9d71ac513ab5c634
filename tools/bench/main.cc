#include "program.h"
#include "verb_bench.h"

int main(int argc, char** argv) {
  return rhizome::RunProgram({.name = "rhizome bench",
                              .description = "Measures this machine against the physical limit.",
                              .footer = "Example: rhizome bench pool --help",
                              .add_verbs = rhizome::AddBenches},
                             argc, argv);
}
