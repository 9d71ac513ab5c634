#include "gnn/train/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>

#include "index/input/input_stream.h"
#include "index/input/number.h"
#include "index/input/table_reader.h"
#include "storage/base/escaped_text.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
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

/// Adds the numbers of a line, separated by blanks. Errors: kInvalidArgument, one is not above 0.
Status AddWeights(std::string_view line, std::vector<float>& weights) {
  constexpr std::string_view kBlanks = " \t\v\f\r";
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return Status::Ok();
    const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
    line.remove_prefix(word.size());
    const std::optional<float> weight = ParseFiniteFloat(word);
    if (!weight || !(*weight > 0)) {
      return Status::InvalidArgument(fmt::format("weight {} is '{}'; it must be a number above 0",
                                                 weights.size() + 1, Excerpt(word)));
    }
    weights.push_back(*weight);
  }
}

/// Reads a text file with one number per class. Each rank reads the file again, so it cannot be a
/// pipe. Of a longer file, at most one line too many is read.
Result<std::vector<float>> ReadWeights(const std::string& path, std::size_t classes) {
  Result<std::unique_ptr<InputStream>> stream = InputStream::Open(FileSystem::Posix(), path);
  if (!stream && stream.error().code() == StatusCode::kNotFound) {
    return Fail(
        Status::NotFound("no such file; give 'balanced', or a text file with one number per line"));
  }
  if (!stream) return Fail(stream.error());
  RHIZOME_ASSIGN_OR_RETURN(
      const auto lines, TableReader::Open(*std::move(stream), TableForm::kLines, /*header=*/false));
  std::vector<float> weights;
  while (weights.size() <= classes) {
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, lines->ReadLine());
    if (next == TableReader::Next::kEnd) break;
    if (next == TableReader::Next::kMalformed)
      return Fail(
          Status::InvalidArgument(fmt::format("line {} {}", lines->line(), lines->reason())));
    RHIZOME_RETURN_IF_ERROR(AddWeights(lines->fields()[0], weights));
  }
  if (weights.size() == classes) return weights;
  const bool more = weights.size() > classes;
  return Fail(Status::InvalidArgument(fmt::format(
      "{}{} weights for {} classes", more ? "at least " : "", weights.size(), classes)));
}

}  // namespace

Result<std::vector<float>> ClassWeights(const std::string& asked, const Labels& labels) {
  if (asked.empty()) return std::vector<float>();
  if (asked == "balanced") return Balanced(labels);
  Result<std::vector<float>> weights = ReadWeights(asked, static_cast<std::size_t>(labels.classes));
  if (weights) return weights;
  return Fail(weights.error().WithContext(fmt::format("`class_weights={}`", asked)));
}

}  // namespace internal
}  // namespace rhizome
