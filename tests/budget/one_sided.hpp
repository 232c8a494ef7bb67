// SPDX-License-Identifier: BSD-3-Clause
//
// The part of path_budget that counts one-sided operations. One thread.
#pragma once

namespace canele::test::budget {

void count_one_sided();

}  // namespace canele::test::budget
