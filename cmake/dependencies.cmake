# --- Dependencies, each with the oldest version that is tested (docs/BUILDING.md says what each is for) ---
# What librhizome links. A program that links a static librhizome needs it, too: install.cmake writes these lists into
# rhizomeConfig.cmake and rhizome.pc.
set(linked_packages "RocksDB 7.8 CONFIG" "TBB 2021.8 CONFIG" "fmt 9.1" ZLIB BZip2 Threads)
set(linked_modules "URING liburing>=2.3" "ZSTD libzstd>=1.5" "LZMA liblzma>=5.4" "BLOSC blosc>=1.21" "XXHASH libxxhash>=0.8"
  "ISAL libisal>=2.30")
foreach(package IN LISTS linked_packages)
  separate_arguments(package)
  find_package(${package} REQUIRED)
endforeach()
find_package(PkgConfig REQUIRED)
foreach(module IN LISTS linked_modules)
  separate_arguments(module)
  list(POP_FRONT module name)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
endforeach()
# Only their headers are used.
find_package(Boost 1.74 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(FAST_FLOAT_INCLUDE fast_float/fast_float.h REQUIRED)
if(RHIZOME_CLI OR RHIZOME_FUZZ)
  find_package(CLI11 2.1 REQUIRED)
endif()
