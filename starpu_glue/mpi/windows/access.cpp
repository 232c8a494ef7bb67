// SPDX-License-Identifier: BSD-3-Clause
//
// Put, get, and atomic operations on one element.
#include "starpu_glue/mpi/windows/access.hpp"

#include <cstring>

#include "starpu_glue/mpi/core/device.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/operation.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/accumulate.hpp"
#include "starpu_glue/mpi/windows/direct.hpp"
#include "starpu_glue/mpi/windows/place.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"

namespace canele::mpi {
namespace {

/// canele_put or canele_get.
using PostFunction = int (*)(canele_key_t*, std::uint64_t, const canele_data_t*, const canele_access_options_t*,
                             canele_request_t*);

/// Posts `length` bytes between an origin's data and a place: as one operation if the engine can describe the place,
/// else one for each block. A request is that of the only operation, or of a flush behind all of them.
int post_transfer(Window& window, PostFunction post, Source& source, const Place& place, std::size_t length,
                  AccessRequest* request) {
  canele_access_options_t options = access_options(window);
  const bool is_only = place.is_one_block() || place.describe_strides(length, &options);
  canele_request_t* const of_only = request_of_operation(is_only, request);
  const auto post_part = [&](canele_key_t* key, std::uint64_t offset, std::size_t from, std::size_t bytes) {
    const canele_data_t data = source.part(from, bytes);
    return from_engine(post(key, offset, &data, &options, of_only));
  };
  const int code = is_only ? post_part(place.key(), place.offset(), 0, length) : place.each_block(length, post_part);
  source.posted(window);
  place.target()->pending.note_posted();
  return finish_request(window, place, is_only, request, code);
}

/// Copies between the program's data and memory of the target that is mapped here.
int copy_directly(const Buffer& here, const Buffer& there, bool is_put) {
  if (here.type->dense && there.type->dense) {
    char* const mine = static_cast<char*>(here.memory) + here.type->single.first;
    char* const its = static_cast<char*>(there.memory) + there.type->single.first;
    is_put ? write_target(its, mine, here.size()) : read_target(mine, its, there.size());
    return MPI_SUCCESS;
  }
  std::atomic_thread_fence(std::memory_order_release);
  const int code = is_put ? copy_local(here, there) : copy_local(there, here);
  std::atomic_thread_fence(std::memory_order_acquire);
  return code;
}

int too_long(std::size_t length, std::size_t room) {
  return fail(MPI_ERR_TRUNCATE, "%zu bytes of data for a place of %zu bytes", length, room);
}

int transfer(Window& window, PostFunction post, const OriginData& origin, const TargetData& target,
             AccessRequest* request) {
  Buffer buffer;
  int code = get_buffer(origin.memory, origin.count, origin.type, &buffer);
  if (code == MPI_SUCCESS) code = check_host_buffer(buffer, "the origin");
  Place place;
  if (code == MPI_SUCCESS) code = place.find(window, target, Cut::bytes);
  if (code != MPI_SUCCESS || place.target() == nullptr) return code;
  const bool is_put = post == &canele_put;
  const std::size_t here = buffer.size(), there = place.length(), length = is_put ? here : there;
  if (length > (is_put ? there : here)) return too_long(length, is_put ? there : here);
  if (length == 0) return MPI_SUCCESS;
  if (const Buffer mapped = place.in_process(); mapped.memory != nullptr) return copy_directly(buffer, mapped, is_put);
  Source source(window, target.rank, buffer);
  return post_transfer(window, post, source, place, length, request);
}

/// An element of a predefined type, as a call of MPI_Fetch_and_op or MPI_Compare_and_swap names it.
struct Element {
  Place place;
  std::size_t size = 0;
  std::uint64_t offset = 0;
};

int find_element(Window& window, const TargetData& target, Element* element) {
  if (const int code = element->place.find(window, target, Cut::elements); code != MPI_SUCCESS) return code;
  const Type& type = element->place.type();
  if (!type.predefined || type.size == 0)
    return fail(MPI_ERR_TYPE, "the datatype is not predefined; an atomic operation takes one element");
  if (element->place.target() == nullptr) return MPI_SUCCESS;
  element->size = type.size;
  element->offset = element->place.offset();
  if (element->offset % type.alignment == 0) return MPI_SUCCESS;
  return fail(MPI_ERR_DISP, "the element of %zu bytes is not aligned", type.size);
}

bool is_integer(Basic basic) { return basic >= Basic::i8 && basic <= Basic::u64; }

/// Applies an atomic operation to the element. `result` gets what it was, at once or before the end of a flush.
int post_atomic(Window& window, const Element& element, canele_atomic_operation operation, std::uint64_t operand,
                std::uint64_t compare, void* result) {
  WindowTarget& target = *element.place.target();
  if (target.address != nullptr && !target.pending.any()) {
    const std::uint64_t before =
        apply_directly(target.address + element.offset, operation, element.size, operand, compare);
    std::memcpy(result, &before, element.size);
    return MPI_SUCCESS;
  }
  const canele_access_options_t options = access_options(window);
  const int error = canele_atomic(element.place.key(), element.offset, operation, element.size, operand, compare,
                                  result, &options, nullptr);
  target.pending.note_posted();
  return error == CANELE_OK ? limit_pending(window, element.place.rank()) : from_engine(error);
}

/// Applies an atomic operation to a word and waits for the result.
int apply(Window& window, const Place& place, std::uint64_t offset, canele_atomic_operation operation,
          std::uint32_t operand, std::uint32_t compare, std::uint32_t* before) {
  const canele_access_options_t options = access_options(window);
  canele_request_t request{};
  const int error =
      canele_atomic(place.key(), offset, operation, sizeof *before, operand, compare, before, &options, &request);
  return error != CANELE_OK ? from_engine(error) : await_access(request, canele_key_rank(place.key()));
}

/// Compares and swaps an element that is smaller than the words of the engine: changes the word around it, as long as
/// the element is what `compare` says.
int swap_in_word(Window& window, const Element& element, const void* origin, const void* compare, void* result) {
  std::uint32_t before = 0, expected = 0;
  const std::uint64_t word = element.offset & ~std::uint64_t{sizeof before - 1};
  const auto part = static_cast<std::ptrdiff_t>(element.offset - word);
  const auto bytes_of = [part](std::uint32_t& value) { return reinterpret_cast<char*>(&value) + part; };
  int code = apply(window, element.place, word, CANELE_ATOMIC_READ, 0, 0, &before);
  while (code == MPI_SUCCESS) {
    std::memcpy(result, bytes_of(before), element.size);
    if (std::memcmp(result, compare, element.size) != 0) return MPI_SUCCESS;
    expected = before;
    std::uint32_t wanted = before;
    std::memcpy(bytes_of(wanted), origin, element.size);
    code = apply(window, element.place, word, CANELE_ATOMIC_COMPARE_AND_SWAP, wanted, expected, &before);
    if (before == expected) return code;
  }
  return code;
}

}  // namespace

bool find_word_operation(MPI_Op op, const Type& type, canele_atomic_operation* operation) {
  if (type.size != 4 && type.size != 8) return false;
  switch (number_of(op)) {
    case OperatorNumber::no_op:
      *operation = CANELE_ATOMIC_READ;
      return true;
    case OperatorNumber::replace:
      *operation = CANELE_ATOMIC_SWAP;
      return true;
    case OperatorNumber::sum:
      *operation = CANELE_ATOMIC_ADD;
      return is_integer(type.basic);
    case OperatorNumber::band:
      *operation = CANELE_ATOMIC_AND;
      return is_integer(type.basic);
    case OperatorNumber::bor:
      *operation = CANELE_ATOMIC_OR;
      return is_integer(type.basic);
    case OperatorNumber::bxor:
      *operation = CANELE_ATOMIC_XOR;
      return is_integer(type.basic);
    default:
      return false;
  }
}

bool can_be_compared(const Type& type) {
  return is_integer(type.basic) || type.basic == Basic::boolean || type.basic == Basic::byte;
}

std::uint64_t word_at(const void* address, std::size_t size) {
  std::uint32_t half = 0;
  std::uint64_t whole = 0;
  if (size == sizeof half) {
    std::memcpy(&half, address, sizeof half);
    return half;
  }
  std::memcpy(&whole, address, sizeof whole);
  return whole;
}

int put(Window& window, const OriginData& origin, const TargetData& target, AccessRequest* request) {
  return transfer(window, &canele_put, origin, target, request);
}

int get(Window& window, const OriginData& origin, const TargetData& target, AccessRequest* request) {
  return transfer(window, &canele_get, origin, target, request);
}

int fetch_and_op(Window& window, const void* origin, void* result, const TargetData& target, MPI_Op op) {
  Element element;
  int code = find_element(window, target, &element);
  if (code == MPI_SUCCESS && op != MPI_NO_OP) code = check_host_buffer(origin, "the origin");
  if (code == MPI_SUCCESS) code = check_host_buffer(result, "the result");
  if (code != MPI_SUCCESS || element.place.target() == nullptr) return code;
  canele_atomic_operation operation{};
  if (!find_word_operation(op, element.place.type(), &operation) || element.offset % element.size != 0) {
    const OriginData before{result, 1, target.type};
    return accumulate(window, {origin, 1, target.type}, &before, target, op, nullptr);
  }
  const std::uint64_t operand = operation == CANELE_ATOMIC_READ ? 0 : word_at(origin, element.size);
  return post_atomic(window, element, operation, operand, 0, result);
}

int compare_and_swap(Window& window, const void* origin, const void* compare, void* result, const TargetData& target) {
  Element element;
  int code = find_element(window, target, &element);
  if (code == MPI_SUCCESS) code = check_host_buffer(origin, "the origin");
  if (code == MPI_SUCCESS) code = check_host_buffer(compare, "the value to compare with");
  if (code == MPI_SUCCESS) code = check_host_buffer(result, "the result");
  if (code != MPI_SUCCESS) return code;
  if (!can_be_compared(element.place.type()))
    return fail(MPI_ERR_TYPE, "%s cannot be compared; expected: an integer, a logical type or MPI_BYTE",
                element.place.type().fixed_name);
  if (element.place.target() == nullptr) return MPI_SUCCESS;
  if (element.size < sizeof(std::uint32_t)) return swap_in_word(window, element, origin, compare, result);
  return post_atomic(window, element, CANELE_ATOMIC_COMPARE_AND_SWAP, word_at(origin, element.size),
                     word_at(compare, element.size), result);
}

}  // namespace canele::mpi
