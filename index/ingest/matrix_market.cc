// Plans of Matrix Market files. The header is "%%MatrixMarket matrix coordinate FIELD SYMMETRY";
// the first line after the comments has the numbers of rows, columns and entries.
// Source: R. F. Boisvert, R. Pozo, K. A. Remington, The Matrix Market Exchange Formats: Initial
// Design, NISTIR 5935, 1996.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "index/ingest/column_roles.h"
#include "index/ingest/file_plan.h"
#include "index/input/input_stream.h"
#include "index/input/table_reader.h"
#include "rhizome/graph_types.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kBanner = "%%matrixmarket";

std::string Lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
  });
  return small;
}

/// Checks the words of the banner after its first one.
std::optional<std::string> RefuseBanner(std::span<const std::string> words) {
  if (words.size() != 5) return "its first line must have five words";
  if (words[1] != "matrix") return fmt::format("its object is '{}', not a matrix", words[1]);
  if (words[2] == "array")
    return "it is in the dense format 'array'; give a dense matrix as an array of vertices (.npy, "
           "or "
           "text with one row a line), or write it as 'coordinate'";
  if (words[2] != "coordinate") return fmt::format("its format is '{}'", words[2]);
  if (words[3] == "complex" || words[4] == "hermitian")
    return fmt::format("its values are complex ({} {}), and weights are real", words[3], words[4]);
  constexpr std::array<std::string_view, 3> kFields = {"pattern", "real", "integer"};
  if (std::find(kFields.begin(), kFields.end(), words[3]) == kFields.end())
    return fmt::format("its field is '{}', not pattern, real or integer", words[3]);
  constexpr std::array<std::string_view, 3> kSymmetries = {"general", "symmetric",
                                                           "skew-symmetric"};
  if (std::find(kSymmetries.begin(), kSymmetries.end(), words[4]) == kSymmetries.end())
    return fmt::format("its symmetry is '{}', not general, symmetric or skew-symmetric", words[4]);
  return std::nullopt;
}

/// Reads the line of sizes, and counts the entries in the sample.
Status TakeSizes(const FileHead& head, const Path& path, FilePlan& plan) {
  std::string_view text = head.bytes;
  if (!head.whole) text = text.substr(0, text.rfind('\n') + 1);
  RHIZOME_ASSIGN_OR_RETURN(
      const auto reader,
      TableReader::Open(InputStream::OfText(std::string(text), path), plan.dialect, false));
  RHIZOME_ASSIGN_OR_RETURN(const auto next, reader->ReadLine());
  const auto fields = reader->fields();
  std::array<std::uint64_t, 3> sizes = {};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = next == TableReader::Next::kFields && fields.size() == 3
                          ? ParseCanonicalInteger(fields[i])
                          : std::nullopt;
    if (!size || *size < 0)
      return Status::InvalidArgument(
          fmt::format("{}: the numbers of rows, columns and entries are expected after the "
                      "comments",
                      reader->Place()));
    sizes[i] = static_cast<std::uint64_t>(*size);
  }
  plan.matrix_rows = sizes[0];
  plan.matrix_columns = sizes[1];
  plan.matrix_entries = sizes[2];
  plan.lines = std::min<std::uint64_t>(sizes[2], kSniffedLines);
  plan.whole = sizes[2] <= kSniffedLines;
  return Status::Ok();
}

}  // namespace

Result<std::optional<FilePlan>> PlanMatrixMarket(const FileHead& head, const Path& path) {
  const std::string_view text = head.bytes;
  if (Lower(text.substr(0, kBanner.size())) != kBanner) return std::optional<FilePlan>();
  std::vector<std::string> words = {""};
  for (const char letter : Lower(text.substr(0, std::min(text.find('\n'), text.size())))) {
    if (letter == ' ' || letter == '\t' || letter == '\r')
      words.emplace_back();
    else
      words.back() += letter;
  }
  std::erase(words, "");
  if (const auto reason = RefuseBanner(words))
    return Fail(Status::InvalidArgument(
        fmt::format("{}: this Matrix Market file cannot be read: {}", path.string(), *reason)));
  FilePlan plan;
  plan.path = path;
  plan.format = InputFormat::kMatrixMarket;
  plan.compression = CompressionName(head.compression);
  plan.dialect = {.delimiter = Delimiter::kBlanks, .quotes = false, .comments = "%"};
  plan.header = true;  // the line of sizes
  plan.symmetry = words[4];
  const ColumnType value = words[3] == "integer" ? ColumnType::kInteger : ColumnType::kNumber;
  plan.columns = {{.name = "", .role = "src", .type = ColumnType::kInteger},
                  {.name = "", .role = "dst", .type = ColumnType::kInteger}};
  if (words[3] != "pattern") plan.columns.push_back({.name = "", .role = "weight", .type = value});
  RHIZOME_RETURN_IF_ERROR(TakeSizes(head, path, plan));
  return plan;
}

}  // namespace internal
}  // namespace rhizome
