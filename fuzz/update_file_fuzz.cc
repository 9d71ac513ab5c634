#include <memory>
#include <string>
#include <vector>

#include "index/generation/graph_builder.h"
#include "memory_files.h"
#include "reliability/harness/rocks_disk.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "tools/verbs/update_file.h"

namespace {

using namespace rhizome;

struct Array {
  const char* name;
  DataType dtype;
};
constexpr Array kArrays[] = {
    {"feat", DataType::kFloat32},   {"half", DataType::kFloat16}, {"long", DataType::kInt64},
    {"int", DataType::kInt32},      {"uint", DataType::kUint32},  {"byte", DataType::kUint8},
    {"flag", DataType::kBool},      {"short", DataType::kInt16},  {"tiny", DataType::kInt8},
    {"brain", DataType::kBfloat16}, {"wide", DataType::kFloat64}};

/// Builds a store with types, weights, edge attributes of one and of two values, and arrays of
/// every kind.
std::shared_ptr<const GraphSnapshot> SmallGraph() {
  struct Opened {
    testing::StoreDisk disk;
    std::unique_ptr<Store> store;
    std::shared_ptr<const GraphSnapshot> graph;
  };
  // Never destroyed, because RocksDB's statics may be destroyed first.
  static const Opened* const opened = [] {
    auto* const made = new Opened();
    GraphInput input;
    input.vertex_count = 3;
    input.vertex_type_names = {"v"};
    input.edge_type_names = {"cites", "sees"};
    input.edges.src = {0, 1};
    input.edges.dst = {1, 2};
    input.edges.type = {0, 1};
    input.edges.weight = {1, 2};
    input.edges.attributes = {EdgeAttribute("time"), EdgeAttribute("score")};
    for (const std::int64_t value : {5, 6}) {
      input.edges.attributes[0].Add(value);
      input.edges.attributes[1].Add(static_cast<float>(value) / 4);
    }
    for (const auto& [name, dtype] : kArrays) {
      ArrayInput array;
      array.name = name;
      array.dim = 2;
      array.dtype = dtype;
      array.chunk_rows = 128;
      array.read_rows = [](std::span<const VertexId>, std::span<std::byte> out) {
        std::fill(out.begin(), out.end(), std::byte{0});
        return Status::Ok();
      };
      input.arrays.push_back(std::move(array));
    }
    const JobControl control;
    auto created = Store::Create(made->disk, "/g.rz", StoreId{});
    RHIZOME_CHECK(created.has_value());
    RHIZOME_CHECK(BuildGeneration(**created, std::move(input), BuildOptions{}, control).ok());
    created->reset();
    auto store = Store::Open(made->disk, "/g.rz", Store::Mode::kRead);
    RHIZOME_CHECK(store.has_value());
    made->store = *std::move(store);
    auto graph = Graph::Open(std::as_const(*made->store));
    RHIZOME_CHECK(graph.has_value());
    made->graph = *std::move(graph);
    return made;
  }();
  return opened->graph;
}

UpdateFormat FormatOf(std::uint8_t choices) {
  UpdateFormat format;
  format.verb = static_cast<UpdateVerb>(choices % 3);
  format.form = choices & 128 ? UpdateFormat::Form::kAuto
                              : static_cast<UpdateFormat::Form>(1 + choices / 3 % 3);
  if (format.form == UpdateFormat::Form::kJson || format.form == UpdateFormat::Form::kAuto)
    return format;
  format.subject = static_cast<UpdateFormat::Subject>(choices / 9 % 3);
  if (format.subject == UpdateFormat::Subject::kRows) format.array = kArrays[choices / 27 % 3].name;
  if (format.subject == UpdateFormat::Subject::kEdges && choices / 27 % 3 == 1)
    format.columns = {"src", "dst", "type", "weight", "-", "time", "score"};
  if (format.subject == UpdateFormat::Subject::kVertices && choices / 27 % 3 == 1)
    format.columns = {"type", "id"};
  format.header = choices / 27 % 3 == 2;
  return format;
}

}  // namespace

