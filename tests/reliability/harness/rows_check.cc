#include "reliability/harness/rows_check.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "reliability/harness/history.h"
#include "rhizome/array_add.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

/// A source of rows 0, 1, 2, ..., each of one number.
class Numbers final : public RowSource {
 public:
  explicit Numbers(std::uint64_t count) {
    rows = count;
    dim = 1;
    dtype = DataType::kFloat32;
  }
  Status Read(std::span<std::byte> out) override {
    for (std::size_t at = 0; at < out.size(); at += sizeof(next_), ++next_)
      std::memcpy(out.data() + at, &next_, sizeof(next_));
    return Status::Ok();
  }

 private:
  float next_ = 0;
};

std::vector<VertexId> LiveIds(const Graph& graph) {
  std::vector<VertexId> live;
  for (std::uint64_t v = 0; v < graph.vertex_count(); ++v)
    if (!graph.IsDeleted(static_cast<VertexId>(v))) live.push_back(static_cast<VertexId>(v));
  return live;
}

Status DeleteAndCompact(FileSystem& fs) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(fs, kStorePath, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  WriteBatch batch;
  batch.DeleteVertex(*graph->ExternalIdOf(1));
  RHIZOME_RETURN_IF_ERROR(AsStatus(graph->Write(batch)));
  return AsStatus(graph->Compact({}, JobControl()));
}

Status AddNumbers(FileSystem& fs, std::uint64_t count) {
  AddArrayOptions options;
  options.file.name = "numbers";
  options.file.path = "numbers";
  options.file.open = [count](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<Numbers>(count);
  };
  return AsStatus(AddArray(fs, kStorePath, options, JobControl()));
}

Status KeepRows(std::string& wrong) {
  StoreDisk disk;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(disk, kStorePath.parent_path()));
  RHIZOME_RETURN_IF_ERROR(IngestSmall(disk));
  RHIZOME_RETURN_IF_ERROR(DeleteAndCompact(disk));
  std::uint64_t count = 0;
  {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(disk, kStorePath, Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
    count = LiveIds(*graph).size();
  }
  if (!AddNumbers(disk, count).ok()) wrong = "a row for each vertex that is left is refused";
  if (!wrong.empty()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(disk, kStorePath, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  const std::vector<VertexId> live = LiveIds(*graph);
  const auto read = [&] {
    std::vector<float> rows(live.size(), -1);
    const Status status = graph->ReadRows("numbers", live, std::as_writable_bytes(std::span(rows)));
    if (!status.ok()) wrong = status.ToString();
    return rows;
  };
  std::vector<float> expected(live.size());
  for (std::size_t i = 0; i < live.size(); ++i) expected[i] = static_cast<float>(i);
  if (read() != expected) wrong = "a row went to another vertex";
  WriteBatch typed;
  typed.PutRow(*graph->ExternalIdOf(live[0]), "numbers", {std::int32_t{1}});
  if (graph->Write(typed)) wrong = "an int32 became a float32";
  WriteBatch batch;
  batch.PutRow(*graph->ExternalIdOf(live[2]), "numbers", {-2.0F});
  RHIZOME_RETURN_IF_ERROR(AsStatus(graph->Write(batch)));
  expected[2] = -2;
  if (wrong.empty() && read() != expected) wrong = "a row that was put is not read";
  return Status::Ok();
}

}  // namespace

std::optional<std::string> CheckRows() {
  std::string wrong;
  const Status status = KeepRows(wrong);
  if (!status.ok()) return "fails: " + status.ToString();
  return wrong.empty() ? std::nullopt : std::optional(wrong);
}

}  // namespace rhizome::testing
