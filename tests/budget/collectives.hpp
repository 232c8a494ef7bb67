// SPDX-License-Identifier: BSD-3-Clause
//
// The part of path_budget that is about collectives which block.
//
// Who: path_budget. Threads: one. Surprise: none.
#pragma once

namespace canele::test::budget {

void count_collectives();

}  // namespace canele::test::budget
