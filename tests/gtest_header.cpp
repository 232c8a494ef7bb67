// SPDX-License-Identifier: BSD-3-Clause
//
// Nothing but the precompiled header that all unit tests share; see tests/CMakeLists.txt.
