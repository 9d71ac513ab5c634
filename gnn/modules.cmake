# --- The GNN layer ------------------------------------------------------------------------------
set(gnn_modules options ops models infer passes train ranks full_graph links tables link_train entry)
# libtorch from a wheel that was installed without its CUDA dependencies. The target is our own, because the
# wheel's CMake package requires libtorch_cuda.
set(torch_folder ${RHIZOME_TORCH})
if(RHIZOME_GNN AND NOT torch_folder)
  file(GLOB torch_folder ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/torch)
endif()
if(RHIZOME_GNN AND NOT torch_folder)
  execute_process(COMMAND python3 -c
    "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(RHIZOME_GNN AND NOT EXISTS "${torch_folder}/include/torch")
  set(kind WARNING)
  if(SKBUILD)
    set(kind FATAL_ERROR)
  endif()
  message(${kind} "libtorch not found: librhizome_gnn and the verbs train, infer are left out. "
    "tools/install_deps.sh installs it; -DRHIZOME_TORCH=... names another place.")
  set(RHIZOME_GNN OFF)
endif()
if(RHIZOME_GNN)
  file(GLOB torch_runtime ${torch_folder}/../nvidia/cu13/lib ${torch_folder}/../nvidia/*/lib)
  add_library(rhizome_torch INTERFACE)
  target_include_directories(rhizome_torch SYSTEM INTERFACE ${torch_folder}/include
    ${torch_folder}/include/torch/csrc/api/include)
  target_link_libraries(rhizome_torch INTERFACE ${torch_folder}/lib/libtorch_cpu.so
    ${torch_folder}/lib/libc10.so)
  set(torch_rpath ${torch_folder}/lib ${torch_runtime})
  foreach(folder IN LISTS torch_runtime)
    target_link_options(rhizome_torch INTERFACE -Wl,-rpath-link,${folder})
  endforeach()

  # The wheel contains its own fmt headers, which do not fit the system's libfmt. This include root comes before them.
  get_target_property(fmt_headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  set(fmt_root ${PROJECT_BINARY_DIR}/include/fmt)
  file(MAKE_DIRECTORY ${fmt_root})
  file(CREATE_LINK ${fmt_headers}/fmt ${fmt_root}/fmt SYMBOLIC)
  add_library(rhizome_fmt INTERFACE)
  target_include_directories(rhizome_fmt INTERFACE ${fmt_root})
  target_link_libraries(rhizome_fmt INTERFACE fmt::fmt)
  rhizome_layer(gnn
    MODULES ${gnn_modules}
    DESCRIPTION "training and inference; libtorch"
    USES storage index cache cuda
    BATCH 20
    PRIVATE_LIBS rhizome_fmt rhizome_torch TBB::tbb nlohmann_json::nlohmann_json Threads::Threads)
  # The headers of libtorch, from `ops` on, which is the first module that includes them.
  target_precompile_headers(rhizome_gnn_ops PRIVATE ${standard_headers} ${PROJECT_SOURCE_DIR}/gnn/ops/torch.h)
  foreach(module IN LISTS rhizome_gnn_modules)
    if(NOT module MATCHES "_(options|ops)$")
      target_precompile_headers(${module} REUSE_FROM rhizome_gnn_ops)
    endif()
  endforeach()
  set(gnn_objects)
  foreach(module IN LISTS rhizome_gnn_modules)
    list(APPEND gnn_objects $<TARGET_OBJECTS:${module}>)
  endforeach()
  list(APPEND gnn_objects $<TARGET_OBJECTS:rhizome_device_rows>)
  add_library(rhizome_gnn_shared SHARED ${gnn_objects})
  add_library(rhizome::gnn ALIAS rhizome_gnn_shared)
  target_link_libraries(rhizome_gnn_shared PUBLIC rhizome PRIVATE rhizome_fmt rhizome_torch TBB::tbb
    Threads::Threads)
  rhizome_exports(rhizome_gnn_shared)

  # The GNN layer as a static library with all of its symbols, as rhizome_engine.
  add_library(rhizome_gnn_engine STATIC EXCLUDE_FROM_ALL ${gnn_objects})
  set_target_properties(rhizome_gnn_engine PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(rhizome_gnn_engine PUBLIC rhizome_engine rhizome_fmt rhizome_torch TBB::tbb
    Threads::Threads)
  target_include_directories(rhizome_gnn_engine INTERFACE ${rhizome_gnn_roots} ${rhizome_cuda_roots})
  # Installed files name no folder of this checkout, which may be deleted. A libtorch in the checkout is then
  # found by the loader's usual means, such as LD_LIBRARY_PATH.
  set(installed_torch_rpath ${torch_rpath})
  list(FILTER installed_torch_rpath EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/")
  set_target_properties(rhizome_gnn_shared PROPERTIES OUTPUT_NAME rhizome_gnn EXPORT_NAME gnn
    VERSION ${PROJECT_VERSION} SOVERSION ${rhizome_soversion}
    BUILD_RPATH "${torch_rpath}" INSTALL_RPATH "$ORIGIN;${installed_torch_rpath}")
  # Only headers that need no libtorch are public. A program that links this library need not know where
  # libtorch is: the loader finds it.
  target_sources(rhizome_gnn_shared PUBLIC FILE_SET gnn_headers TYPE HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/gnn/api FILES ${rhizome_gnn_headers})
  target_link_options(rhizome_gnn_shared INTERFACE -Wl,--allow-shlib-undefined)
endif()
