// SPDX-License-Identifier: BSD-3-Clause
//
// Staging: between typed memory of the program and the plain bytes that the engine's collectives take.
//
// Data that is one block in memory is not copied: the engine works on the program's memory. Everything else goes
// through copies. The thread that completes the request (in MPI_Wait, MPI_Test and similar) writes the results to their
// places; no other thread uses them then. One owner per object; the user's operators are called on any thread.
#pragma once

#include <canele/collectives.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starpu_glue/mpi/datatypes/operation.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi {

/// The blocks of a buffer, one for each rank, as a call describes them. Counts and types have been checked.
struct Blocks {
  char* memory = nullptr;
  int ranks = 0;
  std::int64_t count = 0;  ///< elements of each block, if all blocks are equal
  const Type* type = nullptr;
  Integers counts{};  ///< otherwise: elements of each block
  Integers places{};  ///< displacements: in extents of the type, or in bytes if each block has its own type
  const MPI_Datatype* types = nullptr;

  bool are_equal() const { return counts.data() == nullptr; }
  Buffer block(int rank) const;
};

/// The blocks as the engine takes them. `parts` points to what the vectors own, so copies would be wrong.
struct EngineBlocks {
  EngineBlocks() = default;
  EngineBlocks(EngineBlocks&&) = default;
  EngineBlocks& operator=(EngineBlocks&&) = default;

  char* memory = nullptr;
  std::vector<std::size_t> lengths;
  std::vector<std::size_t> offsets;
  canele_parts_t parts{};
};

/// How the elements of a type are laid out in slots for a reduction. The first byte of element i is at i * pitch. An
/// operator of the program gets a pointer `shift` bytes before it.
///
///     dense      a type without gaps: as in the program's memory           |aaaa|bbbb|
///     by extent  it has gaps, but keeps within its extent: a copy alike    |aa  |bb  |
///     separate   it reaches out of its extent (a column of a matrix, made  |a a a a |b b b b |
///                so small that the next begins one element later): a copy of each, and one call for each
struct Slots {
  std::size_t pitch = 1;
  std::ptrdiff_t shift = 0;
  bool dense = false;
  bool separate = false;
};

Slots slots_of(const Type& type);

/// Memory that one collective keeps until it has ended. Must not move meanwhile.
///
/// A persistent collective is prepared once: its staging remembers what to copy, and fill() copies it at each start.
class Staging {
 public:
  Staging() = default;
  ~Staging() { reset(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Makes it that of a persistent collective. The program's memory is not read before fill().
  void keep() { is_kept_ = true; }
  /// Copies the input for another start.
  void fill();

  /// Prepares the memory that the engine reads. Returns an MPI code.
  int input(const Blocks& blocks, EngineBlocks* engine);
  /// Prepares the memory that the engine writes and, if `filled`, also reads.
  int output(const Blocks& blocks, bool filled, EngineBlocks* engine);
  /// These do so for blocks that have nothing in common. Lengths and offsets are those of `engine`, not its parts.
  int input(std::span<const Buffer> blocks, EngineBlocks* engine);
  int output(std::span<const Buffer> blocks, EngineBlocks* engine);

  /// Prepares a reduction's operator. `type` gets a reference if the engine calls the program's function.
  void combine_with(const Operator& op, const Type& type, canele_operator_t* engine);
  int input_slots(const Buffer& elements, const void** engine);
  /// Prepares output slots. deliver() writes the first `results` of the elements to their places.
  int output_slots(const Buffer& elements, std::int64_t results, bool filled, void** engine);

  /// Writes the results to the places that the program named, once for each start. For collectives that succeeded.
  void deliver() const;
  /// Called when the program knows that the collective has ended: results are not delivered again.
  void settle();
  /// Frees the copies and drops the references on types.
  void reset();

 private:
  /// Data of the program, and its copy.
  struct Copied {
    Buffer program;  ///< holds a reference on its type
    char* copy;      ///< packed data, or slots
    bool slots;
    bool is_input;  ///< copied by fill(), not by deliver()
  };
  /// An operator of the program, and the type that it gets.
  struct User {
    UserFunction function;
    TypeReference type;
  };

  static void call_user(const void* in, void* inout, std::size_t count, void* user);
  void add_input(const Buffer& from, char* to, bool slots);
  void add_output(const Buffer& to, char* from, bool slots);

  std::unique_ptr<char[]> input_;
  std::unique_ptr<char[]> output_;
  std::vector<Copied> copied_;  ///< outputs and, if it is kept, inputs
  std::unique_ptr<User> user_;
  bool is_kept_ = false, is_settled_ = false;
};

}  // namespace canele::mpi
