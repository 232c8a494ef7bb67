# SPDX-License-Identifier: BSD-3-Clause
# Compile options of the whole project: language, visibility, warnings, sanitizers, and where programs go.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
endif()

# Our assertions are cheap and stay on in release builds, so no build type defines NDEBUG.
foreach(language C CXX)
  foreach(type RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REGEX REPLACE "[-/]DNDEBUG" "" CMAKE_${language}_FLAGS_${type} "${CMAKE_${language}_FLAGS_${type}}")
  endforeach()
endforeach()

# Installed programs and libraries find our libraries beside them, also after the prefix has been moved.
file(RELATIVE_PATH canele_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/${canele_bin_to_lib}" "$ORIGIN")

if(CANELE_SANITIZE)
  add_compile_options(-fsanitize=${CANELE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CANELE_SANITIZE})
  if(CANELE_SANITIZE MATCHES thread)
    # ThreadSanitizer does not understand fences: code that relies on a fence must be annotated where it stands.
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()

# Fuzz targets (tests/fuzz) need every room instrumented, and nothing else of the build.
option(CANELE_FUZZ "Build the fuzz targets; clang only, see the presets fuzz and fuzz-coverage" OFF)
option(CANELE_COVERAGE "Count the lines that run, with CANELE_FUZZ" OFF)
if(CANELE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "CANELE_FUZZ needs clang (libFuzzer); this is ${CMAKE_CXX_COMPILER_ID}. Debian package: clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  if(CANELE_COVERAGE)
    add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
    add_link_options(-fprofile-instr-generate)
  endif()
endif()

# The data path crosses rooms, so libcanele is optimised as a whole. Only libcanele is: the objects hold both LTO code
# and machine code, and the many test programs link the machine code, as fast as without LTO.
option(CANELE_WHOLE_PROGRAM "Optimise libcanele at link time" ON)
set(canele_whole_program OFF)
if(CANELE_WHOLE_PROGRAM AND NOT CANELE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL Debug
   AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(canele_whole_program ON)
  # Here GCC would speculate that a virtual call reaches the base class, which is wrong for every driver.
  set(canele_whole_program_options -fno-devirtualize-speculatively)
  add_link_options(-fno-lto)
endif()

# Options for tests and tools. With AddressSanitizer, most of the compile time goes into optimising the checks that it
# adds, above all those on pointers. They are left out here; the rooms themselves are compiled with all checks. With
# ThreadSanitizer, running takes longer than compiling.
set(canele_quick_to_compile $<$<NOT:$<CONFIG:Debug>>:-Og> -g1)
if(CANELE_SANITIZE MATCHES thread)
  set(canele_quick_to_compile -O1 -g1)
elseif(CANELE_SANITIZE)
  set(canele_quick_to_compile -O0 -g1)
  if(CANELE_SANITIZE MATCHES undefined)
    list(APPEND canele_quick_to_compile -fno-sanitize=null,object-size,vptr,alignment)
  endif()
endif()

function(canele_warnings target)
  # Fuzz targets go without -Wshadow: clang also warns about names that only other sources of a unity build declare.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<NOT:$<BOOL:${CANELE_FUZZ}>>:-Wshadow>
    $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
    $<$<BOOL:${CANELE_WERROR}>:-Werror>)
endfunction()
