// SPDX-License-Identifier: BSD-3-Clause
//
// Staging: decides what goes directly to the engine and what is copied, and calls the program's operators.
//
// In reductions, gaps between the bytes of a type are sent as zeros; elsewhere they are not sent. Gaps in the program's
// memory are never written.
#include "starpu_glue/mpi/datatypes/staging.hpp"

#include <algorithm>
#include <new>
#include <optional>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

Payload payload_of(const Buffer& buffer) {
  return {buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type};
}

/// Returns all blocks as one buffer. The blocks must be equal.
Buffer together(const Blocks& blocks) { return {blocks.memory, blocks.count * blocks.ranks, blocks.type}; }

/// Lets the engine use the program's own memory for blocks that block_of(i) returns; returns false if one of them is
/// not contiguous there.
template <class BlockOf>
bool use_each_directly(std::size_t count, BlockOf block_of, EngineBlocks* engine) {
  engine->offsets.assign(count, 0);
  std::vector<char*> starts(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    const Payload payload = payload_of(block_of(i));
    if (!payload.contiguous()) return false;
    if (payload.length == 0) continue;
    if (payload.is_on_device()) return false;
    starts[i] = payload.base + payload.layout.first;
    if (engine->memory == nullptr || starts[i] < engine->memory) engine->memory = starts[i];
  }
  for (std::size_t i = 0; i < count; ++i) {  // offsets from the lowest block: displacements may be negative
    if (starts[i] != nullptr) engine->offsets[i] = static_cast<std::size_t>(starts[i] - engine->memory);
  }
  return true;
}

/// Lets the engine use the program's own memory; returns false if a block is not contiguous there.
bool use_directly(const Blocks& blocks, EngineBlocks* engine) {
  if (blocks.are_equal()) {
    const Payload payload = payload_of(together(blocks));
    engine->memory = payload.base + payload.layout.first;
    return payload.contiguous() && !payload.is_on_device();
  }
  const auto block_of = [&](std::size_t i) { return blocks.block(static_cast<int>(i)); };
  const bool is_direct = use_each_directly(static_cast<std::size_t>(blocks.ranks), block_of, engine);
  if (is_direct) engine->parts.offsets = engine->offsets.data();
  return is_direct;
}

/// Lets the engine use the program's own memory if it can; otherwise sets the offsets of packed copies. Returns the
/// length of the copies, or nothing if none are needed.
std::optional<std::size_t> place_each(std::span<const Buffer> blocks, EngineBlocks* engine) {
  for (const Buffer& block : blocks) engine->lengths.push_back(block.size());
  if (use_each_directly(
          blocks.size(), [&](std::size_t i) { return blocks[i]; }, engine))
    return std::nullopt;
  std::size_t end = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    engine->offsets[i] = end;
    end += engine->lengths[i];
  }
  return end;
}

/// Stores the lengths of the blocks; returns their sum.
std::size_t measure(const Blocks& blocks, EngineBlocks* engine) {
  if (blocks.are_equal()) {
    engine->parts.length = blocks.block(0).size();
    return together(blocks).size();
  }
  std::size_t sum = 0;
  engine->lengths.reserve(static_cast<std::size_t>(blocks.ranks));
  for (int rank = 0; rank < blocks.ranks; ++rank) {
    engine->lengths.push_back(blocks.block(rank).size());
    sum += engine->lengths.back();
  }
  engine->parts.lengths = engine->lengths.data();
  return sum;
}

/// Calls visit(buffer, packed) for each block, with its place in the packed data that begins at `packed`.
template <class Visit>
void each_packed(const Blocks& blocks, char* packed, Visit visit) {
  if (blocks.are_equal()) return visit(together(blocks), packed);
  for (int rank = 0; rank < blocks.ranks; ++rank) {
    const Buffer block = blocks.block(rank);
    visit(block, packed);
    packed += block.size();
  }
}

