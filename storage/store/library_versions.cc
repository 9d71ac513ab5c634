#include "storage/store/library_versions.h"

#include <blosc.h>
#include <bzlib.h>
#include <fmt/format.h>
#include <lzma.h>
#include <rocksdb/version.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include "storage/store/store_files.h"

namespace rhizome {

std::vector<std::pair<std::string, std::string>> LibraryVersions() {
  const unsigned xxhash = XXH_versionNumber();
  return {{"rocksdb", rocksdb::GetRocksVersionAsString(true)},
          {"zstd", ZSTD_versionString()},
          {"blosc", blosc_get_version_string()},
          {"xxhash", fmt::format("{}.{}.{}", xxhash / 10000, xxhash / 100 % 100, xxhash % 100)},
          {"zlib", zlibVersion()},
          {"bzip2", BZ2_bzlibVersion()},
          {"liblzma", lzma_version_string()}};
}

std::uint64_t StoreFormatVersion() { return kStoreFormatVersion; }

}  // namespace rhizome
