#include "rhizome/gnn/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

std::vector<float> Balanced(const Labels& labels) {
  const std::vector<std::uint64_t> counts = labels.CountClasses(Split::kTrain);
  const auto all =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  const auto classes =
      static_cast<double>(counts.size()) -
      static_cast<double>(std::count(counts.begin(), counts.end(), std::uint64_t{0}));
  std::vector<float> weights;
  for (const std::uint64_t count : counts) {
    weights.push_back(count == 0 || RHIZOME_MUTANT("no class is balanced")
                          ? 1
                          : static_cast<float>(all / (classes * static_cast<double>(count))));
  }
  return weights;
}

}  // namespace

Result<std::vector<float>> ClassWeights(const std::string& asked, const Labels& labels) {
  if (asked.empty()) return std::vector<float>();
  if (asked == "balanced") return Balanced(labels);
  std::ifstream file(asked);
  if (!file) {
    return Fail(Status::NotFound(fmt::format(
        "--class-weights {}: no such file; give 'balanced', or a text file with a number a line",
        asked)));
  }
  std::vector<float> weights;
  for (std::string word; file >> word;) {
    char* end = nullptr;
    const float weight = std::strtof(word.c_str(), &end);
    if (*end != '\0' || !std::isfinite(weight) || !(weight > 0)) {
      return Fail(Status::InvalidArgument(
          fmt::format("--class-weights {}: weight {} is '{}'; it must be a number above 0", asked,
                      weights.size() + 1, word)));
    }
    weights.push_back(weight);
  }
  if (weights.size() != static_cast<std::size_t>(labels.classes)) {
    return Fail(Status::InvalidArgument(fmt::format("--class-weights {}: {} weights for {} classes",
                                                    asked, weights.size(), labels.classes)));
  }
  return weights;
}

}  // namespace rhizome::inline internal
