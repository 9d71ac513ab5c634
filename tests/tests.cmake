# --- Tests: a file that exists is a test that runs ------------------------------------------------
# tests/<layer>/*_test.cc and tests/<layer>/<module>/*_test.cc are `quick`, *_ci_test.cc `ci`, *_long_test.cc `long`; tests/testing/
# holds what they share. tests/tools/*/*_test.sh and tests/python/*_test.py run the built binary.
if(RHIZOME_TESTS)
  find_package(GTest 1.12)
  if(NOT GTest_FOUND)
    message(STATUS "GoogleTest not found: tests are left out (tools/install_deps.sh --tests)")
    set(RHIZOME_TESTS OFF)
  endif()
endif()
if(RHIZOME_TESTS)
  enable_testing()
  include(GoogleTest)
  # Code that tests share is compiled once: tests/testing/, and the harness in tests/reliability/.
  function(rhizome_shared_tests name folder)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cc
      ${PROJECT_SOURCE_DIR}/tests/${folder}/*/*.cc)
    list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
    add_library(${name} OBJECT EXCLUDE_FROM_ALL)
    rhizome_sources(${name} 24 ${sources})
    target_link_libraries(${name} PRIVATE rhizome_engine RocksDB::rocksdb-shared fmt::fmt
      nlohmann_json::nlohmann_json Threads::Threads GTest::gtest GTest::gmock)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_options(${name} PRIVATE ${warnings} ${optimise_tests})
  endfunction()
  rhizome_shared_tests(rhizome_testing testing)
  # Only one object contains the path of this checkout, so that other checkouts find the rest in the compiler cache.
  set_source_files_properties(tests/testing/golden.cc PROPERTIES COMPILE_DEFINITIONS
    RHIZOME_TESTS_FOLDER="${PROJECT_SOURCE_DIR}/tests")
  rhizome_shared_tests(rhizome_harness reliability)
  # Its functions replace those of the system (allocation_hook.cc, thread_hook.cc), as do those of the modules
  # kill_at and fail_at: they must be visible to other libraries.
  set_target_properties(rhizome_harness PROPERTIES CXX_VISIBILITY_PRESET default)
  add_library(rhizome_engine_begins STATIC EXCLUDE_FROM_ALL tests/engine_begins.cc)
  add_custom_target(long_tests)
  # Tests with the label `reliability` write their counts to a folder. gtest_discover_tests accepts no list, and
  # therefore neither a second label nor a second variable.
  set(counts RHIZOME_COUNTS=${PROJECT_BINARY_DIR}/reliability_counts)
  function(rhizome_counts target tier)
    set(file ${PROJECT_BINARY_DIR}/${target}_counts.cmake)
    file(WRITE ${file} "if(${target}_TESTS)\n"
      "  set_tests_properties(\${${target}_TESTS} PROPERTIES LABELS \"${tier};reliability\"\n"
      "    ENVIRONMENT \"OMP_WAIT_POLICY=PASSIVE;${counts}\")\n"
      "  list(APPEND reliability_tests \${${target}_TESTS})\n"
      # These tests use every processor. They take most of the slots of tools/test.sh (three per processor), so
      # that two of them do not run at once.
      "  foreach(test IN LISTS ${target}_TESTS)\n"
      "    if(test MATCHES \"Crash|Damage|Fault|Allocation|Mutant|Upkeep\")\n"
      "      set_tests_properties(\${test} PROPERTIES PROCESSORS 4)\n"
      "    endif()\n"
      "  endforeach()\n"
      "endif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
  endfunction()
  # Runs the cases of a binary in a few processes: one process for each of two thousand cases takes minutes, and
  # more with libtorch to load. Results are written to reports/, where tools/report_tests.py counts them.
  set(reports ${PROJECT_BINARY_DIR}/reports)
  function(rhizome_shards target labels shards)
    math(EXPR last "${shards} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${target}.${shard} COMMAND ${target} --gtest_output=xml:${reports}/${target}.${shard}.xml)
      set_tests_properties(${target}.${shard} PROPERTIES LABELS "${labels}" TIMEOUT 3600 ENVIRONMENT
        "OMP_WAIT_POLICY=PASSIVE;GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endfunction()
  # Groups of tests with a label of their own: layer, label, files. `ctest -L models`: tests that every model kind
  # must pass; `-L fullgraph`: training on the full graph; `-L remote`: ranks; `-L typed`: graphs with types;
  # `-L links`: scores, ranks and decoders of links; tables that learn.
  set(models_group gnn models "/gnn/models/|/gnn/infer/network_test")
  set(spill_group cache fullgraph "/cache/full_graph/|/cache/ranges/")
  set(full_group gnn fullgraph "/gnn/full_graph/|/gnn/passes/")
  set(cuda_group cuda cuda "/tests/cuda/")
  set(transport_group storage remote "/storage/remote/")
  set(ranks_group cache remote "/cache/ranks/")
  set(rank_training_group gnn remote "/gnn/ranks/")
  set(typed_cache_group cache typed "/cache/feed/typed_")
  set(typed_storage_group storage typed "/storage/[a-z]+/typed_")
  set(typed_index_group index typed "/index/[a-z]+/typed_")
  set(typed_gnn_group gnn typed "/gnn/infer/typed_|/gnn/train/typed_")
  set(links_group gnn links "/gnn/links/|/gnn/tables/|/gnn/link_train/|/gnn/train/learned_")
  set(links_cache_group cache links "/cache/tables/|/cache/feed/link_")
  set(grouped)
  foreach(group models spill full cuda transport ranks rank_training typed_cache typed_storage typed_index typed_gnn links
      links_cache)
    list(GET ${group}_group 2 members)
    list(APPEND grouped ${members})
  endforeach()
  string(JOIN "|" grouped ${grouped})
  function(rhizome_tests group)
    set(layer ${group})
    set(label)
    if(DEFINED ${group}_group)
      list(GET ${group}_group 0 layer)
      list(GET ${group}_group 1 label)
      list(GET ${group}_group 2 members)
    endif()
    file(GLOB all CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${layer}/*_test.cc
      ${PROJECT_SOURCE_DIR}/tests/${layer}/*/*_test.cc)
    list(FILTER all EXCLUDE REGEX "/tests/reliability/mutants/")
    if(label)
      list(FILTER all INCLUDE REGEX "${members}")
    else()
      list(FILTER all EXCLUDE REGEX "${grouped}")
    endif()
    set(shared $<TARGET_OBJECTS:rhizome_testing>)
    if(group STREQUAL reliability)
      list(APPEND shared $<TARGET_OBJECTS:rhizome_harness>)
    endif()
    foreach(tier quick ci long)
      set(sources ${all})
      if(tier STREQUAL quick)
        list(FILTER sources EXCLUDE REGEX "_(ci|long)_test\\.cc$")
      else()
        list(FILTER sources INCLUDE REGEX "_${tier}_test\\.cc$")
      endif()
      if(NOT sources)
        continue()
      endif()
      set(target rhizome_${group}_${tier}_tests)
      add_executable(${target} ${shared})
      rhizome_sources(${target} 24 ${sources})
      # The engine last: see tests/engine_begins.cc.
      target_link_libraries(${target} PRIVATE GTest::gtest_main GTest::gmock GTest::gtest ${ARGN}
        rhizome_engine_begins rhizome_engine fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
      target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
      target_compile_options(${target} PRIVATE ${warnings} ${optimise_tests})
      # Neither .ci/run nor a plain build needs these: built on request.
      if(tier STREQUAL long)
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
        add_dependencies(long_tests ${target})
      elseif(group STREQUAL reliability AND RHIZOME_SANITIZE)
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
      endif()
      set(limit 3600)
      if(group STREQUAL reliability)
        gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST
          PROPERTIES LABELS ${tier} TIMEOUT ${limit} ENVIRONMENT OMP_WAIT_POLICY=PASSIVE)
        if(NOT tier STREQUAL long)
          rhizome_counts(${target} ${tier})
        endif()
      else()
        list(LENGTH sources files)
        math(EXPR shards "(${files} + 5) / 6")
        if(tier STREQUAL ci)  # cases of seconds, which one process would take minutes for
          math(EXPR shards "${files} * 2")
        endif()
        set(labels ${tier} ${label})
        if(group STREQUAL storage AND tier STREQUAL ci)  # crashes and recoveries
          list(APPEND labels reliability)
        endif()
        rhizome_shards(${target} "${labels}" ${shards})
      endif()
    endforeach()
  endfunction()
  rhizome_tests(storage RocksDB::rocksdb-shared PkgConfig::ZSTD PkgConfig::BLOSC)
  rhizome_tests(index TBB::tbb)
  rhizome_tests(typed_storage)
  rhizome_tests(typed_index)
  rhizome_tests(cache)
  rhizome_tests(typed_cache)
  rhizome_tests(links_cache)
  rhizome_tests(spill)
  rhizome_tests(transport)
  rhizome_tests(ranks)
  rhizome_tests(reliability RocksDB::rocksdb-shared PkgConfig::XXHASH ZLIB::ZLIB TBB::tbb)
  if(NOT RHIZOME_SANITIZE)
    rhizome_tests(tools ${bench_modules} ${tool_modules})
    # Threads of a simulated device have stacks that the sanitizers do not know.
    rhizome_tests(cuda rhizome_cuda ${cuda_runtime})
    # The kernels' macros must be defined before any kernel is included.
    target_compile_options(rhizome_cuda_quick_tests PRIVATE -ffp-contract=off ${optimise_tools}
      -include ${PROJECT_SOURCE_DIR}/tests/cuda/simulator.h)

    # The engine with seeded mistakes (storage/base/mutant.h), which the harness must detect. Files that contain one
    # are compiled a second time; nothing of this is installed.
    set(mutated_names)
    set(mutated_objects)
    set(sound_objects)
    foreach(module IN LISTS rhizome_storage_modules rhizome_index_modules)
      get_target_property(sources ${module} SOURCES)
      set(mutated)
      foreach(source IN LISTS sources)
        rhizome_is_mutable(${source} mutable)
        if(mutable)
          list(APPEND mutated ${source})
          file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
          string(REGEX REPLACE ".*/batches/" "batches/" name ${name})
          list(APPEND mutated_names "/${name}")
        endif()
      endforeach()
      if(NOT mutated)
        continue()
      endif()
      get_target_property(libraries ${module} LINK_LIBRARIES)
      get_target_property(includes ${module} INCLUDE_DIRECTORIES)
      add_library(${module}_mutated OBJECT ${mutated})
      target_link_libraries(${module}_mutated PRIVATE ${libraries})
      target_precompile_headers(${module}_mutated REUSE_FROM ${precompiled})
      target_include_directories(${module}_mutated SYSTEM PRIVATE ${includes})
      target_compile_definitions(${module}_mutated PRIVATE RHIZOME_MUTANTS)
      target_compile_options(${module}_mutated PRIVATE ${optimise_tests})
      list(APPEND mutated_objects $<TARGET_OBJECTS:${module}_mutated>)
    endforeach()
    list(JOIN mutated_names "|" mutated_names)
    string(REPLACE "." "\\." mutated_names "${mutated_names}")
    foreach(module IN LISTS rhizome_storage_modules rhizome_index_modules)
      list(APPEND sound_objects $<FILTER:$<TARGET_OBJECTS:${module}>,EXCLUDE,${mutated_names}>)
    endforeach()
    add_executable(rhizome_mutant_tests tests/reliability/mutants/mutant_test.cc
      $<TARGET_OBJECTS:rhizome_testing> $<TARGET_OBJECTS:rhizome_harness>
      $<TARGET_OBJECTS:rhizome_engine_begins> ${sound_objects} ${mutated_objects})
    target_link_libraries(rhizome_mutant_tests PRIVATE tl::expected ${engine_libs}
      nlohmann_json::nlohmann_json GTest::gtest GTest::gmock GTest::gtest_main)
    target_include_directories(rhizome_mutant_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests
      ${rhizome_storage_roots} ${rhizome_index_roots})
    target_compile_definitions(rhizome_mutant_tests PRIVATE RHIZOME_MUTANTS)
    target_compile_options(rhizome_mutant_tests PRIVATE ${warnings})
    gtest_discover_tests(rhizome_mutant_tests DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS ci TIMEOUT 3600)
    rhizome_counts(rhizome_mutant_tests ci)
  endif()
  if(RHIZOME_GNN)
    rhizome_tests(gnn rhizome_gnn_engine)
    rhizome_tests(models rhizome_gnn_engine)
    rhizome_tests(full rhizome_gnn_engine)
    rhizome_tests(rank_training rhizome_gnn_engine)
    rhizome_tests(typed_gnn rhizome_gnn_engine)
    rhizome_tests(links rhizome_gnn_engine)
  endif()

  # Scripts that use the built binary as a user would; *_ci_test and *_long_test name their tier.
  file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*/*_test.sh
    ${PROJECT_SOURCE_DIR}/tests/python/*_test.py)
  if(RHIZOME_SANITIZE)
    set(scripts)
  else()
    # Preloaded by the scripts that kill the binary at a chosen call.
    add_library(rhizome_kill_at MODULE tests/tools/faults/kill_at.cc)
    target_compile_options(rhizome_kill_at PRIVATE ${warnings})
    set_target_properties(rhizome_kill_at PROPERTIES CXX_VISIBILITY_PRESET default)
    # Preloaded by the script that makes calls fail.
    add_library(rhizome_fail_at MODULE tests/tools/faults/fail_at.cc)
    target_compile_options(rhizome_fail_at PRIVATE ${warnings})
    set_target_properties(rhizome_fail_at PROPERTIES CXX_VISIBILITY_PRESET default)
    # Changes a catalogue through RocksDB's own format.
    add_executable(rhizome_mutate_catalog tests/tools/faults/mutate_catalog.cc
      tests/reliability/catalog/catalog_mutator.cc)
    target_link_libraries(rhizome_mutate_catalog PRIVATE rhizome_engine PkgConfig::XXHASH)
    target_include_directories(rhizome_mutate_catalog PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_options(rhizome_mutate_catalog PRIVATE ${warnings})
    # A rank of a job that exchanges messages with all others until one is lost.
    if(TARGET rhizome_mpi_module)
      add_executable(rhizome_rank_chat tests/tools/faults/rank_chat.cc)
      target_link_libraries(rhizome_rank_chat PRIVATE rhizome_tools_cli rhizome)
      target_compile_options(rhizome_rank_chat PRIVATE ${warnings})
      set_target_properties(rhizome_rank_chat PROPERTIES BUILD_RPATH "${PROJECT_BINARY_DIR}/lib")
      add_dependencies(rhizome_rank_chat rhizome_mpi_module)
    endif()
    # Adds latency to the links between network namespaces.
    add_executable(rhizome_slow_link tests/tools/faults/slow_link.cc)
    target_compile_options(rhizome_slow_link PRIVATE ${warnings})
    # Runs a command where io_uring and O_DIRECT are refused.
    add_executable(rhizome_refusing tests/tools/faults/refusing.cc)
    target_compile_options(rhizome_refusing PRIVATE ${warnings})
  endif()
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    set(tier quick)
    set(limit 3600)
    if(name MATCHES "_(ci|long)_test$")
      set(tier ${CMAKE_MATCH_1})
    endif()
    if(tier STREQUAL long)
      set(limit 7200)  # wheel_long_test compiles all of the engine
    endif()
    set(command ${script})
    if(script MATCHES "\\.py$")
      set(command ${PROJECT_SOURCE_DIR}/build/venv/bin/python ${script})
    endif()
    set(labels ${tier})
    if(name MATCHES "^full_graph_")
      list(APPEND labels fullgraph)
    elseif(name MATCHES "^models_")
      list(APPEND labels models)
    elseif(name MATCHES "^typed_")
      list(APPEND labels typed)
    elseif(name MATCHES "^links_")
      list(APPEND labels links)
    endif()
    add_test(NAME ${name} COMMAND ${command})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${limit} SKIP_RETURN_CODE 77 ENVIRONMENT
      "RHIZOME=${PROJECT_BINARY_DIR}/bin/rhizome;RHIZOME_BUILD=${PROJECT_BINARY_DIR};RHIZOME_SOURCE=${PROJECT_SOURCE_DIR};${counts}")
  endforeach()
  if(NOT RHIZOME_SANITIZE)
    # These read the sources: their format, the order of includes, the public headers.
    add_test(NAME tidy_test COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/tidy_test.py
      --build ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    add_test(NAME tidy_self_test COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/tidy_test.py --self-test)
    set_tests_properties(tidy_test tidy_self_test PROPERTIES LABELS quick TIMEOUT 3600)
    set(reliability_scripts refusing_ci_test fail_ci_test hostile_ci_test)
    set_tests_properties(${reliability_scripts} PROPERTIES LABELS "ci;reliability")
    set_tests_properties(models_ci_test PROPERTIES LABELS "ci;models")
    set_tests_properties(cuda_registers_ci_test PROPERTIES LABELS "ci;cuda")
    # Runs last: compares what the others have counted with what is promised.
    set(table ${PROJECT_BINARY_DIR}/reliability_table.cmake)
    file(WRITE ${table} "add_test(reliability_table"
      " \"${PROJECT_SOURCE_DIR}/tests/reliability/harness/counts_table.sh\")\n"
      "set_tests_properties(reliability_table PROPERTIES LABELS \"ci;reliability\" ENVIRONMENT"
      " \"${counts}\" DEPENDS \"\${reliability_tests};${reliability_scripts}\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${table})
  endif()
endif()
