# The table of fuzz targets: name, the parsers whose lines its seeds must reach, functions in them that
# do not read (a regular expression), what it is made of besides fuzz/<name>_fuzz.cc and the engine;
# STORE: it opens whole stores; RUNS: the number of inputs that ctest tries, about 8 s of a processor. Neither a clock
# nor an earlier run changes which inputs these are: the same RHIZOME_TEST_SEED gives the same verdict.
# Builds, tests and seeds follow from it (below), tools/coverage.sh and tools/torture.sh too.
set(fuzz_targets)
set(fuzz_table "")
function(rhizome_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STORE" "EXCEPT;RUNS" "COVERS;SOURCES;LIBS")
  set(target ${name}_fuzz)
  list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
  add_executable(${target} ${PROJECT_SOURCE_DIR}/fuzz/${target}.cc $<TARGET_OBJECTS:rhizome_seeds>
    ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBS} rhizome_engine)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/gnn/api ${models_root} ${tools_root})
  target_compile_options(${target} PRIVATE ${warnings})
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  set(found ${PROJECT_BINARY_DIR}/found/${target})  # what one run of ctest found
  set(seeds ${PROJECT_BINARY_DIR}/seeds/${target})
  # Findings that were mended stay as seeds beside those that the target makes.
  set(kept ${PROJECT_SOURCE_DIR}/fuzz/seeds/${target})
  if(NOT EXISTS ${kept})
    set(kept)
  endif()
  add_test(NAME ${target}_seeds COMMAND sh -c
    "rm -rf '${found}' '${seeds}' && mkdir -p '${found}' && exec \"$0\"" $<TARGET_FILE:${target}>)
  set_tests_properties(${target}_seeds PROPERTIES LABELS fuzz TIMEOUT 600
    ENVIRONMENT RHIZOME_FUZZ_SEEDS=${seeds} FIXTURES_SETUP ${target})
  # Beside an open store, whose threads allocate at any time, each input would be searched for leaks.
  set(leaks 1)
  if(arg_STORE)
    set(leaks 0)
  endif()
  # libFuzzer draws a seed where it is given 0, and prints it.
  add_test(NAME ${target} COMMAND sh -c "exec \"$0\" -seed=\"\${RHIZOME_TEST_SEED:-0}\" \"$@\"" $<TARGET_FILE:${target}>
    -runs=${arg_RUNS} -detect_leaks=${leaks} -timeout=100 -rss_limit_mb=1024 -print_final_stats=1
    ${found} ${seeds} ${kept})
  set_tests_properties(${target} PROPERTIES LABELS fuzz TIMEOUT 1800 FIXTURES_REQUIRED ${target})
  list(JOIN arg_COVERS "," covers)
  set(fuzz_table "${fuzz_table}${target}\t${leaks}\t${covers}\t${arg_EXCEPT}\n" PARENT_SCOPE)
endfunction()

add_library(rhizome_seeds OBJECT ${PROJECT_SOURCE_DIR}/fuzz/seeds.cc)
target_compile_options(rhizome_seeds PRIVATE ${warnings})
find_package(GTest 1.12 REQUIRED)
# gnn/models has files that need no libtorch.
rhizome_include_root(gnn/models models_root)
rhizome_include_root(tools tools_root)

# A disk in memory that holds whole stores.
add_library(rhizome_fake_disk OBJECT ${PROJECT_SOURCE_DIR}/tests/testing/fake_file_crash.cc
  ${PROJECT_SOURCE_DIR}/tests/testing/fake_file_handles.cc
  ${PROJECT_SOURCE_DIR}/tests/testing/fake_file_system.cc
  ${PROJECT_SOURCE_DIR}/tests/reliability/harness/rocks_disk.cc)
target_link_libraries(rhizome_fake_disk PUBLIC rhizome_engine RocksDB::rocksdb-shared fmt::fmt)
target_include_directories(rhizome_fake_disk PRIVATE ${PROJECT_SOURCE_DIR}/tests)
set(disk rhizome_fake_disk)
set(json nlohmann_json::nlohmann_json fmt::fmt)

# --- Files of a store ---
rhizome_fuzz(manifest RUNS 88000 COVERS storage/array/manifest.cc
  EXCEPT "ArrayLayoutName|ArrayEntry")
rhizome_fuzz(zarr_json RUNS 5700 COVERS storage/array/zarr_json.cc storage/array/zarr_format.cc)
rhizome_fuzz(section_file RUNS 26000 COVERS storage/section/section_format.cc
  EXCEPT "CheckSectionEnds")
rhizome_fuzz(partition RUNS 2800 COVERS index/topology/adjacency_parser.cc index/topology/adjacency_parser_lists.cc
  index/topology/compressed_list.cc index/topology/blocked_offsets.cc index/topology/patched_column.cc
  EXCEPT "CheckInEdgeRange|AppendCompressed|SetBits|Write|UpperBound"
  SOURCES tests/testing/testing.cc LIBS GTest::gtest TBB::tbb)
