#include "reliability/live/live_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/array_add.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/store.h"

namespace rhizome::testing {
namespace {

constexpr std::uint64_t kDim = 8192;  // several blocks of a disk

std::string NameOfOfLiveArrays(std::uint64_t number) { return fmt::format("rows{}", number); }

class OneRow final : public RowSource {
 public:
  explicit OneRow(float value) : value_(value) {
    rows = 1;
    dim = kDim;
    dtype = DataType::kFloat32;
  }
  Status Read(std::span<std::byte> out) override {
    for (std::size_t at = 0; at < out.size(); at += sizeof(value_))
      std::memcpy(out.data() + at, &value_, sizeof(value_));
    return Status::Ok();
  }

 private:
  const float value_;
};

Status CheckRow(const Graph& graph, std::uint64_t number) {
  const auto root = graph.Find(ExternalId("root"));
  if (!root) return Status::Corruption("the vertex root is missing");
  const std::array<VertexId, 1> vertices = {*root};
  std::vector<float> row(kDim);
  RHIZOME_RETURN_IF_ERROR(
      graph.ReadRows(NameOfOfLiveArrays(number), vertices, std::as_writable_bytes(std::span(row))));
  const auto wanted = static_cast<float>(number + 1);
  if (std::count(row.begin(), row.end(), wanted) != std::ssize(row))
    return Status::Corruption(NameOfOfLiveArrays(number) + " holds something else");
  return Status::Ok();
}

}  // namespace

Status AddLiveArray(const Path& path, std::uint64_t number) {
  AddArrayOptions options;
  options.file.name = NameOfOfLiveArrays(number);
  options.file.path = NameOfOfLiveArrays(number);
  options.file.open = [number](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<OneRow>(static_cast<float>(number + 1));
  };
  // Vertices were deleted, so the file must name the vertex of each row.
  options.ids = path.parent_path() / "root.txt";
  if (!(std::ofstream(*options.ids) << "root\n").flush())
    return Status::IoError("cannot write root.txt");
  RHIZOME_RETURN_IF_ERROR(AddArray(FileSystem::Posix(), path, options, JobControl()));
  return Status::Ok();
}

Result<std::uint64_t> CountLiveArrays(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(std::as_const(*store)));
  std::uint64_t count = 0;
  for (const ArrayEntry& array : graph->store().manifest().arrays)
    if (array.name.starts_with("rows") && !array.name.ends_with(".crc32c")) ++count;
  for (std::uint64_t number = 0; number < count; ++number)
    RHIZOME_RETURN_IF_ERROR(CheckRow(*graph, number));
  return count;
}

}  // namespace rhizome::testing
