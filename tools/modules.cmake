# --- The command line ---------------------------------------------------------------------------
# Everything except main.cc is in object libraries, so that tests can link generators, importers and parsers.
# Sanitizer builds are for the engine and leave it out.
if(NOT RHIZOME_SANITIZE)
  pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1>=0.2)
  # Modules work as those of a layer; bench and mpi are beside them.
  # Layer tools: modules cli output import verbs; the command line; also bench and mpi
  function(rhizome_tools_module module before)
    string(REPLACE / _ target rhizome_tools_${module})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/${module}/*.cc)
    list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
    add_library(${target} OBJECT)
    rhizome_sources(${target} 12 ${sources})
    target_link_libraries(${target} PUBLIC ${before})
    rhizome_include_root(tools/${module} root)
    target_include_directories(${target} PUBLIC ${root})
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror ${optimise_tools})
  endfunction()
  set(before rhizome_public_headers RocksDB::rocksdb-shared CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB
    PkgConfig::YAML Threads::Threads ${CMAKE_DL_LIBS})
  set(tool_modules)
  foreach(module cli output import verbs)
    rhizome_tools_module(${module} "${before}")
    set(before rhizome_tools_${module})
    list(APPEND tool_modules ${before})
  endforeach()
  set_source_files_properties(tools/cli/gnn_library.cc PROPERTIES COMPILE_DEFINITIONS RHIZOME_SOVERSION="${rhizome_soversion}")
  add_executable(rhizome_cli tools/verbs/main.cc)
  set_target_properties(rhizome_cli PROPERTIES OUTPUT_NAME rhizome
    BUILD_RPATH "${PROJECT_BINARY_DIR}/lib" INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  target_link_libraries(rhizome_cli PRIVATE ${tool_modules} rhizome)
  target_compile_options(rhizome_cli PRIVATE -Wall -Wextra -Werror)
  install(TARGETS rhizome_cli)

  # Ranks that are processes: a module that the command line loads when an MPI launcher has started it as one
  # of several processes. It alone links MPI, and uses only functions of MPI 3.
  if(RHIZOME_MPI)
    set(MPI_CXX_SKIP_MPICXX ON)
    find_package(MPI 3.0 COMPONENTS CXX)
  endif()
  if(MPI_CXX_FOUND)
    set(mpi_libraries ${MPI_CXX_LIBRARIES})
    list(FILTER mpi_libraries EXCLUDE REGEX "mpi_cxx")  # bindings that are not used
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/mpi/*.cc)
    add_library(rhizome_mpi_module MODULE ${sources})
    set_source_files_properties(tools/mpi/mpi_transport.cc PROPERTIES
      COMPILE_DEFINITIONS RHIZOME_VERSION="${PROJECT_VERSION}")
    target_compile_options(rhizome_mpi_module PRIVATE -Wall -Wextra -Werror)
    target_compile_definitions(rhizome_mpi_module PRIVATE ${MPI_CXX_COMPILE_DEFINITIONS})
    rhizome_include_root(tools/mpi root)
    rhizome_include_root(tools/cli cli_root)
    target_include_directories(rhizome_mpi_module PRIVATE ${root} ${cli_root})
    target_include_directories(rhizome_mpi_module SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
    target_link_libraries(rhizome_mpi_module PRIVATE rhizome rhizome_engine_headers ${mpi_libraries}
      fmt::fmt Threads::Threads)
    rhizome_exports(rhizome_mpi_module)
    set_target_properties(rhizome_mpi_module PROPERTIES OUTPUT_NAME rhizome_mpi
      BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
    install(TARGETS rhizome_mpi_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  elseif(RHIZOME_MPI)
    message(STATUS "No MPI found: ranks are threads of one process (tools/install_deps.sh --mpi)")
  endif()

  # The benchmarks, which `rhizome bench` executes; without tests they are built on demand only. They also
  # measure internal parts, and therefore link the whole engine instead of librhizome. One main is linked into
  # two binaries; rhizome-bench-gnn adds the benches that need libtorch.
  set(before rhizome_tools_import rhizome_engine_headers)
  set(bench_modules)
  foreach(module harness store graph cache)
    rhizome_tools_module(bench/${module} "${before}")
    set(before rhizome_tools_bench_${module})
    list(APPEND bench_modules ${before})
  endforeach()
  function(rhizome_bench_program name)
    string(REPLACE - _ target ${name})
    add_executable(${target} tools/bench/main.cc tools/bench/benches.cc)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(${target} PRIVATE ${bench_modules} rhizome_tools_import rhizome_tools_cli
      ${ARGN} rhizome_engine)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
  endfunction()
  rhizome_bench_program(rhizome-bench)
  add_dependencies(rhizome_bench rhizome_cli)
  set(bench_targets rhizome_bench)
  if(RHIZOME_GNN)
    rhizome_tools_module(bench/gnn "${before}")
    target_link_libraries(rhizome_tools_bench_gnn PRIVATE rhizome_torch fmt::fmt-header-only)
    target_include_directories(rhizome_tools_bench_gnn PRIVATE ${rhizome_gnn_roots} ${rhizome_cuda_roots})
    rhizome_bench_program(rhizome-bench-gnn rhizome_tools_bench_gnn rhizome_gnn_engine)
    set_target_properties(rhizome_bench_gnn PROPERTIES
      BUILD_RPATH "${torch_rpath}" INSTALL_RPATH "${installed_torch_rpath}")
    add_dependencies(rhizome_bench rhizome_bench_gnn rhizome_gnn_shared)
    list(APPEND bench_targets rhizome_bench_gnn)
    set(bench_gnn_module rhizome_tools_bench_gnn)
  endif()
  if(NOT RHIZOME_TESTS)
    set_target_properties(${bench_modules} ${bench_gnn_module} ${bench_targets} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  install(TARGETS ${bench_targets} OPTIONAL)
endif()
