# --- Installing -----------------------------------------------------------------------------------
# find_package(rhizome) provides rhizome::rhizome, and with COMPONENTS gnn also rhizome::gnn, if it was built;
# pkg-config calls the former `rhizome`.
set_target_properties(rhizome PROPERTIES EXPORT_NAME rhizome)
install(TARGETS rhizome EXPORT rhizome FILE_SET storage_headers FILE_SET index_headers
  FILE_SET cache_headers)
if(RHIZOME_GNN)
  install(TARGETS rhizome_gnn_shared EXPORT rhizome FILE_SET gnn_headers)
  if(SKBUILD)
    # In site-packages it is beside torch, and beside the package rhizome whose program loads it.
    set_target_properties(rhizome_gnn_shared PROPERTIES VERSION ${rhizome_soversion}
      INSTALL_RPATH "$ORIGIN/../torch/lib;$ORIGIN/../rhizome")
    install(TARGETS rhizome_gnn_shared LIBRARY DESTINATION rhizome_gnn COMPONENT gnn NAMELINK_SKIP)
  endif()
endif()
foreach(module rhizome_cuda_module rhizome_mpi_module)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
if(RHIZOME_CLI)
  install(TARGETS rhizome_cli)
  install(TARGETS ${bench_targets} OPTIONAL)
  install(FILES ${shell_files}/bash/rhizome DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
  install(FILES ${shell_files}/zsh/_rhizome DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
  install(DIRECTORY ${shell_files}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
endif()

# What a program finds and links besides. A shared librhizome brings its own dependencies; with a static one, the
# program links them.
set(dependencies "find_dependency(tl-expected)\n")
set(pc_lines)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(BUILD_SHARED_LIBS)
  set(pc_libs "-Wl,-rpath,\${prefix}/${CMAKE_INSTALL_LIBDIR} -lrhizome")
else()
  set(requires)
  foreach(package IN LISTS linked_packages)
    string(APPEND dependencies "find_dependency(${package})\n")
    if(package MATCHES "^(TBB|fmt|ZLIB)( [0-9.]+)?")
      string(TOLOWER ${CMAKE_MATCH_1} name)
      string(REPLACE " " ">=" oldest "${CMAKE_MATCH_2}")
      list(APPEND requires ${name}${oldest})
    endif()
  endforeach()
  string(APPEND dependencies "find_dependency(PkgConfig)\n")
  foreach(module IN LISTS linked_modules)
    string(REPLACE " " ";" module ${module})
    list(POP_FRONT module name)
    list(APPEND requires ${module})
    string(APPEND dependencies "pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})\n"
      "if(NOT ${name}_FOUND)\n  set(rhizome_FOUND FALSE)\n"
      "  set(rhizome_NOT_FOUND_MESSAGE \"pkg-config does not find ${module}\")\n  return()\nendif()\n")
  endforeach()
  string(REPLACE ">=" " >= " requires "${requires}")
  string(REPLACE ";" ", " requires "${requires}")
  # Public, and not Requires.private: there is no shared library that could be linked without them.
  set(pc_lines "Requires: ${requires}\n")
  set(pc_libs "-lrhizome -Wl,-z,nodelete -lrocksdb -lbz2 -pthread")
endif()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/rhizome)
install(EXPORT rhizome NAMESPACE rhizome:: FILE rhizomeTargets.cmake DESTINATION ${package_folder})
file(WRITE ${PROJECT_BINARY_DIR}/rhizomeConfig.cmake
  "include(CMakeFindDependencyMacro)\n${dependencies}"
  "include(\${CMAKE_CURRENT_LIST_DIR}/rhizomeTargets.cmake)\n"
  "foreach(part IN LISTS rhizome_FIND_COMPONENTS)\n"
  "  if(TARGET rhizome::\${part})\n"
  "    set(rhizome_\${part}_FOUND TRUE)\n"
  "  elseif(rhizome_FIND_REQUIRED_\${part})\n"
  "    set(rhizome_FOUND FALSE)\n"
  "    set(rhizome_NOT_FOUND_MESSAGE \"this rhizome was built without its component \${part}\")\n"
  "  endif()\n"
  "endforeach()\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rhizomeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rhizomeConfig.cmake
  ${PROJECT_BINARY_DIR}/rhizomeConfigVersion.cmake DESTINATION ${package_folder})
file(WRITE ${PROJECT_BINARY_DIR}/rhizome.pc
  "prefix=\${pcfiledir}/${prefix_from_pc}\nName: rhizome\nDescription: ${PROJECT_DESCRIPTION}\n"
  "Version: ${PROJECT_VERSION}\n${pc_lines}Cflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\n"
  "Libs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} ${pc_libs}\n")
install(FILES ${PROJECT_BINARY_DIR}/rhizome.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
