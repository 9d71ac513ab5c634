#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Limits of this reader. They are checked before any size in a file is trusted.
inline constexpr std::uint64_t kMaxTensorHeaderBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxTensorFileBytes = std::uint64_t{4} << 30;
inline constexpr std::size_t kMaxTensorRank = 8;

/// A float32 tensor, row-major.
struct NamedTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// Contents of a safetensors file: tensors by name, and the strings of its `__metadata__`.
struct TensorFile {
  std::map<std::string, NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Encodes a file: an 8-byte little-endian header length, a JSON header padded with spaces to a
/// multiple of 8 bytes, then the tensors in name order. Equal contents produce equal bytes.
std::vector<std::byte> EncodeSafetensors(const TensorFile& file);

/// Parses untrusted bytes. All tensors must be float32 and must cover the data without gap or
/// overlap. Errors: kCorruption, naming the tensor or field; kUnsupported, another dtype.
Result<TensorFile> DecodeSafetensors(std::span<const std::byte> bytes);

struct LoadedTensorFile {
  TensorFile file;
  Hash128 hash{};  ///< hash of the file's bytes
};

/// Reads and decodes a file of at most kMaxTensorFileBytes. Errors: kNotFound; kIoError; any error
/// of DecodeSafetensors, with the file's name.
Result<LoadedTensorFile> LoadSafetensors(FileSystem& fs, const Path& path);

/// Turns kCorruption into kInvalidArgument for a file named by the user: such a file is malformed
/// input, not damage to a store.
Status OfNamedFile(const Status& status, const Path& path);

/// Writes the file atomically. Errors: any error of OutputFile::Create; kIoError; kOutOfSpace;
/// kPermissionDenied.
Status SaveSafetensors(const Path& path, const TensorFile& file,
                       OutputFile::Place place = OutputFile::Place::kOutside);

/// Returns the hash of a file as 32 hexadecimal digits, ignoring one metadata field: the field that
/// stores this hash.
std::string HashWithout(TensorFile file, const std::string& field);

/// Returns the hash as 32 hexadecimal digits.
std::string ToHex(const Hash128& hash);

}  // namespace internal
}  // namespace rhizome
