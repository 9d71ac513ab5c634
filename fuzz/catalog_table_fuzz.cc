#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/storage/catalog_table.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/little_endian.h"

// A table of RocksDB with any footer, its magic and version set right: nothing beyond the file is
// read, and no more than a small block at once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kVersionBytes = 12;
  std::vector<std::byte> table(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, table.begin());
  if (size >= kVersionBytes && data[0] % 8 != 0) {
    rhizome::StoreLittle(table.data() + size - 12, std::uint32_t{5});
    rhizome::StoreLittle(table.data() + size - 8, std::uint64_t{0x88E241B785F4CFF7});
  }
  static_cast<void>(
      rhizome::CheckTableTail(table.size(), [&](std::uint64_t offset, std::span<std::byte> out) {
        RHIZOME_CHECK(offset <= table.size() && out.size() <= table.size() - offset);
        std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
        return rhizome::Status::Ok();
      }));
  return 0;
}
