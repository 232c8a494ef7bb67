// SPDX-License-Identifier: BSD-3-Clause
//
// Staging: between typed memory of the program and the plain bytes that the engine's collectives take.
//
// Who: collectives.cpp, requests. Threads: one owner per object; users' operators are called on any thread.
// Surprise: data that is one block in memory is not copied: the engine works on the program's own. Everything else goes
//      through copies, and its results get to their places in the thread that completes the request (MPI_Wait, MPI_Test
//      and their kin), the only one that then uses them.
#pragma once

#include <canele/collectives.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "starpu_glue/mpi/operation.hpp"
#include "starpu_glue/mpi/transfer.hpp"

namespace canele::mpi {

/// A buffer's parts, one for each rank, as a call describes them; counts and types have been checked.
struct Parts {
  char* memory = nullptr;
  int ranks = 0;
  std::int64_t count = 0;  ///< elements of each part, where all are equal
  const Type* type = nullptr;
  const int* counts = nullptr;  ///< else: of each
  const int* places = nullptr;  ///< and where: in extents of the type; in bytes where each part has its own type
  const MPI_Datatype* types = nullptr;

  Buffer part(int rank) const;
};

/// The same as the engine takes it. `parts` points into the object: not to be moved.
struct EngineParts {
  char* memory = nullptr;
  std::vector<std::size_t> lengths;
  std::vector<std::size_t> offsets;
  canele_parts_t parts{};
};

/// How elements of a type stand in a row for a reduction: element i has its first byte at i * pitch, and an operator of
/// the program gets a pointer `shift` bytes before it.
///
///   straight   a type without gaps: as in the program's memory           |aaaa|bbbb|
///   by extent  it has gaps, but keeps within its extent: a copy alike    |aa  |bb  |
///   apart      it reaches out of its extent (a column of a matrix, made  |a a a a |b b b b |
///              so small that the next begins one element later): a copy of each, and one call for each
struct Slots {
  std::size_t pitch = 1;
  std::ptrdiff_t shift = 0;
  bool straight = false;
  bool apart = false;
};

Slots slots_of(const Type& type);

/// What one collective keeps until it has ended. Must not move meanwhile.
class Staging {
 public:
  Staging() = default;
  ~Staging() { reset(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// What the engine reads. MPI codes.
  int input(const Parts& parts, EngineParts* engine);
  /// What it writes, or, if `filled`, what it also reads.
  int output(const Parts& parts, bool filled, EngineParts* engine);

  /// For reductions: the operator, and elements in slots. `type` gets a reference if the program's function is called.
  void combine_with(const Operator& op, const Type& type, canele_operator_t* engine);
  int input_slots(const Buffer& elements, const void** engine);
  /// The first `results` of the elements get to their places in the end.
  int output_slots(const Buffer& elements, std::int64_t results, bool filled, void** engine);

  /// After success: puts the results where the program wants them.
  void deliver() const;
  /// Lets go of copies and types.
  void reset();

 private:
  struct Target {
    Buffer to;         ///< its type is counted
    const char* from;  ///< packed, or in slots
    bool slots;
  };

  static void call_user(const void* in, void* inout, std::size_t count, void* staging);
  void aim(const Buffer& to, const char* from, bool slots);

  std::unique_ptr<char[]> input_;
  std::unique_ptr<char[]> output_;
  std::vector<Target> targets_;
  MPI_User_function* user_ = nullptr;
  Type* user_type_ = nullptr;  ///< counted
};

}  // namespace canele::mpi
