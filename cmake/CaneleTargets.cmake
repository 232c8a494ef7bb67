# SPDX-License-Identifier: BSD-3-Clause
# The library targets. Each room is compiled once, as objects. Two libraries are made of these objects: canele (shared,
# exports canele_* only) and canele_internal (static, everything visible: for unit tests, apps/sim and benchmarks).

# Precompiles the standard library's headers once for all rooms, because they take most of the compile time. tests/tidy
# checks that our own headers do not depend on this. With _GLIBCXX_EXTERN_TEMPLATE=0 a string allocates in the code that
# uses it, not inside libstdc++: see canele_reserves_memory.
function(canele_standard_headers target)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_EXTERN_TEMPLATE=0)
  if(target STREQUAL canele_ltask)  # the first room
    target_precompile_headers(canele_ltask PRIVATE <algorithm> <atomic> <functional> <memory> <string> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM canele_ltask)
  endif()
endfunction()

# canele_reserves_memory(target): routes the target's calls of operator new through ltask/linked/reserving_new.cpp. Not
# under sanitizers: they have an operator new of their own, which reports no failure.
function(canele_reserves_memory target)
  if(NOT CANELE_SANITIZE)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:canele_reserving_new> ${ARGN})
    target_link_options(${target} PRIVATE -Wl,--wrap=_Znwm -Wl,--wrap=_Znam -Wl,--wrap=_ZnwmSt11align_val_t)
  endif()
endfunction()

# canele_room(name [LINK lib...]): all sources below the current directory become the object library canele_<name>.
function(canele_room name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  # Directories of modules are built separately: see canele_driver_module.
  file(GLOB modules CONFIGURE_DEPENDS */CMakeLists.txt)
  foreach(module ${modules})
    cmake_path(GET module PARENT_PATH directory)
    list(FILTER sources EXCLUDE REGEX "^${directory}/")
  endforeach()
  add_library(canele_${name} OBJECT ${sources})
  target_include_directories(canele_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/comm/include)
  target_link_libraries(canele_${name} PUBLIC Threads::Threads ${ARG_LINK})
  if(canele_whole_program)
    target_compile_options(canele_${name} PRIVATE -flto -ffat-lto-objects ${canele_whole_program_options})
  endif()
  canele_warnings(canele_${name})
  canele_standard_headers(canele_${name})
endfunction()

# canele_driver_module(name LINK lib...): the sources of the current directory become the module
# canele-driver-<name>.so, opened on demand, and the object library canele_driver_<name> for tests. The module sees
# driver.hpp and nothing of the engine.
function(canele_driver_module name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  add_library(canele_driver_${name} OBJECT ${sources})
  target_include_directories(canele_driver_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(canele_driver_${name} PUBLIC Threads::Threads ${ARG_LINK})
  canele_warnings(canele_driver_${name})
  canele_standard_headers(canele_driver_${name})
  add_library(canele_module_${name} MODULE)
  target_link_libraries(canele_module_${name} PRIVATE canele_driver_${name})
  set_target_properties(canele_module_${name} PROPERTIES PREFIX "" OUTPUT_NAME canele-driver-${name}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/canele)
  canele_reserves_memory(canele_module_${name} $<TARGET_OBJECTS:canele_own_reserve>)
  install(TARGETS canele_module_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/canele)
endfunction()

macro(canele_engine_libraries)
  set(canele_private_libraries PkgConfig::HWLOC PkgConfig::PMIX)
  add_library(canele SHARED)
  add_library(Canele::canele ALIAS canele)
  add_library(canele_internal STATIC)
  foreach(target canele canele_internal)
    foreach(room comm drivers strategies ltask)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:canele_${room}>)
    endforeach()
  endforeach()
  # Callbacks come from other threads, so every user of the library must link the thread library.
  target_link_libraries(canele PUBLIC Threads::Threads PRIVATE ${canele_private_libraries} ${CMAKE_DL_LIBS})
  target_link_libraries(canele_internal PUBLIC Threads::Threads ${canele_private_libraries} ${CMAKE_DL_LIBS})
  target_include_directories(canele PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/comm/include>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(canele_internal PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/comm/include)
  set_target_properties(canele PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1)
  # Undefined symbols must fail when the library is linked, not at run time (sanitizers leave symbols to the program).
  target_link_options(canele PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/comm/canele.map)
  # Under PMIx the library leaves the job when the process exits. dlclose must not unload it, because PMIx cannot be
  # left from inside dlclose.
  target_link_options(canele PRIVATE -Wl,-z,nodelete)
  if(canele_whole_program)
    target_link_options(canele PRIVATE -flto=auto ${canele_whole_program_options})
  endif()
  if(NOT CANELE_SANITIZE)
    target_link_options(canele PRIVATE -Wl,--no-undefined)
  endif()
  canele_reserves_memory(canele)
  set_target_properties(canele PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/comm/canele.map)
endmacro()
