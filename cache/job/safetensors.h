#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Limits that a reader enforces before it believes a size.
inline constexpr std::uint64_t kMaxTensorHeaderBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxTensorFileBytes = std::uint64_t{4} << 30;
inline constexpr std::size_t kMaxTensorRank = 8;

/// A float32 tensor, row-major.
struct NamedTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// What one safetensors file holds: tensors by name, and the strings of its `__metadata__`.
struct TensorFile {
  std::map<std::string, NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// The file's bytes: an 8-byte little-endian header length, a JSON header padded with spaces to a
/// multiple of 8, the tensors in name order. The same content gives the same bytes.
std::vector<std::byte> EncodeSafetensors(const TensorFile& file);

/// Parses untrusted bytes. The tensors must cover the data exactly, without gap or overlap; float32
/// only. Errors: kCorruption naming the tensor or field; kUnsupported, another dtype.
Result<TensorFile> DecodeSafetensors(std::span<const std::byte> bytes);

struct LoadedTensorFile {
  TensorFile file;
  Hash128 hash{};  ///< of the file's bytes
};

/// Errors: kNotFound; those of DecodeSafetensors, naming the file.
Result<LoadedTensorFile> LoadSafetensors(FileSystem& fs, const Path& path);

/// The error of a file that a user named: what is wrong with it is malformed input
/// (kInvalidArgument), no damage of a store.
Status OfNamedFile(const Status& status, const Path& path);

/// Writes the file atomically. Errors: those of OutputFile::Create; kIoError, kOutOfSpace,
/// kPermissionDenied.
Status SaveSafetensors(const Path& path, const TensorFile& file,
                       OutputFile::Place place = OutputFile::Place::kOutside);

/// 32 hexadecimal digits.
std::string ToHex(const Hash128& hash);

}  // namespace rhizome
