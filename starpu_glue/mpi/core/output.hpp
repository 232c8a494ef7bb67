// SPDX-License-Identifier: BSD-3-Clause
//
// What the program has printed before a call that ends the process.
#pragma once

namespace canele::mpi {

/// Writes out what is in the buffers of C's and Fortran's streams, as exit() would. Gives up after a second: a stream
/// is locked for as long as another thread reads from it. Any thread; does nothing in the child of a fork, whose
/// buffers are copies.
void flush_output() noexcept;

}  // namespace canele::mpi
