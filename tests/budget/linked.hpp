// SPDX-License-Identifier: BSD-3-Clause
//
// The part of path_budget that counts the longest call while other threads post. One thread.
#pragma once

namespace canele::test::budget {

void count_linked();

}  // namespace canele::test::budget
