#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/input/npy.h"
#include "memory_files.h"
#include "seeds.h"
#include "storage/base/check.h"

namespace {

std::vector<std::byte> Header(std::string_view dict, std::uint8_t version) {
  std::string text(dict);
  const std::size_t preamble = version == 1 ? 10 : 12;
  while ((preamble + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0'};
  for (std::size_t i = 8; i < preamble; ++i)
    bytes += static_cast<char>(text.size() >> (8 * (i - 8)));
  bytes += text;
  const auto raw = std::as_bytes(std::span(bytes));
  return {raw.begin(), raw.end()};
}

}  // namespace

// Reads raw bytes as a .npy file, in pieces of any size. The file must be rejected as invalid
// input, or read completely.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rhizome;
  if (size < 1) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  fuzzing::MemoryFiles files;
  files.files["a.npy"] = {bytes.begin(), bytes.end()};
  const NpyAccept accept{.fortran_order = (data[0] & 2) != 0};
  const auto reader = NpyReader::Open(files, "a.npy", accept);
  if (!reader) {
    RHIZOME_CHECK(reader.error().code() == StatusCode::kInvalidArgument);
    return 0;
  }
  // The header may promise more data than the file holds.
  const std::uint64_t element = DataTypeBytes((*reader)->header().dtype);
  std::vector<std::byte> piece(element * (1 + data[0] / 4 % 8));
  std::uint64_t left = (*reader)->data_bytes();
  RHIZOME_CHECK(left % element == 0);
  while (left > 0) {
    piece.resize(std::min<std::uint64_t>(piece.size(), left));
    const Status status =
        (left / element) % 3 == 2 ? (*reader)->Skip(piece.size()) : (*reader)->Read(piece);
    if (!status.ok()) {
      RHIZOME_CHECK(status.code() == StatusCode::kInvalidArgument);
      return 0;
    }
    left -= piece.size();
  }
  static_cast<void>((*reader)->Finish().ok());
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (const std::uint8_t kind : {0, 1, 2, 3}) {
    for (const std::uint8_t version : {1, 2, 3, 4}) {
      for (const char* const dict :
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (2,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1, 2, 3), }",
            "{'shape': (4611686018427387904, 9), \"descr\": \"<i8\", 'fortran_order': False}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1)}",
            "{'descr': [('a', '<f4')], 'fortran_order': 0, 'shape': ()}"}) {
        std::vector<std::byte> file = Header(dict, version);
        file.resize(file.size() + 24);
        AddChanged(seeds, Joined({kind}, file), 1, version == 1 ? 300 : 20);
      }
    }
  }
  std::vector<std::byte> long_header = Header("{}", 2);
  long_header[10] = std::byte{0x10};  // a MiB
  seeds.push_back(Joined({0}, long_header));
  // A number outside the range of float32.
  std::vector<std::byte> wide =
      Header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 1);
  for (int i = 0; i < 16; ++i) wide.push_back(std::byte{0x7E});
  AddChanged(seeds, Joined({1}, wide), 120, 40);
  return seeds;
}
