#include <bit>
#include <cmath>
#include <string>

#include "cache/job/safetensors.h"
#include "edits.h"
#include "gnn/models/model_kinds.h"
#include "gnn/models/model_shape.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {

/// Replaces the model registry, which needs libtorch. Has a single model with the options that
/// determine tensor shapes, and one option of each other type.
Result<ModelInfo> FindModelInfo(std::string_view name) {
  if (name != "sage") return Fail(Status::InvalidArgument("there is no such model"));
  return ModelInfo{
      .name = "sage",
      .title = {},
      .source = {},
      .options = {ChoiceOption("head", {"linear", "mlp", "none"}, ""),
                  ChoiceOption("jump", {"none", "concat", "max"}, ""),
                  FlagOption("feed-forward", ""), FlagOption("residual", ""),
                  IntegerOption("heads", 4, 1, 256, ""), NumberOption("slope", "0.2", 0, 1, "")}};
}

}  // namespace internal
}  // namespace rhizome

namespace {

using namespace rhizome;

constexpr std::size_t kLengthBytes = 8;

TensorFile SampleFile() {
  TensorFile file;
  file.metadata["rhizome"] = "a model";
  file.tensors["layer.weight"] = {.shape = {2, 3}, .values = {1, 2, 3, 4, 5, 6}};
  file.tensors["layer.bias"] = {.shape = {2}, .values = {7, 8}};
  file.tensors["none"] = {.shape = {0, 4}, .values = {}};
  return file;
}

std::string SampleShape(bool typed) {
  ModelShape shape;
  shape.spec.layers = 2;
  shape.spec.hidden = 16;
  shape.inputs = 5;
  shape.classes = 3;
  if (typed) {
    shape.inputs = shape.spec.hidden;
    shape.vertex_types = {"paper", "venue"};
    shape.relations = {"cites"};
    shape.typed_inputs = {{.array = "feat", .dim = 5}, {}};
  }
  return EncodeModelShape(shape);
}

void CheckRefused(const Status& status) {
  RHIZOME_CHECK(status.code() == StatusCode::kCorruption ||
                status.code() == StatusCode::kUnsupported);
}

/// Decodes a file. It must be rejected, or decode to tensors whose encoding decodes to the same
/// tensors.
void Check(std::span<const std::byte> bytes) {
  const auto file = DecodeSafetensors(bytes);
  if (!file) return CheckRefused(file.error());
  for (const auto& [name, tensor] : file->tensors) {
    std::uint64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= static_cast<std::uint64_t>(extent);
    RHIZOME_CHECK(elements == tensor.values.size());
  }
  const auto again = DecodeSafetensors(EncodeSafetensors(*file));
  RHIZOME_CHECK(again.has_value() && again->metadata == file->metadata);
  RHIZOME_CHECK(again->tensors.size() == file->tensors.size());
  for (const auto& [name, tensor] : file->tensors) {
    const NamedTensor& other = again->tensors.at(name);
    RHIZOME_CHECK(other.shape == tensor.shape);
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
      RHIZOME_CHECK(std::bit_cast<std::uint32_t>(other.values[i]) ==
                    std::bit_cast<std::uint32_t>(tensor.values[i]));
  }
}

void CheckText(std::string_view text) {
  const auto shape = DecodeModelShape(text);
  if (!shape) return CheckRefused(shape.error());
  RHIZOME_CHECK(CheckShape(*shape).has_value());
  const std::string encoded = EncodeModelShape(*shape);
  const auto again = DecodeModelShape(encoded);
  RHIZOME_CHECK(again.has_value() && EncodeModelShape(*again) == encoded);
}

/// Builds a valid file whose header has edits and a correct length, so that mutations reach the
/// header's fields.
std::vector<std::byte> WithOtherHeader(std::span<const std::uint8_t> input) {
  const std::vector<std::byte> sample = EncodeSafetensors(SampleFile());
  const auto length = LoadLittle<std::uint64_t>(sample.data());
  const auto* const begin = sample.data() + kLengthBytes;
  const auto header = fuzzing::WithEdits(std::vector<std::byte>(begin, begin + length), input);
  std::vector<std::byte> bytes(kLengthBytes);
  StoreLittle(bytes.data(), std::uint64_t{header.size()});
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), begin + length, sample.data() + sample.size());
  return bytes;
}

}  // namespace

// Decodes model files and the model descriptions in them: raw bytes, and valid ones with edits.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      Check(std::as_bytes(input));
      break;
    case 1:
      Check(WithOtherHeader(input));
      break;
    case 2:  // any header
    {
      std::vector<std::byte> bytes(kLengthBytes);
      StoreLittle(bytes.data(), std::uint64_t{input.size()});
      const auto raw = std::as_bytes(input);
      bytes.insert(bytes.end(), raw.begin(), raw.end());
      Check(bytes);
      break;
    }
    case 3:
      CheckText({reinterpret_cast<const char*>(input.data()), input.size()});
      break;
    default:
      CheckText(fuzzing::WithEdits(SampleShape(data[0] % 2 == 0), input));
  }
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  const std::vector<std::byte> sample = EncodeSafetensors(SampleFile());
  AddChanged(seeds, Joined({0}, sample), 1, 300);
  AddEdits(seeds, {1}, LoadLittle<std::uint64_t>(sample.data()), 2500);
  for (const char* const header :
       {"{}", "[]", R"({"a": 1})", R"({"__metadata__": 1})", R"({"__metadata__": {"a": 1}})",
        R"({"a": {"dtype": "F32", "shape": [1073741825, 4], "data_offsets": [0, 0]}})",
        R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 9]}})",
        R"({"a": {"dtype": 3, "shape": [0], "data_offsets": [0, 0]}})",
        R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}})",
        R"({"a": {"dtype": "F32", "shape": 7, "data_offsets": [0, 0]}})",
        R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": 0}})",
        R"({"a": {"dtype": "I8", "shape": [0], "data_offsets": [0, 0]}})", R"({"a": {}, "a": {}})"})
    seeds.push_back(Joined({2}, header));
  for (const bool typed : {false, true}) {
    AddChanged(seeds, Joined({3}, SampleShape(typed)), 1, 300);
    AddEdits(seeds, {static_cast<std::uint8_t>(typed ? 4 : 9)}, SampleShape(typed).size(), 1200);
  }
  for (const char* const key : {"format", "kind", "layers", "inputs", "hidden", "classes",
                                "dropout", "normalize_features", "no_edges"}) {
    for (const char* const value : {"7", "0", "-1", "1e9", "\"gcn\"", "\"x\"", "true", "null"}) {
      std::string text = SampleShape(/*typed=*/false);
      const std::size_t begin = text.find(':', text.find('"' + std::string(key) + '"')) + 1;
      const std::size_t end = text.find_first_of(",}", begin);
      text.replace(begin, end - begin, value);
      seeds.push_back(Joined({3}, text));
    }
  }
  return seeds;
}
