#include "index/input/npy_header.h"

#include <fmt/format.h>

namespace rhizome {
namespace {

const char* NpyDescription(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return "<f4";
    case DataType::kFloat16:
      return "<f2";
    case DataType::kInt64:
      return "<i8";
    case DataType::kInt32:
      return "<i4";
    case DataType::kUint32:
      return "<u4";
    case DataType::kUint8:
      return "|u1";
    case DataType::kInvalid:
      break;
  }
  return "";
}

}  // namespace

std::string NpyHeaderBytes(DataType dtype, std::uint64_t rows, std::optional<std::uint64_t> dim) {
  return NpyHeaderBytes(NpyDescription(dtype), rows, dim);
}

std::string NpyHeaderBytes(std::string_view description, std::uint64_t rows,
                           std::optional<std::uint64_t> dim) {
  constexpr std::size_t kPreamble = 10;  // magic, version, length of the dictionary
  const std::string shape = dim ? fmt::format("({}, {})", rows, *dim) : fmt::format("({},)", rows);
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", description, shape);
  while ((kPreamble + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace rhizome
