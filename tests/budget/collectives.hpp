// SPDX-License-Identifier: BSD-3-Clause
//
// The part of path_budget that counts blocking collectives. One thread.
#pragma once

namespace canele::test::budget {

void count_collectives();

}  // namespace canele::test::budget
