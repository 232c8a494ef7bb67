// SPDX-License-Identifier: BSD-3-Clause
//
// Staging: decides what goes directly to the engine and what is copied, and calls the program's operators.
//
// In reductions, gaps between the bytes of a type are sent as zeros; elsewhere they are not sent. Gaps in the program's
// memory are never written.
#include "starpu_glue/mpi/datatypes/staging.hpp"

#include <algorithm>
#include <climits>
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
  if (blocks.counts == nullptr) {
    const Payload payload = payload_of(together(blocks));
    engine->memory = payload.base + payload.layout.first;
    return payload.contiguous();
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
  if (blocks.counts == nullptr) {
    engine->parts.length = blocks.block(0).size();
    return together(blocks).size();
  }
  std::size_t sum = 0;
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
  if (blocks.counts == nullptr) return visit(together(blocks), packed);
  for (int rank = 0; rank < blocks.ranks; ++rank) {
    const Buffer block = blocks.block(rank);
    visit(block, packed);
    packed += block.size();
  }
}

void pack_all(const Blocks& blocks, char* packed) {
  each_packed(blocks, packed,
              [](const Buffer& block, char* place) { pack(payload_of(block), 0, block.size(), place); });
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

}  // namespace

Buffer Blocks::block(int rank) const {
  if (counts == nullptr) return Buffer{memory, count, type}.block(rank);
  const Type* own = types == nullptr ? type : find_type(types[rank]);
  const std::ptrdiff_t place = places[rank] * (types == nullptr ? own->extent() : 1);
  return {memory + place, counts[rank], own};
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
  pack_all(blocks, input_.get());
  return MPI_SUCCESS;
}

int Staging::output(const Blocks& blocks, bool filled, EngineBlocks* engine) {
  const std::size_t length = measure(blocks, engine);
  if (use_directly(blocks, engine)) return MPI_SUCCESS;
  if (const int code = make_room(length, &output_); code != MPI_SUCCESS) return code;
  engine->memory = output_.get();
  if (filled) pack_all(blocks, output_.get());
  each_packed(blocks, output_.get(),
              [this](const Buffer& block, const char* place) { add_target(block, place, false); });
  return MPI_SUCCESS;
}

int Staging::input(std::span<const Buffer> blocks, EngineBlocks* engine) {
  const std::optional<std::size_t> length = place_each(blocks, engine);
  if (!length.has_value()) return MPI_SUCCESS;
  if (const int code = make_room(*length, &input_); code != MPI_SUCCESS) return code;
  engine->memory = input_.get();
  for (std::size_t i = 0; i < blocks.size(); ++i)
    pack(payload_of(blocks[i]), 0, blocks[i].size(), input_.get() + engine->offsets[i]);
  return MPI_SUCCESS;
}

int Staging::output(std::span<const Buffer> blocks, EngineBlocks* engine) {
  const std::optional<std::size_t> length = place_each(blocks, engine);
  if (!length.has_value()) return MPI_SUCCESS;
  if (const int code = make_room(*length, &output_); code != MPI_SUCCESS) return code;
  engine->memory = output_.get();
  for (std::size_t i = 0; i < blocks.size(); ++i) add_target(blocks[i], output_.get() + engine->offsets[i], false);
  return MPI_SUCCESS;
}

void Staging::combine_with(const Operator& op, const Type& type, canele_operator_t* engine) {
  if (op.user == nullptr) {
    *engine = op.predefined;
    return;
  }
  user_ = std::make_unique<UserOperator>(UserOperator{op.user, const_cast<Type*>(&type)});
  add_reference(*user_->type);
  *engine = {call_user, user_.get(), slots_of(type).pitch, op.commutes ? 1 : 0};
}

int Staging::input_slots(const Buffer& elements, const void** engine) {
  const Slots slots = slots_of(*elements.type);
  *engine = elements.memory;
  if (elements.count == 0) return MPI_SUCCESS;
  *engine = static_cast<const char*>(elements.memory) + slots.shift;
  if (slots.dense) return MPI_SUCCESS;
  const int code = make_room(slots.pitch * static_cast<std::size_t>(elements.count), &input_);
  if (code != MPI_SUCCESS) return code;
  copy_slots(elements, input_.get(), true);
  *engine = input_.get();
  return MPI_SUCCESS;
}

int Staging::output_slots(const Buffer& elements, std::int64_t results, bool filled, void** engine) {
  const Slots slots = slots_of(*elements.type);
  *engine = elements.memory;
  if (elements.count == 0) return MPI_SUCCESS;
  *engine = static_cast<char*>(elements.memory) + slots.shift;
  if (slots.dense) return MPI_SUCCESS;
  const int code = make_room(slots.pitch * static_cast<std::size_t>(elements.count), &output_);
  if (code != MPI_SUCCESS) return code;
  if (filled) copy_slots(elements, output_.get(), true);
  add_target({elements.memory, results, elements.type}, output_.get(), true);
  *engine = output_.get();
  return MPI_SUCCESS;
}

void Staging::add_target(const Buffer& to, const char* from, bool slots) {
  add_reference(*const_cast<Type*>(to.type));
  targets_.push_back({to, from, slots});
}

void Staging::call_user(const void* in, void* inout, std::size_t count, void* user_operator) {
  const auto& self = *static_cast<const UserOperator*>(user_operator);
  const Slots slots = slots_of(*self.type);
  const std::size_t most = slots.separate ? 1 : INT_MAX;
  auto* left = const_cast<char*>(static_cast<const char*>(in)) - slots.shift;
  auto* right = static_cast<char*>(inout) - slots.shift;
  for (std::size_t done = 0; done < count;) {
    int step = static_cast<int>(std::min(most, count - done));
    MPI_Datatype handle = self.type->handle;
    self.function(left + done * slots.pitch, right + done * slots.pitch, &step, &handle);
    done += std::min(most, count - done);
  }
}

void Staging::deliver() const {
  for (const Target& target : targets_) {
    if (target.slots) {
      copy_slots(target.to, const_cast<char*>(target.from), false);
    } else {
      unpack(payload_of(target.to), 0, target.to.size(), target.from);
    }
  }
}

void Staging::reset() {
  for (const Target& target : targets_) drop_reference(*const_cast<Type*>(target.to.type));
  targets_.clear();
  if (user_ != nullptr) drop_reference(*user_->type);
  user_.reset();
  input_.reset();
  output_.reset();
  steps_.reset();
}

}  // namespace canele::mpi
