#include "tools/verbs/partition_rows.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/job/process_memory.h"
#include "index/input/npy_header.h"
#include "storage/base/stopwatch.h"
#include "storage/io/files.h"
#include "tools/cli/machine.h"
#include "tools/cli/text.h"
#include "tools/import/dataset.h"

namespace rhizome {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers go to files as they are");

/// Reads integers from 0 to `bound` - 1; `what` names one of them in error messages.
template <typename T>
Result<std::vector<T>> ReadNumbers(const std::string& path, std::string_view what,
                                   std::uint64_t bound) {
  std::vector<T> numbers;
  if (path.empty()) return numbers;
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, IntegerReader::Open(FileSystem::Posix(), path));
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto block, reader->Next());
    if (block.empty()) return numbers;
    for (const std::int64_t number : block) {
      if (number < 0 || static_cast<std::uint64_t>(number) >= bound) {
        return Fail(Status::InvalidArgument(fmt::format(
            "{}: entry {}: {} {} is not in [0, {})", path, numbers.size(), what, number, bound)));
      }
      numbers.push_back(static_cast<T>(number));
    }
  }
}

/// Writes homes as int32, a format that other programs and `--beside` read.
Status WriteHomes(const std::string& path, const std::vector<PartitionId>& home_of) {
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  const std::string header = NpyHeaderBytes(DataType::kInt32, home_of.size());
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(header))));
  const std::vector<std::int32_t> wide(home_of.begin(), home_of.end());
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(wide))));
  return out.Commit();
}

Json MetricsJson(const HomeMetrics& metrics) {
  return {{"cut_share", metrics.cut_share},
          {"row_balance", metrics.row_balance},
          {"seed_balance", metrics.seed_balance}};
}

std::string Describe(const Json& f) {
  std::string text =
      fmt::format("{} rows, {} seeds in {} homes\n", WithCommas(f["vertices"].get<std::uint64_t>()),
                  WithCommas(f["seeds"].get<std::uint64_t>()), f["homes"].get<std::uint32_t>());
  TextTable table;
  table.Add({"", "edges cut", "rows max/mean", "seeds max/mean", "CPU s"});
  const auto add = [&](const std::string& name, const Json& of, const std::string& seconds) {
    table.Add({name, fmt::format("{:.2f} %", 100 * of["cut_share"].get<double>()),
               fmt::format("{:.3f}", of["row_balance"].get<double>()),
               fmt::format("{:.3f}", of["seed_balance"].get<double>()), seconds});
  };
  add("rhizome", f, fmt::format("{:.2f}", f["cpu_seconds"].get<double>()));
  if (f.contains("beside")) add(f["beside"]["file"].get<std::string>(), f["beside"], "-");
  return text + table.ToString("  ");
}

}  // namespace

Result<Answer> PartitionRows(const PartitionInput& input, const RowsFlags& flags,
                             Session& session) {
  const HomeOptions& options = flags.options;
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<VertexId> seeds,
                           ReadNumbers<VertexId>(flags.seeds, "seed", input.vertex_count()));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<PartitionId> others,
                           ReadNumbers<PartitionId>(flags.beside, "home", options.homes));
  const Stopwatch watch;
  const double cpu_before = ProcessCpuSeconds();
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<PartitionId> home_of,
                           DivideRows(input, seeds, options, session.control));
  const double cpu_seconds = ProcessCpuSeconds() - cpu_before;
  const double seconds = watch.seconds();
  RHIZOME_ASSIGN_OR_RETURN(const HomeMetrics metrics,
                           MeasureHomes(input, seeds, home_of, options.homes));
  Json fields = {{"homes", options.homes},
                 {"vertices", input.vertex_count()},
                 {"edges", input.edge_count()},
                 {"seeds", seeds.size()},
                 {"seed", options.seed}};
  fields.update(MetricsJson(metrics));
  fields["seconds"] = seconds;
  fields["cpu_seconds"] = cpu_seconds;
  fields["peak_memory_bytes"] = PeakResidentBytes();
  if (!flags.beside.empty()) {
    const auto measured = MeasureHomes(input, seeds, others, options.homes);
    if (!measured) return Fail(measured.error().WithContext(flags.beside));
    fields["beside"] = MetricsJson(*measured);
    fields["beside"]["file"] = flags.beside;
  }
  if (!flags.out.empty()) {
    RHIZOME_RETURN_IF_ERROR(WriteHomes(flags.out, home_of));
    fields["out"] = flags.out;
  }
  return Answer{std::move(fields), Describe, {}};
}

}  // namespace rhizome
