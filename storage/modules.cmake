# Half of the compile time of an engine file goes into the headers of the standard library and of fmt.
# They are precompiled once, by storage, for the whole engine.
set(standard_headers <algorithm> <array> <atomic> <bit> <chrono> <cmath> <condition_variable> <cstdint>
  <cstring> <deque> <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set>
  <span> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <tl/expected.hpp>)

rhizome_layer(storage
  MODULES base io section catalog array store care remote
  HEADERS array_change.h array_facts.h array_versions.h backup.h build_id.h chunk_array.h codec.h damage.h dtype.h export.h
    file_system.h hash.h io_queue.h job_control.h library_versions.h local_transport.h logger.h manifest.h metrics.h
    mutex.h outside.h process.h rank_calls.h read_cost.h repair.h result.h row_reader.h status.h store.h store_id.h
    store_options.h store_point.h transport.h types.h unique_folder.h upgrade.h variant.h verify.h walk_files.h
  BATCH 8
  PUBLIC_LIBS tl::expected
  PRIVATE_LIBS RocksDB::rocksdb-shared PkgConfig::URING PkgConfig::ZSTD PkgConfig::BLOSC
    PkgConfig::XXHASH PkgConfig::ISAL ZLIB::ZLIB fmt::fmt nlohmann_json::nlohmann_json
    Threads::Threads)
list(GET rhizome_storage_modules 0 precompiled)
target_precompile_headers(${precompiled} PRIVATE ${standard_headers})
# The two files that contain the version.
set_source_files_properties(storage/store/build_id.cc gnn/door/entry.cc PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON
  COMPILE_DEFINITIONS RHIZOME_VERSION="${PROJECT_VERSION}")
