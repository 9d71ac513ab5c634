// Uses a training option that was added to a copy of the tree: as a flag, with a range, in the
// description of a checkpoint, and among the facts on which ranks agree.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "gnn/options/train_fields.h"
#include "gnn/options/training_options.h"
#include "tools/cli/option_flags.h"

using namespace rhizome;

int main() {
  CLI::App verb;
  TrainOptions options;
  OptionFlags flags(verb);
  EachLearningField(flags, options.learning);
  std::vector<std::string> wrong = {"2", "--warm-restarts"};
  try {
    verb.parse(wrong);
    return 1;
  } catch (const CLI::ValidationError& error) {
    std::cout << error.what() << "\n";
  }
  verb.clear();
  std::vector<std::string> right = {"0.25", "--warm-restarts"};
  verb.parse(right);
  std::cout << options.learning.warm_restarts << " " << DescribeModelOptions(options).dump()
            << "\n";
  options.learning.warm_restarts = -1;
  std::cout << CheckRanges(options).message() << "\n";
}