int make_room(std::size_t length, std::unique_ptr<char[]>* room) {
  room->reset(new (std::nothrow) char[length]());  // zeroed, because gaps are sent, too
  if (*room != nullptr) return MPI_SUCCESS;
  return fail(MPI_ERR_NO_MEM, "no memory for a copy of %zu bytes, which a datatype with gaps needs", length);
}

/// Copies elements between the program's memory and slots.
void copy_slots(const Buffer& elements, char* slots, bool into_slots) {
  const Slots how = slots_of(*elements.type);
  const std::int64_t at_once = how.separate ? 1 : elements.count;
  for (std::int64_t done = 0; done < elements.count; done += at_once) {
    const Buffer mine{static_cast<char*>(elements.memory) + done * elements.type->extent(), at_once, elements.type};
    const Buffer copy{slots + done * static_cast<std::ptrdiff_t>(how.pitch) - how.shift, at_once, elements.type};
    into_slots ? copy_local(mine, copy) : copy_local(copy, mine);
  }
}

void read_program(const Buffer& from, char* to, bool slots) {
  if (slots) {
    copy_slots(from, to, true);
  } else {
    pack(payload_of(from), 0, from.size(), to);
  }
}

}  // namespace

Buffer Blocks::block(int rank) const {
  if (are_equal()) return Buffer{memory, count, type}.block(rank);
  const auto index = static_cast<std::size_t>(rank);
  const Type* own = types == nullptr ? type : find_type(types[rank]);
  const std::ptrdiff_t place = places[index] * (types == nullptr ? own->extent() : 1);
  return {memory + place, counts[index], own};
}

Slots slots_of(const Type& type) {
  const std::ptrdiff_t extent = type.extent();
  if (type.size == 0) return {.dense = true};
  if (type.many.empty() && type.single.contiguous() && static_cast<std::ptrdiff_t>(type.size) == extent) {
    return {.pitch = type.size, .shift = type.true_lower, .dense = true};
  }
  if (type.true_lower >= 0 && type.true_upper <= extent) return {.pitch = static_cast<std::size_t>(extent)};
  constexpr std::size_t kAlignment = alignof(std::max_align_t);
  const auto bytes = static_cast<std::size_t>(type.true_upper - type.true_lower);
  return {.pitch = (bytes + kAlignment - 1) / kAlignment * kAlignment, .shift = type.true_lower, .separate = true};
}

int Staging::input(const Blocks& blocks, EngineBlocks* engine) {
  const std::size_t length = measure(blocks, engine);
  if (use_directly(blocks, engine)) return MPI_SUCCESS;
  if (const int code = make_room(length, &input_); code != MPI_SUCCESS) return code;
  engine->memory = input_.get();
  each_packed(blocks, input_.get(), [this](const Buffer& block, char* place) { add_input(block, place, false); });
  return MPI_SUCCESS;
}

int Staging::output(const Blocks& blocks, bool filled, EngineBlocks* engine) {
  const std::size_t length = measure(blocks, engine);
  if (use_directly(blocks, engine)) return MPI_SUCCESS;
  if (const int code = make_room(length, &output_); code != MPI_SUCCESS) return code;
  engine->memory = output_.get();
  each_packed(blocks, output_.get(), [&](const Buffer& block, char* place) {
    if (filled) add_input(block, place, false);
    add_output(block, place, false);
  });
  return MPI_SUCCESS;
}

int Staging::input(std::span<const Buffer> blocks, EngineBlocks* engine) {
  const std::optional<std::size_t> length = place_each(blocks, engine);
  if (!length.has_value()) return MPI_SUCCESS;
  if (const int code = make_room(*length, &input_); code != MPI_SUCCESS) return code;
  engine->memory = input_.get();
  for (std::size_t i = 0; i < blocks.size(); ++i) add_input(blocks[i], input_.get() + engine->offsets[i], false);
  return MPI_SUCCESS;
}

int Staging::output(std::span<const Buffer> blocks, EngineBlocks* engine) {
  const std::optional<std::size_t> length = place_each(blocks, engine);
  if (!length.has_value()) return MPI_SUCCESS;
  if (const int code = make_room(*length, &output_); code != MPI_SUCCESS) return code;
  engine->memory = output_.get();
  for (std::size_t i = 0; i < blocks.size(); ++i) add_output(blocks[i], output_.get() + engine->offsets[i], false);
  return MPI_SUCCESS;
}

