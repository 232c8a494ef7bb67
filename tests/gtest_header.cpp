// SPDX-License-Identifier: BSD-3-Clause
//
// Holds nothing but the precompiled header that all unit tests share; see tests/CMakeLists.txt.
