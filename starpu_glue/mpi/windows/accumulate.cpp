// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates, on the engine's operations.
//
// A pair such as MPI_DOUBLE_INT has fewer bytes than the engine's structure, which has padding. It is combined element
// by element, in copies that have the padding.
#include "starpu_glue/mpi/windows/accumulate.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "starpu_glue/mpi/core/device.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/datatypes/operation.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/direct.hpp"
#include "starpu_glue/mpi/windows/place.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"

namespace canele::mpi {
namespace {

/// An accumulate, checked.
struct Accumulate {
  Buffer origin, result;  ///< type is null if there is none
  Place place;
  const Type* element_type = nullptr;  ///< predefined
  std::size_t length = 0;              ///< packed bytes
  int operation = 0;                   ///< enum canele_operation, CANELE_REPLACE or CANELE_NO_OP
  canele_element element{};

  bool reads_only() const { return operation == CANELE_NO_OP; }
  /// Bytes of an element in memory.
  std::size_t pitch() const { return static_cast<std::size_t>(element_type->extent()); }
};

Payload payload_of_elements(const Buffer& buffer) {
  return {buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type};
}

/// Returns the address of the first byte of data without gaps.
char* first_byte(const Buffer& buffer) {
  const Payload payload = payload_of_elements(buffer);
  return payload.base + payload.layout.first;
}

/// Checks that the elements of a buffer are those of the target. Sets *type to their predefined type.
int check_elements(const Buffer& buffer, const Type** type) {
  const Type* const found = buffer.type->element;
  if (found == nullptr)
    return fail(MPI_ERR_TYPE, "the datatype of an accumulate does not consist of one predefined type");
  if (*type != nullptr && *type != found)
    return fail(MPI_ERR_TYPE, "the datatypes of an accumulate consist of %s and %s; expected: of one predefined type",
                (*type)->fixed_name, found->fixed_name);
  *type = found;
  return MPI_SUCCESS;
}

/// Checks the arguments of a call, and makes its target ready.
int read_call(Window& window, const OriginData& origin, const OriginData* result, const TargetData& target, MPI_Op op,
              Accumulate* call) {
  Buffer there;
  int code = get_buffer(nullptr, target.count, target.type, &there);
  if (code == MPI_SUCCESS && op != MPI_NO_OP)
    code = get_buffer(origin.memory, origin.count, origin.type, &call->origin);
  if (code == MPI_SUCCESS) code = check_host_buffer(call->origin, "the origin");
  if (code == MPI_SUCCESS && result != nullptr)
    code = get_buffer(result->memory, result->count, result->type, &call->result);
  if (code == MPI_SUCCESS) code = check_host_buffer(call->result, "the result");
  for (const Buffer* const buffer : {&there, &call->origin, &call->result}) {
    if (code == MPI_SUCCESS && buffer->type != nullptr && buffer->size() != 0)
      code = check_elements(*buffer, &call->element_type);
  }
  if (code == MPI_SUCCESS && call->element_type != nullptr)
    code = get_target_operation(op, *call->element_type, &call->operation, &call->element);
  if (code != MPI_SUCCESS) return code;
  call->length = op == MPI_NO_OP ? there.size() : call->origin.size();
  if (call->length > there.size() || (result != nullptr && call->length > call->result.size()))
    return fail(MPI_ERR_TRUNCATE, "%zu bytes of data, for a target of %zu bytes", call->length, there.size());
  return call->place.find(window, target, Cut::elements);
}

int check_alignment(const Accumulate& call, std::uint64_t offset) {
  if (offset % call.element_type->alignment == 0) return MPI_SUCCESS;
  return fail(MPI_ERR_DISP, "an element of %s is not aligned", call.element_type->fixed_name);
}

/// Posts the operation for each block. operand(from, bytes) gives its data, `before` is where its former elements go.
template <class Operand>
int post_accumulates(Window& window, const Accumulate& call, char* before, Operand operand, canele_request_t* request) {
  const canele_access_options_t options = access_options(window);
  const auto post = [&](canele_key_t* key, std::uint64_t offset, std::size_t from, std::size_t bytes) {
    if (const int code = check_alignment(call, offset); code != MPI_SUCCESS) return code;
    const canele_data_t data = operand(from, bytes);
    return from_engine(canele_accumulate(key, offset, &data, call.operation, call.element,
                                         before != nullptr ? before + from : nullptr, &options, request));
  };
  const int code = call.place.each_block(call.length, post);
  call.place.target()->pending.note_posted();
  return code;
}

/// Combines by operations on the program's memory.
int accumulate_in_place(Window& window, Accumulate& call, int rank, AccessRequest* request) {
  char* const before = call.result.type == nullptr ? nullptr : first_byte(call.result);
  const bool is_only = call.place.is_one_block();
  canele_request_t* const of_only = request_of_operation(is_only, request);
  int code = MPI_SUCCESS;
  if (call.reads_only()) {
    code = post_accumulates(
        window, call, before,
        [before](std::size_t from, std::size_t bytes) { return canele_data_contiguous(before + from, bytes); },
        of_only);
  } else {
    Source source(window, rank, call.origin);
    code = post_accumulates(
        window, call, before, [&source](std::size_t from, std::size_t bytes) { return source.part(from, bytes); },
        of_only);
    source.posted(window);
  }
  return finish_request(window, call.place, is_only, request, code);
}

/// Copies an element of a predefined type between packed positions of two payloads.
void copy_element(const Payload& from, std::size_t from_position, const Payload& to, std::size_t to_position,
                  std::size_t size) {
  constexpr std::size_t kMost = 32;  // no predefined type has more bytes
  char packed[kMost];
  pack(from, from_position, std::min(size, kMost), packed);
  unpack(to, to_position, std::min(size, kMost), packed);
}

/// Combines by operations on copies of the elements, which are laid out as the engine wants them, and waits.
int accumulate_copies(Window& window, Accumulate& call, int rank) {
  if (const int code = may_block(); code != MPI_SUCCESS) return code;
  const Type& type = *call.element_type;
  const std::size_t size = type.size, pitch = call.pitch(), count = call.length / size;
  const std::unique_ptr<char[]> operands(new (std::nothrow) char[count * pitch]());
  const std::unique_ptr<char[]> before(new (std::nothrow) char[count * pitch]());
  if (operands == nullptr || before == nullptr)
    return fail(MPI_ERR_NO_MEM, "no memory for copies of %zu elements", count);
  for (std::size_t i = 0; i < count && !call.reads_only(); ++i)
    copy_element(payload_of_elements(call.origin), i * size, Payload(operands.get() + i * pitch, 1, type), 0, size);
  const canele_access_options_t options = access_options(window);
  const auto post = [&](canele_key_t* key, std::uint64_t offset, std::size_t from) {
    if (const int code = check_alignment(call, offset); code != MPI_SUCCESS) return code;
    const std::size_t place = from / size * pitch;
    const canele_data_t data = canele_data_contiguous(operands.get() + place, pitch);
    return from_engine(
        canele_accumulate(key, offset, &data, call.operation, call.element, before.get() + place, &options, nullptr));
  };
  const int posted = call.place.each_element(call.length, post);
  call.place.target()->pending.note_posted();
  const int code = flush_window(window, rank);  // also after an error: the copies end here
  if (posted != MPI_SUCCESS || code != MPI_SUCCESS) return posted != MPI_SUCCESS ? posted : code;
  for (std::size_t i = 0; i < count && call.result.type != nullptr; ++i)
    copy_element(Payload(before.get() + i * pitch, 1, type), 0, payload_of_elements(call.result), i * size, size);
  return MPI_SUCCESS;
}

/// Returns whether a result can be written where it belongs.
bool is_one_piece(const Buffer& result) { return result.type == nullptr || payload_of_elements(result).contiguous(); }

/// Combines one word by an atomic operation.
int accumulate_word(Window& window, Accumulate& call, canele_atomic_operation operation, AccessRequest* request) {
  const std::size_t size = call.element_type->size;
  WindowTarget& target = *call.place.target();
  char* const before = call.result.type == nullptr ? nullptr : first_byte(call.result);
  std::uint64_t operand = 0;
  if (!call.reads_only()) pack(payload_of_elements(call.origin), 0, size, &operand);
  if (target.address != nullptr && !target.pending.any()) {
    const std::uint64_t was =
        apply_directly(target.address + call.place.offset(), operation, size, word_at(&operand, size), 0);
    if (before != nullptr) std::memcpy(before, &was, size);
    return MPI_SUCCESS;
  }
  const canele_access_options_t options = access_options(window);
  if (request != nullptr) request->is_posted = true;
  const int error = canele_atomic(call.place.key(), call.place.offset(), operation, size, word_at(&operand, size), 0,
                                  before, &options, request != nullptr ? request->request : nullptr);
  target.pending.note_posted();
  if (error != CANELE_OK || request != nullptr) return from_engine(error);
  return limit_pending(window, call.place.rank());
}

}  // namespace

int accumulate(Window& window, const OriginData& origin, const OriginData* result, const TargetData& target, MPI_Op op,
               AccessRequest* request) {
  Accumulate call;
  const int code = read_call(window, origin, result, target, op, &call);
  if (code != MPI_SUCCESS || call.place.target() == nullptr || call.length == 0) return code;
  if (call.reads_only() && result == nullptr) return MPI_SUCCESS;
  canele_atomic_operation operation{};
  if (call.length == call.element_type->size && call.place.is_one_block() && is_one_piece(call.result) &&
      find_word_operation(op, *call.element_type, &operation) && call.place.offset() % call.length == 0)
    return accumulate_word(window, call, operation, request);
  const bool is_padded = call.element_type->size != call.pitch();
  if (is_padded || !is_one_piece(call.result)) return accumulate_copies(window, call, target.rank);
  return accumulate_in_place(window, call, target.rank, request);
}

}  // namespace canele::mpi
