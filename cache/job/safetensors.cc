#include "cache/job/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "storage/io/files.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

/// The extent of a tensor in the data section, in bytes.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;
};

Status BadTensors(std::string_view where, std::string_view what) {
  return Status::Corruption(fmt::format("safetensors: {}: {}", where, what));
}

Status ReadMetadata(const nlohmann::json& value, TensorFile& file) {
  if (!value.is_object()) return BadTensors(kMetadataKey, "is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return BadTensors(kMetadataKey, "holds something other than strings");
    file.metadata[key] = text.get<std::string>();
  }
  return Status::Ok();
}

Result<std::vector<std::int64_t>> ReadShape(const std::string& name, const nlohmann::json& entry) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array() || found->size() > kMaxTensorRank) {
    return Fail(
        BadTensors(name, fmt::format("shape is not an array of at most {}", kMaxTensorRank)));
  }
  std::vector<std::int64_t> shape;
  for (const nlohmann::json& extent : *found) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kMaxTensorFileBytes) {
      return Fail(BadTensors(name, "shape holds something other than sizes"));
    }
    shape.push_back(static_cast<std::int64_t>(extent.get<std::uint64_t>()));
  }
  return shape;
}

/// Returns the size of a float32 tensor in bytes. Errors: kCorruption, it exceeds the maximum file
/// size.
Result<std::uint64_t> TensorBytes(const std::string& name, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = sizeof(float);
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > kMaxTensorFileBytes) {
      return Fail(BadTensors(name, "shape is larger than a file may be"));
    }
  }
  return bytes;
}

Result<Extent> ReadExtent(const std::string& name, const nlohmann::json& entry,
                          std::span<const std::int64_t> shape, std::uint64_t data_bytes) {
  const auto found = entry.find("data_offsets");
  if (found == entry.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned()) {
    return Fail(BadTensors(name, "data_offsets is not a pair of sizes"));
  }
  Extent extent{.begin = (*found)[0].get<std::uint64_t>(),
                .end = (*found)[1].get<std::uint64_t>(),
                .name = name};
  if (extent.begin > extent.end || extent.end > data_bytes) {
    return Fail(BadTensors(name, "data_offsets are outside the file (is it truncated?)"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, TensorBytes(name, shape));
  if (extent.end - extent.begin != bytes) {
    return Fail(BadTensors(name, "data_offsets do not match shape"));
  }
  return extent;
}

/// Reads a tensor's header entry, copies its values and adds its extent to `extents`.
Status ReadTensor(const std::string& name, const nlohmann::json& entry,
                  std::span<const std::byte> data, TensorFile& file, std::vector<Extent>& extents) {
  if (!entry.is_object() || entry.size() != 3) {
    return BadTensors(name, "is not an object of dtype, shape and data_offsets");
  }
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) return BadTensors(name, "dtype is not a string");
  if (dtype->get<std::string>() != "F32") {
    return Status::Unsupported(fmt::format("safetensors: {}: dtype {} (only F32 is read)", name,
                                           dtype->get<std::string>()));
  }
  NamedTensor tensor;
  RHIZOME_ASSIGN_OR_RETURN(tensor.shape, ReadShape(name, entry));
  RHIZOME_ASSIGN_OR_RETURN(const Extent extent, ReadExtent(name, entry, tensor.shape, data.size()));
  tensor.values.resize((extent.end - extent.begin) / sizeof(float));
  if (!tensor.values.empty()) {
    std::memcpy(tensor.values.data(), data.data() + extent.begin, extent.end - extent.begin);
  }
  file.tensors.emplace(name, std::move(tensor));
  extents.push_back(extent);
  return Status::Ok();
}

/// Checks that the tensors cover the data section without gap or overlap, so that a file cannot
/// hide bytes.
Status CheckCover(std::vector<Extent> extents, std::uint64_t data_bytes) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t reached = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != reached)
      return BadTensors(extent.name, "leaves a gap after another tensor or overlaps it");
    reached = extent.end;
  }
  return reached == data_bytes ? Status::Ok()
                               : BadTensors("data", "has bytes that belong to no tensor");
}

