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
if(CANELE_APPS)
  canele_package(CLI11 libcli11-dev "arguments of the tools; or -DCANELE_APPS=OFF")
  canele_package(fmt libfmt-dev "output of the tools; or -DCANELE_APPS=OFF")
  canele_package(nlohmann_json nlohmann-json3-dev "JSON of the tools; or -DCANELE_APPS=OFF")
endif()
if(CANELE_TESTS)
  canele_package(GTest libgtest-dev "the unit tests; or -DCANELE_TESTS=OFF")
  canele_package(Python3 python3 "the test scripts; or -DCANELE_TESTS=OFF" COMPONENTS Interpreter)
endif()