rhizome_fuzz(vertex_ids RUNS 48000 COVERS index/topology/vertex_ids.cc EXCEPT "Write|SortIds|Dense")
rhizome_fuzz(vertex_order RUNS 12000 COVERS index/topology/vertex_order.cc
  EXCEPT "Write|Segments.*OrderInput|IsGrouped|GroupAt|TypeOfVertex|MakeSegments")
rhizome_fuzz(chunk RUNS 540000 COVERS storage/array/codec.cc storage/base/nonzero.cc
  EXCEPT "Compress|CheckEncodable|EncodeChunk|CodecName|ParseCodec|Pack|MaxNonzero")
rhizome_fuzz(shard_index RUNS 48000 COVERS storage/array/shard_index.cc
  EXCEPT "ReadShardIndex")
rhizome_fuzz(shard_file RUNS 15000 COVERS storage/array/shard_file.cc)
rhizome_fuzz(delta_record RUNS 77000 COVERS index/delta/delta_record.cc)
rhizome_fuzz(catalog_log RUNS 38000 COVERS storage/catalog/catalog_log.cc
  EXCEPT "SyncMark")
rhizome_fuzz(catalog_table RUNS 540000 COVERS storage/catalog/catalog_table.cc LIBS RocksDB::rocksdb-shared)
rhizome_fuzz(catalog_seal RUNS 28000 COVERS storage/catalog/catalog_seal.cc LIBS ${disk})
rhizome_fuzz(backup_record RUNS 57000 COVERS storage/maintenance/backup_format.cc
  EXCEPT "AppendDeltaEntry|BackupFilePath")
rhizome_fuzz(job_log RUNS 8500 COVERS storage/section/job_log.cc LIBS ${disk})
rhizome_fuzz(minibatch RUNS 5000 COVERS cache/feed/superbatch.cc
  EXCEPT "Superbatch|ReadMinibatch|Append|Encode|Code|Lengths|ZerosAtTheEnd|BitsOf|HasPairs")
rhizome_fuzz(message_header RUNS 50000 COVERS storage/remote/message_header.cc)

# --- Files of users ---
rhizome_fuzz(npy RUNS 84000 COVERS index/input/npy.cc index/input/npy_dict.cc EXCEPT "NpyWriter|EncodeNpyHeader")
rhizome_fuzz(zarr_source RUNS 1700 COVERS storage/array/zarr_source.cc storage/array/zarr_source_format.cc
  LIBS ZLIB::ZLIB)
rhizome_fuzz(input_stream RUNS 5400 COVERS index/input/input_stream.cc index/input/decoder.cc
  index/input/bzip2_decoder.cc index/input/xz_decoder.cc EXCEPT "Standard|LargeWindow|DecoderWithoutMemory"
  LIBS ZLIB::ZLIB PkgConfig::ZSTD BZip2::BZip2 PkgConfig::LZMA)
rhizome_fuzz(table_reader RUNS 1800 COVERS index/input/table_reader.cc)
rhizome_fuzz(input_files RUNS 1600 COVERS index/ingest/edge_file.cc index/ingest/node_file.cc
  index/ingest/node_column.cc index/ingest/array_file.cc index/ingest/text_rows.cc
  EXCEPT "Spill|Spool|HasWeights|HasEdgeTypes|BindArray|memory_bytes|NodeArrayNames|CheckArrayColumns|CheckEdgeFiles|AttributeBytes")
rhizome_fuzz(update_file RUNS 1000 STORE COVERS tools/verbs/update_file.cc tools/verbs/change_marks.cc
  tools/import/elements.cc
  EXCEPT "ChangeMarks|MarkJson|AddState|Words|PlaceOf|HalfTo|VisitElement|NumberJson|ElementAt|ToFloats|ToJson|ReadVertexRow|Labels"
  SOURCES tools/verbs/update_file.cc tools/verbs/change_marks.cc tools/import/elements.cc
  tools/import/stored_texts.cc
  LIBS ${disk} CLI11::CLI11 ${json})
rhizome_fuzz(safetensors RUNS 4600 COVERS cache/job/safetensors.cc gnn/models/model_shape.cc
  gnn/models/shape_types.cc
  EXCEPT "Load|Save|ToHex|EncodeSafetensors|NameShapeTypes|NumbersOfTypes"
  SOURCES gnn/models/model_shape.cc gnn/models/model_options.cc gnn/models/shape_types.cc
  LIBS fmt::fmt ${json})
rhizome_fuzz(command_line RUNS 145000 COVERS index/input/number.cc index/topology/external_id.cc
  tools/cli/flag_values.cc
  EXCEPT "ToString"
  SOURCES tools/cli/flag_values.cc LIBS fmt::fmt)

# --- The engine: operations against a model ---
rhizome_fuzz(sampler RUNS 70 STORE)
rhizome_fuzz(graph_api RUNS 20 STORE SOURCES tests/testing/testing.cc
  LIBS ${disk} GTest::gtest)

# Holds a mistake that must be found.
rhizome_fuzz(canary RUNS 100000)
set_tests_properties(canary_fuzz PROPERTIES WILL_FAIL ON)
file(WRITE ${PROJECT_BINARY_DIR}/fuzz_targets.tsv "${fuzz_table}")
