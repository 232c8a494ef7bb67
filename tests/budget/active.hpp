// SPDX-License-Identifier: BSD-3-Clause
//
// The part of path_budget that counts active messages. One thread.
#pragma once

namespace canele::test::budget {

void count_active();

}  // namespace canele::test::budget
