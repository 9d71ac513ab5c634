set(engine_modules ${rhizome_storage_modules} ${rhizome_index_modules} ${rhizome_cache_modules})
foreach(module IN LISTS engine_modules)
  if(NOT module STREQUAL precompiled)
    target_precompile_headers(${module} REUSE_FROM ${precompiled})
  endif()
endforeach()

set(engine_objects)
foreach(module IN LISTS engine_modules)
  list(APPEND engine_objects $<TARGET_OBJECTS:${module}>)
endforeach()
# What the engine links; cmake/dependencies.cmake finds it, for programs that link a static librhizome, too.
set(engine_libs RocksDB::rocksdb-shared PkgConfig::URING PkgConfig::ZSTD PkgConfig::BLOSC
  PkgConfig::XXHASH PkgConfig::ISAL PkgConfig::LZMA TBB::tbb ZLIB::ZLIB BZip2::BZip2 fmt::fmt Threads::Threads)

# The headers of the engine: all of them, and those that the command line and the Python module use. Like any
# program, these use the public ones; TOOLS_ONLY lists what they need besides. Those are not installed.
add_library(rhizome_engine_headers INTERFACE)
target_link_libraries(rhizome_engine_headers INTERFACE tl::expected)
target_include_directories(rhizome_engine_headers INTERFACE ${rhizome_storage_roots} ${rhizome_index_roots}
  ${rhizome_cache_roots})
set(tools_only storage/base/bytes_left.h storage/base/check.h storage/base/escaped_text.h storage/base/exceptions.h
  storage/base/hash.h storage/base/logger.h storage/base/mix.h storage/base/mutex.h storage/base/process.h
  storage/base/stopwatch.h storage/options/option.h storage/options/spell_fields.h storage/io/files.h
  storage/io/io_queue.h storage/io/outside.h storage/io/unique_folder.h storage/io/walk_files.h
  storage/section/untrusted_json.h storage/array/array_facts.h storage/array/array_versions.h
  storage/array/chunk_writer.h storage/array/codec.h storage/array/row_reader.h storage/array/type_names.h
  storage/store/build_id.h storage/store/library_versions.h storage/maintenance/upgrade.h storage/remote/rank_calls.h
  index/base/edge_list.h index/base/value_list.h index/base/staleness.h index/partition/partition_input.h
  index/partition/partitioner.h index/homes/home_array.h index/homes/home_partitioner.h index/input/convert.h
  index/input/input_stream.h index/input/npy.h index/input/npy_header.h index/input/number.h
  index/input/table_reader.h index/input/table_writer.h index/generation/graph_builder.h index/generation/reorder.h
  index/input/file_format.h
  index/ingest/column_roles.h index/ingest/edge_pairs.h index/ingest/ingest_graph.h index/ingest/ingest_plan.h index/ingest/input_estimate.h
  index/ingest/row_sources.h index/graph/compaction_watch.h index/graph/edges_by_id.h index/graph/live_vertices.h
  index/check/topology_sections.h cache/lists/direct_neighbors.h cache/lists/neighbor_cache.h
  cache/layout/pass_layout.h cache/layout/pass_lists.h index/graph/edges_of_vertex.h index/graph/edge_table.h
  index/graph/vertex_table.h index/input/timestamp.h index/links/link_file.h
  cache/job/process_memory.h cache/feed/feed_fields.h cache/ranks/rank_plan.h cache/ranks/serve_rate.h
  gnn/options/infer_fields.h gnn/options/train_fields.h)
set(tools_only_root ${PROJECT_BINARY_DIR}/include/tools_only)
file(REMOVE_RECURSE ${tools_only_root})
foreach(header IN LISTS tools_only)
  get_filename_component(folder ${tools_only_root}/${header} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${header} ${tools_only_root}/${header} SYMBOLIC)
endforeach()
add_library(rhizome_public_headers INTERFACE)
target_link_libraries(rhizome_public_headers INTERFACE tl::expected)
target_include_directories(rhizome_public_headers INTERFACE storage/api index/api cache/api gnn/api ${tools_only_root})

# The engine as a static library with all of its symbols, for tests, benches and fuzz targets.
add_library(rhizome_engine STATIC EXCLUDE_FROM_ALL)
target_link_libraries(rhizome_engine PRIVATE ${engine_modules} PUBLIC rhizome_engine_headers ${engine_libs})

# Symbols that a library exports: those of namespace rhizome that are visible (storage/api/rhizome/export.h), and no
# templates of other libraries that are compiled into it.
set(exports ${PROJECT_BINARY_DIR}/exports.map)
file(CONFIGURE OUTPUT ${exports} CONTENT "{
  global: rhizome_*; _ZN7rhizome*; _ZNK7rhizome*; _ZT?N7rhizome*; _ZTh*_N*7rhizome*; _ZTv*_N*7rhizome*;
    _ZGVZN*7rhizome*; _ZZN*7rhizome*;
  local: *;
};
")
function(rhizome_exports target)
  target_link_options(${target} PRIVATE LINKER:--version-script=${exports})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports})
  # A symbol that is hidden by mistake fails the link of the library, not of its users. Sanitizer builds are
  # excepted: the sanitizers' functions are in the program.
  if(NOT RHIZOME_SANITIZE AND NOT RHIZOME_FUZZ)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
endfunction()

# librhizome: the engine, without libtorch and CUDA. Shared or static, as BUILD_SHARED_LIBS says.
add_library(rhizome ${engine_objects})
add_library(rhizome::rhizome ALIAS rhizome)
target_link_libraries(rhizome PRIVATE ${engine_libs} PUBLIC tl::expected)
foreach(layer storage index cache)
  target_sources(rhizome PUBLIC FILE_SET ${layer}_headers TYPE HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/${layer}/api FILES ${rhizome_${layer}_headers})
endforeach()
# The headers need C++20. Before 1.0 the ABI changes with the minor version.
target_compile_features(rhizome PUBLIC cxx_std_20)
set(rhizome_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(rhizome PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${rhizome_soversion}
  LINKER_LANGUAGE CXX ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# It runs code at the end of the process (storage/base/library_threads.cc), so it is never unloaded, nor is a plugin
# that contains it.
set(never_unloaded LINKER:-z,nodelete)
if(BUILD_SHARED_LIBS)
  rhizome_exports(rhizome)
  target_link_options(rhizome PRIVATE ${never_unloaded})
else()
  # Each file that links it contains an engine of its own, beside which no library may bring another.
  set_property(SOURCE storage/store/build_id.cc tools/cli/engine_linkage.cc APPEND PROPERTY
    COMPILE_DEFINITIONS RHIZOME_STATIC)
  target_link_options(rhizome INTERFACE ${never_unloaded})
endif()
