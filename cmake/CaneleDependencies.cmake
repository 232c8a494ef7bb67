# SPDX-License-Identifier: BSD-3-Clause
# The libraries that Canelé is built on. A missing one is named together with the Debian package that has it.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "pkg-config is needed to find libraries. Debian package: pkg-config")
endif()

# canele_pkg(PREFIX module debian-package what-for): PkgConfig::PREFIX, or an error that says what to install.
function(canele_pkg prefix module package purpose)
  pkg_check_modules(${prefix} QUIET GLOBAL IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} is needed (${purpose}) and pkg-config does not find it. Debian package: ${package}")
  endif()
  message(STATUS "Found ${module} ${${prefix}_VERSION}")
  set(${prefix}_VERSION ${${prefix}_VERSION} PARENT_SCOPE)
endfunction()

# canele_package(name debian-package what-for [arguments of find_package...]): find_package, or an error that says what
# to install.
macro(canele_package name package purpose)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "${name} is needed (${purpose}) and CMake does not find it. Debian package: ${package}")
  endif()
endmacro()

canele_pkg(HWLOC hwloc libhwloc-dev "the topology of the machine")
canele_pkg(PMIX pmix libpmix-dev "starting jobs under PMIx launchers")

# Fabrics are optional: without its library a driver is not built, and canele-info says so.
pkg_check_modules(LIBFABRIC QUIET GLOBAL IMPORTED_TARGET libfabric>=1.17)
find_path(PSM2_INCLUDE_DIR psm2.h)
find_library(PSM2_LIBRARY psm2)
mark_as_advanced(PSM2_INCLUDE_DIR PSM2_LIBRARY)
if(PSM2_INCLUDE_DIR AND PSM2_LIBRARY)
  add_library(PSM2::PSM2 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(PSM2::PSM2 PROPERTIES IMPORTED_LOCATION ${PSM2_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${PSM2_INCLUDE_DIR})
endif()
foreach(fabric PkgConfig::LIBFABRIC PSM2::PSM2)
  if(TARGET ${fabric})
    message(STATUS "Found ${fabric}")
  else()
    message(STATUS "No ${fabric}: its driver is not built (Debian packages: libfabric-dev, libpsm2-dev)")
  endif()
endforeach()

if(CANELE_STARPU_GLUE OR CANELE_TESTS)
  canele_package(Python3 python3 "the generator of MPI's functions, and the test scripts; or -DCANELE_STARPU_GLUE=OFF \
-DCANELE_TESTS=OFF" COMPONENTS Interpreter)
endif()
if(CANELE_APPS)
  canele_package(CLI11 libcli11-dev "arguments of the tools; or -DCANELE_APPS=OFF")
  canele_package(fmt libfmt-dev "output of the tools; or -DCANELE_APPS=OFF")
  canele_package(nlohmann_json nlohmann-json3-dev "JSON of the tools; or -DCANELE_APPS=OFF")
endif()
if(CANELE_TESTS)
  canele_package(GTest libgtest-dev "the unit tests; or -DCANELE_TESTS=OFF")
endif()
