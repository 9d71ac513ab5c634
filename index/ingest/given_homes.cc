#include "index/ingest/given_homes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "index/homes/home_array.h"
#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/number.h"
#include "index/input/table_reader.h"
#include "storage/base/escaped_text.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kHomesPhase = "read homes";
constexpr std::size_t kHomesAtOnce = std::size_t{1} << 15;

/// No partition has this number, because there are at most kMaxPartitions.
constexpr PartitionId kNotGiven = 0xFFFF;
static_assert(kNotGiven >= kMaxPartitions);

/// Adds a home if it is a valid partition; otherwise returns the reason.
std::optional<std::string> AddHome(std::int64_t home, std::uint32_t partitions,
                                   std::vector<PartitionId>& homes) {
  if (home < 0 || home >= partitions)
    return fmt::format("home {} is not in [0, {}); `partitions` is the number of homes", home,
                       partitions);
  homes.push_back(static_cast<PartitionId>(home));
  return std::nullopt;
}

Status ReadTextOfHomes(IngestContext& context, const Path& path, std::vector<PartitionId>& homes) {
  const std::uint32_t partitions = context.options.build.partition.partitions;
  RHIZOME_ASSIGN_OR_RETURN(
      const auto reader,
      TableReader::Open(context.fs, path, context.options.header.value_or(false)));
  const auto refuse = [&](std::string_view what) {
    return Status::InvalidArgument(fmt::format("{}: {}", reader->Place(), Excerpt(what)));
  };
  const auto progress = [&] {
    return context.Progress(kHomesPhase, reader->stream(), homes.capacity() * sizeof(PartitionId));
  };
  // A malformed line is an error and is never skipped, because all later homes would go to the
  // wrong vertices.
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) return progress();
    if (next == TableReader::Next::kMalformed) return refuse(reader->reason());
    const auto fields = reader->fields();
    const auto home = fields.size() == 1 ? ParseCanonicalInteger(fields[0]) : std::nullopt;
    if (!home) return refuse("one integer is expected, the home of a vertex");
    if (const auto what = AddHome(*home, partitions, homes)) return refuse(*what);
    if (homes.size() % kLinesPerReport == 0) RHIZOME_RETURN_IF_ERROR(progress());
  }
}

Status ReadRowsOfHomes(IngestContext& context, const ArrayFile& file,
                       std::vector<PartitionId>& homes) {
  const std::uint32_t partitions = context.options.build.partition.partitions;
  const std::string path = file.path.string();
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, OpenRows(context.fs, file));
  if (rows->dim != 1 || !CanConvert(rows->dtype, DataType::kInt64))
    return Status::InvalidArgument(
        fmt::format("{}: a row must be one integer, the home of a vertex, but it is {} x {}", path,
                    rows->dim, DataTypeName(rows->dtype)));
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> block;
  for (std::uint64_t done = 0; done < rows->rows; done += block.size()) {
    block.resize(std::min<std::uint64_t>(kHomesAtOnce, rows->rows - done));
    bytes.resize(block.size() * DataTypeBytes(rows->dtype));
    RHIZOME_RETURN_IF_ERROR(rows->Read(bytes));
    static_cast<void>(ConvertElements(rows->dtype, bytes, DataType::kInt64,
                                      std::as_writable_bytes(std::span(block))));
    for (std::size_t i = 0; i < block.size(); ++i)
      if (const auto what = AddHome(block[i], partitions, homes))
        return Status::InvalidArgument(fmt::format("{}: row {}: {}", path, done + i, *what));
    RHIZOME_RETURN_IF_ERROR(
        context.Progress(kHomesPhase, {file.path, done + block.size(), rows->rows},
                         homes.capacity() * sizeof(PartitionId) + rows->memory_bytes()));
  }
  return rows->Finish();
}

}  // namespace

Status CheckHomesFile(const IngestOptions& options) {
  if (options.homes_file.has_value() == (options.build.homes == HomeRule::kFile))
    return Status::Ok();
  return Status::InvalidArgument(
      "a file of homes must be given with HomeRule::kFile, and only with it");
}

Result<GivenHomes> GivenHomes::Read(IngestContext& context) {
  GivenHomes homes;
  if (!context.options.homes_file) return homes;
  const ArrayFile& file = *context.options.homes_file;
  RHIZOME_RETURN_IF_ERROR(HasRows(context.fs, file)
                              ? ReadRowsOfHomes(context, file, homes.of_line)
                              : ReadTextOfHomes(context, file.path, homes.of_line));
  context.Hold(homes.of_line.capacity() * sizeof(PartitionId));
  return homes;
}

ArrayRows GivenHomes::rows(const IngestOptions& options) const {
  return {.name = std::string(kHomeArray),
          .path = options.homes_file ? options.homes_file->path.string() : std::string(),
          .rows = of_line.size(),
          .exact_rows = true};
}

Result<std::vector<PartitionId>> GivenHomes::ByVertex(const IngestOptions& options,
                                                      const NodeTable& nodes,
                                                      std::span<const VertexId> vertex_of_accepted,
                                                      std::uint64_t vertex_count) && {
  if (!options.homes_file || !options.nodes) return std::move(of_line);
  std::vector<PartitionId> homes(vertex_count, kNotGiven);
  for (std::uint64_t line = 0; line < of_line.size(); ++line) {
    const std::int64_t accepted =
        nodes.accepted.empty() ? static_cast<std::int64_t>(line) : nodes.accepted[line];
    if (accepted < 0) continue;
    const VertexId vertex = vertex_of_accepted[static_cast<std::size_t>(accepted)];
    homes[static_cast<std::size_t>(vertex)] = of_line[line];
  }
  const auto missing = std::count(homes.begin(), homes.end(), kNotGiven);
  if (missing == 0) return homes;
  return Fail(Status::InvalidArgument(
      fmt::format("{}: {} vertices occur only in edges, so they have no line in the nodes file and "
                  "none in this one; list them in both",
                  options.homes_file->path.string(), missing)));
}

}  // namespace internal
}  // namespace rhizome