void Staging::combine_with(const Operator& op, const Type& type, canele_operator_t* engine) {
  if (!op.user) {
    *engine = op.predefined;
    return;
  }
  user_ = std::make_unique<User>(op.user, reference_to(type));
  *engine = {call_user, user_.get(), slots_of(type).pitch, op.commutes ? 1 : 0};
}

int Staging::input_slots(const Buffer& elements, const void** engine) {
  const Slots slots = slots_of(*elements.type);
  *engine = elements.memory;
  if (elements.count == 0) return MPI_SUCCESS;
  *engine = static_cast<const char*>(elements.memory) + slots.shift;
  if (slots.dense && !payload_of(elements).is_on_device()) return MPI_SUCCESS;
  const int code = make_room(slots.pitch * static_cast<std::size_t>(elements.count), &input_);
  if (code != MPI_SUCCESS) return code;
  add_input(elements, input_.get(), true);
  *engine = input_.get();
  return MPI_SUCCESS;
}

int Staging::output_slots(const Buffer& elements, std::int64_t results, bool filled, void** engine) {
  const Slots slots = slots_of(*elements.type);
  *engine = elements.memory;
  if (elements.count == 0) return MPI_SUCCESS;
  *engine = static_cast<char*>(elements.memory) + slots.shift;
  if (slots.dense && !payload_of(elements).is_on_device()) return MPI_SUCCESS;
  const int code = make_room(slots.pitch * static_cast<std::size_t>(elements.count), &output_);
  if (code != MPI_SUCCESS) return code;
  if (filled) add_input(elements, output_.get(), true);
  add_output({elements.memory, results, elements.type}, output_.get(), true);
  *engine = output_.get();
  return MPI_SUCCESS;
}

/// Copies from the program's memory, now or, if the staging is kept, at each start.
void Staging::add_input(const Buffer& from, char* to, bool slots) {
  if (!is_kept_) return read_program(from, to, slots);
  copied_.push_back({from, to, slots, true});
  add_reference(*const_cast<Type*>(from.type));
}

void Staging::add_output(const Buffer& to, char* from, bool slots) {
  copied_.push_back({to, from, slots, false});
  add_reference(*const_cast<Type*>(to.type));
}

void Staging::fill() {
  is_settled_ = false;
  for (const Copied& one : copied_) {
    if (one.is_input) read_program(one.program, one.copy, one.slots);
  }
}

void Staging::call_user(const void* in, void* inout, std::size_t count, void* user) {
  const auto& [function, type] = *static_cast<const User*>(user);
  const Slots slots = slots_of(*type);
  const std::int64_t most = slots.separate ? 1 : most_at_once(function), all = static_cast<std::int64_t>(count);
  auto* left = const_cast<char*>(static_cast<const char*>(in)) - slots.shift;
  auto* right = static_cast<char*>(inout) - slots.shift;
  for (std::int64_t done = 0; done < all;) {
    const std::int64_t step = std::min(most, all - done);
    const std::size_t place = static_cast<std::size_t>(done) * slots.pitch;
    call_once(function, left + place, right + place, step, type->handle);
    done += step;
  }
}

void Staging::deliver() const {
  for (const Copied& one : copied_) {
    if (one.is_input || is_settled_) continue;
    if (one.slots) {
      copy_slots(one.program, one.copy, false);
    } else {
      unpack(payload_of(one.program), 0, one.program.size(), one.copy);
    }
  }
}

void Staging::settle() {
  if (!is_kept_) return reset();
  is_settled_ = true;
}

void Staging::reset() {
  for (const Copied& one : copied_) drop_reference(*const_cast<Type*>(one.program.type));
  copied_.clear();
  is_kept_ = is_settled_ = false;
  user_.reset();
  input_.reset();
  output_.reset();
}

}  // namespace canele::mpi
