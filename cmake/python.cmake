# --- The Python package -------------------------------------------------------------------------
# pip provides its own Python and nanobind; a build with tests uses those of build/venv. A Python without
# sanitizers cannot load a module that is built with them.
if(RHIZOME_PYTHON AND NOT RHIZOME_SANITIZE AND NOT RHIZOME_FUZZ)
  if(NOT SKBUILD AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python AND NOT Python_EXECUTABLE)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  endif()
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
  if(Python_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
      OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind 3.1 CONFIG)
  endif()
  if(nanobind_FOUND)
    add_subdirectory(python)
  elseif(SKBUILD)
    message(FATAL_ERROR "nanobind or the headers of Python are missing (tools/install_deps.sh --python)")
  else()
    message(STATUS "nanobind or the headers of Python not found: the Python module is left out "
      "(tools/install_deps.sh --tests)")
  endif()
endif()
