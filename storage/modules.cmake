# Half of the compile time of an engine file goes into the headers of the standard library and of fmt.
# They are precompiled once, by storage, for the whole engine.
set(standard_headers <algorithm> <array> <atomic> <bit> <chrono> <cmath> <condition_variable> <cstdint>
  <cstring> <deque> <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set>
  <span> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <tl/expected.hpp>)

rhizome_layer(storage
  MODULES base options io section catalog array store maintenance remote
  DESCRIPTION "bytes, files, commits; no graph"
  BATCH 8
  PUBLIC_LIBS tl::expected
  PRIVATE_LIBS RocksDB::rocksdb-shared PkgConfig::URING PkgConfig::ZSTD PkgConfig::BLOSC
    PkgConfig::XXHASH PkgConfig::ISAL PkgConfig::LZMA ZLIB::ZLIB BZip2::BZip2 fmt::fmt nlohmann_json::nlohmann_json
    Threads::Threads)
list(GET rhizome_storage_modules 0 precompiled)
target_precompile_headers(${precompiled} PRIVATE ${standard_headers})
# The two files that contain the version.
set_source_files_properties(storage/store/build_id.cc gnn/entry/entry.cc PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON
  COMPILE_DEFINITIONS RHIZOME_VERSION="${PROJECT_VERSION}")
