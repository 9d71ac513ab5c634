#include "index/input/npy_header.h"

#include <fmt/format.h>

#include <vector>

#include "index/input/npy.h"

namespace rhizome {

std::string NpyHeaderBytes(DataType dtype, std::uint64_t rows, std::optional<std::uint64_t> dim) {
  std::vector<std::uint64_t> shape = {rows};
  if (dim) shape.push_back(*dim);
  const std::vector<std::byte> header = EncodeNpyHeader(dtype, shape);
  return {reinterpret_cast<const char*>(header.data()), header.size()};
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