// Reads raw bytes as an update file of edges, vertices or rows, in the form of JSON lines, TSV or
// CSV. Each line must be rejected with a reason, add operations, or mark the end of the changes of
// another store.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  constexpr const char* kNames[] = {"u.jsonl", "u.tsv", "u.csv"};
  fuzzing::MemoryFiles files;
  const std::string name = kNames[data[1] % 3];
  files.files[name] = {bytes.begin(), bytes.end()};
  const auto file = UpdateFile::Open(files, name, FormatOf(data[0]), SmallGraph());
  RHIZOME_CHECK(file.has_value() || file.error().code() == StatusCode::kInvalidArgument);
  if (!file) return 0;
  WriteBatch batch;
  while (true) {
    const std::size_t before = batch.size();
    const auto more = (*file)->ReadLine(batch);
    if (!more) {
      RHIZOME_CHECK(more.error().code() == StatusCode::kInvalidArgument);
      RHIZOME_CHECK(more.error().message().find((*file)->Place()) != std::string::npos);
      continue;  // the next line can be read
    }
    if (!*more) return 0;
    RHIZOME_CHECK(batch.size() > before || (*file)->mark());
  }
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  const char* const kJson[] = {
      R"({"src": 1, "dst": 2, "type": "cites", "weight": 0.5, "time": 17, "score": 2.5})",
      R"({"op": "upsert", "src": "a", "dst": "b", "score": [1]})",
      R"({"op": "delete", "src": 1, "dst": 18446744073709551615})",
      R"({"op": "put", "id": 7, "type": "author", "rows": {"feat": [0.1, 2]}})",
      R"({"id": 7, "op": "delete"})",
      R"({"id": 7, "rows": {"feat": [0.1, "x"]}})",
      R"({"id": 7, "rows": {"none": [0.1, 2]}})",
      R"({"id": 7, "rows": {"feat": [1]}})",
      R"({"id": 7, "rows": 3})",
      R"({"id": 7, "op": "delete", "rows": {}})",
      R"({"id": 7, "other": 3})",
      R"({"id": 18446744073709551615})",
      R"({"id": true})",
      R"({"id": 1, "type": 2})",
      R"({"op": 3})",
      R"({"src": 1, "dst": 2, "weight": 1e999})",
      R"({"src": 1, "dst": 2, "weight": "x"})",
      R"({"src": 1, "dst": 2, "time": 1.5})",
      R"({"src": 1, "dst": 2, "time": [1, 2]})",
      R"({"src": 1, "dst": 2, "time": "x"})",
      R"({"src": 1, "dst": 2, "score": null})",
      R"({"src": 1, "dst": 2, "none": 1})",
      R"({"id": 7, "$changes": {"store": "00112233445566778899aabbccddeeff", "after": 1, )"
      R"("after_hash": "00112233445566778899aabbccddeeff", "last": 3, )"
      R"("last_hash": "ffeeddccbbaa99887766554433221100"}})",
      R"({"$changes": {"store": "00112233445566778899aabbccddeeff", "after": 1}})",
      R"({"$changes": {"after": "x"}})",
      "\n  \n[]",
  };
  for (const std::uint8_t verb : {6, 7, 8, 128})
    for (const char* const line : kJson) AddChanged(seeds, Joined({verb, 0}, line), 2, 16);
  for (std::uint8_t choices = 0; choices < 81; ++choices) {
    if (choices / 3 % 3 == 2) continue;
    const bool csv = choices / 3 % 3 == 1;
    for (std::string line : {"1\t2\n", "1\tx\t3.5\n", "1\t2\tcites\t0.5\tz\t17\t2.5\n", "7\n",
                             "author\t7\n", "1\t2\tcites\tx\tz\t17\t2.5\n",
                             "1\t2\tcites\t1\tz\t1.5\t2.5\n", "7\t0.1\t2\n", "7\t0.1\tx\n"}) {
      if (csv) std::replace(line.begin(), line.end(), '\t', ',');
      AddChanged(seeds, Joined({choices, 1}, line), 2, 4);
    }
  }
  for (const std::uint8_t name : {0, 1, 2}) seeds.push_back(Joined({128, name}, "1\t2\n"));
  for (const Array& array : kArrays)
    for (const char* const value : {"1", "-1", "1.5", "70000", "5000000000", "1e39", "x", "null"})
      seeds.push_back(Joined({6, 0}, std::string(R"({"id": 7, "rows": {")") + array.name +
                                         R"(": [0, )" + value + "]}}"));
  return seeds;
}