/// Parses the JSON header. Rejects duplicate names; a plain parser would silently keep the last
/// one.
Result<nlohmann::json> ParseHeader(std::string_view text) {
  if (IsJsonTooDeep(text)) return Fail(BadTensors("header", "is nested too deep"));
  std::optional<std::string> repeated;
  nlohmann::json header = ParseUntrustedJson(text, &repeated);
  if (repeated) return Fail(BadTensors("header", "has a repeated name"));
  if (!header.is_object()) return Fail(BadTensors("header", "is not a JSON object"));
  return header;
}

}  // namespace

std::vector<std::byte> EncodeSafetensors(const TensorFile& file) {
  nlohmann::json header = nlohmann::json::object();
  if (!file.metadata.empty()) header[std::string(kMetadataKey)] = file.metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const std::uint64_t bytes = tensor.values.size() * sizeof(float);
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::byte> bytes(kLengthBytes + text.size() + offset);
  std::memcpy(bytes.data(), &length, kLengthBytes);
  std::memcpy(bytes.data() + kLengthBytes, text.data(), text.size());
  std::byte* data = bytes.data() + kLengthBytes + text.size();
  for (const auto& [name, tensor] : file.tensors) {
    if (!tensor.values.empty()) {
      std::memcpy(data, tensor.values.data(), tensor.values.size() * sizeof(float));
    }
    data += tensor.values.size() * sizeof(float);
  }
  return bytes;
}

// Decodes a file: (1) checks the header's length against the limit and the file; (2) parses the
// JSON header; (3) reads the metadata and each tensor, whose extent must match its shape; (4)
// checks that the tensors cover the data.
Result<TensorFile> DecodeSafetensors(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return Fail(BadTensors("header", "is truncated"));
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxTensorHeaderBytes || length > bytes.size() - kLengthBytes) {
    return Fail(BadTensors(
        "header", "is missing or truncated: this is no file of tensors, such as a trained model"));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  RHIZOME_ASSIGN_OR_RETURN(const nlohmann::json header,
                           ParseHeader(std::string_view(text, length)));
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  TensorFile file;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      RHIZOME_RETURN_IF_ERROR(ReadMetadata(entry, file));
    } else {
      RHIZOME_RETURN_IF_ERROR(ReadTensor(name, entry, data, file, extents));
    }
  }
  RHIZOME_RETURN_IF_ERROR(CheckCover(std::move(extents), data.size()));
  return file;
}

Status OfNamedFile(const Status& status, const Path& path) {
  if (status.code() != StatusCode::kCorruption) return status;
  const bool named = status.message().find(path.string()) != std::string::npos;
  return Status::InvalidArgument(named ? status.message()
                                       : path.string() + ": " + status.message());
}

Result<LoadedTensorFile> LoadSafetensors(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           ReadWholeFile(fs, path, kMaxTensorFileBytes));
  Result<TensorFile> file = DecodeSafetensors(bytes);
  if (!file) return Fail(file.error().WithContext(path.string()));
  return LoadedTensorFile{.file = *std::move(file), .hash = Xxh3(bytes)};
}

Status SaveSafetensors(const Path& path, const TensorFile& file, OutputFile::Place place) {
  RHIZOME_ASSIGN_OR_RETURN(OutputFile output, OutputFile::Create(path, place));
  RHIZOME_RETURN_IF_ERROR(output.Append(EncodeSafetensors(file)));
  return output.Commit();
}

std::string HashWithout(TensorFile file, const std::string& field) {
  file.metadata.erase(field);
  return ToHex(Xxh3(EncodeSafetensors(file)));
}

std::string ToHex(const Hash128& hash) {
  std::string text;
  for (const std::byte byte : hash) {
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

}  // namespace internal
}  // namespace rhizome
