# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` installs for users of the library. starpu_glue and apps install their own files. canele.pc and
# CaneleConfig.cmake contain no absolute path, so a prefix may be moved after the install.

install(TARGETS canele EXPORT CaneleTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/comm/include/canele DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# What a driver that is built outside the tree needs.
install(FILES ${PROJECT_SOURCE_DIR}/drivers/driver.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/canele)

# With the StarPU backend, MPI programs can link Canele::mpi.
if(TARGET canele_mpi)
  set_target_properties(canele_mpi PROPERTIES EXPORT_NAME mpi)
  install(TARGETS canele_mpi EXPORT CaneleTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

include(CMakePackageConfigHelpers)
set(canele_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Canele)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/CaneleConfig.cmake.in
  ${PROJECT_BINARY_DIR}/CaneleConfig.cmake INSTALL_DESTINATION ${canele_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CaneleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CaneleConfig.cmake ${PROJECT_BINARY_DIR}/CaneleConfigVersion.cmake
  DESTINATION ${canele_package_dir})
install(EXPORT CaneleTargets NAMESPACE Canele:: DESTINATION ${canele_package_dir})

# pkg-config sets pcfiledir to the directory in which it found the file; the prefix is this many levels above it.
file(RELATIVE_PATH canele_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" canele_pc_to_prefix "${canele_pc_to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/canele.pc.in ${PROJECT_BINARY_DIR}/canele.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/canele.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
