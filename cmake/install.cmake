# --- Installing -----------------------------------------------------------------------------------
# find_package(rhizome) provides rhizome::rhizome, and with COMPONENTS gnn also rhizome::gnn, if it was built;
# pkg-config calls the former `rhizome`.
set_target_properties(rhizome PROPERTIES EXPORT_NAME rhizome)
add_library(rhizome::rhizome ALIAS rhizome)
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
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/rhizome)
install(EXPORT rhizome NAMESPACE rhizome:: FILE rhizomeTargets.cmake DESTINATION ${package_folder})
file(WRITE ${PROJECT_BINARY_DIR}/rhizomeConfig.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(tl-expected)\n"
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
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(WRITE ${PROJECT_BINARY_DIR}/rhizome.pc
  "prefix=\${pcfiledir}/${prefix_from_pc}\nName: rhizome\nDescription: ${PROJECT_DESCRIPTION}\n"
  "Version: ${PROJECT_VERSION}\nCflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\n"
  "Libs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} -Wl,-rpath,\${prefix}/${CMAKE_INSTALL_LIBDIR} -lrhizome\n")
install(FILES ${PROJECT_BINARY_DIR}/rhizome.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
