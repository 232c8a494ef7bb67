// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory in the C ABI: descriptions, questions, and what the calls for messages do with it.
#include <canele/device.h>

#include "comm/api/device_use.hpp"

namespace canele::comm::api {
namespace {

/// Returns an invalid description, which a post rejects: it is longer than memory can be.
canele_data_t invalid_data() { return {SIZE_MAX, nullptr, nullptr, nullptr}; }

/// Translates an answer of comm/device.
int answer_of(const device::Answer& answer, const char* call) {
  return answer.code == CANELE_OK ? CANELE_OK : error(answer.code, std::string(call) + ": " + answer.why);
}

std::optional<int> answer_of(const std::optional<device::Answer>& answer, const char* call) {
  return answer.has_value() ? std::optional<int>(answer_of(*answer, call)) : std::nullopt;
}

/// Checks a description in a process without devices. Empty: all of it is host memory.
std::optional<int> check_without_devices(const canele_data_t& data, const char* call) {
  device::Layout layout;
  const device::Answer answer = layout.describe(nullptr, data);
  return answer.code == CANELE_OK ? std::nullopt : std::optional<int>(answer_of(answer, call));
}

}  // namespace

std::optional<int> send_by_device(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
                                  const SendOptions& options, Request& request, const char* call) {
  Engine& engine = engine_of(*session.context);
  if (!device::present(engine)) return check_without_devices(data, call);
  const bool synchronous = (options.flags & CANELE_SEND_SYNCHRONOUS) != 0;
  return answer_of(device::of(engine).send(
                       {session, destination, tag, data, options.priority, synchronous, options.header}, request),
                   call);
}

std::optional<int> receive_by_device(const Posting& posting, const char* call) {
  Engine& engine = engine_of(*posting.session->context);
  if (!device::present(engine)) return check_without_devices(posting.data, call);
  return answer_of(device::of(engine).receive(posting), call);
}

std::optional<int> multicast_by_device(Session& session, std::uint64_t tag, const canele_data_t& data,
                                       std::size_t header, std::unique_ptr<Multicast>& multicast, Request& request) {
  constexpr const char* call = "canele_imulticast";
  Engine& engine = engine_of(*session.context);
  if (!device::present(engine)) return check_without_devices(data, call);
  const device::SendToPost what{session, device::every_rank, tag, data, 0, false, header};
  return answer_of(device::of(engine).multicast(what, multicast, request), call);
}

std::optional<int> bind_by_device(Request& request, const canele_data_t& data, const char* call) {
  Engine& engine = engine_of(*request.context);
  if (!device::present(engine)) return check_without_devices(data, call);
  return answer_of(device::of(engine).bind(request, data), call);
}

int reject_if_on_device(Engine& engine, const canele_data_t& data, const char* call) {
  const std::string why = device::reject_device_data(engine, data);
  return why.empty() ? CANELE_OK : error(CANELE_EINVAL, std::string(call) + ": " + why);
}

int reject_if_on_device(Engine& engine, const void* address, const char* call) {
  const std::string why = device::reject_device_memory(engine, address);
  return why.empty() ? CANELE_OK : error(CANELE_EINVAL, std::string(call) + ": " + why);
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

canele_data_t canele_data_device(const canele_device_data_t* all) {
  if (all == nullptr || all->struct_size != sizeof *all || (all->count != 0 && all->pieces == nullptr))
    return invalid_data();
  size_t length = 0;
  for (size_t i = 0; i < all->count; ++i) {
    const canele_device_piece_t& piece = all->pieces[i];
    size_t bytes = 0;
    if (__builtin_mul_overflow(piece.width, piece.rows != 0 ? piece.rows : 1, &bytes) ||
        __builtin_add_overflow(length, bytes, &length))
      return invalid_data();
  }
  return {length, nullptr, device::device_segments, all};
}

int canele_device_support(canele_engine_t* engine, int kind) try {
  constexpr const char* call = "canele_device_support";
  if (engine == nullptr) return missing(call, "engine");
  if (fork::in_child) return reject_in_child(call);
  if (kind < CANELE_MEMORY_HOST || kind > CANELE_MEMORY_CUDA)
    return error(CANELE_EINVAL, std::string(call) + ": kind is " + std::to_string(kind) +
                                    "; expected: CANELE_MEMORY_HOST or CANELE_MEMORY_CUDA");
  std::string why;
  if (kind == CANELE_MEMORY_HOST || device::find(engine_of(engine), &why)) return 1;
  error(CANELE_EINVAL, std::string(call) + ": " + why);
  return 0;
} catch (...) {
  return caught();
}

int canele_device_copy(canele_engine_t* engine, const canele_data_t* to, const canele_data_t* from) try {
  constexpr const char* call = "canele_device_copy";
  if (engine == nullptr) return missing(call, "engine");
  int code = check_data(to, call);
  if (code == CANELE_OK) code = check_data(from, call);
  if (code != CANELE_OK) return code;
  if (fork::in_child) return reject_in_child(call);
  if (to->length != from->length)
    return error(CANELE_EINVAL, std::string(call) + ": `to` has " + std::to_string(to->length) +
                                    " bytes; expected: as many as `from`, " + std::to_string(from->length));
  Engine& e = engine_of(engine);
  if (!device::present(e)) return error(CANELE_EINVAL, call, "no device is in use (canele_device_support tells why)");
  return answer_of(device::of(e).copy(*to, *from), call);
} catch (...) {
  return caught();
}

int canele_device_kind_of(canele_engine_t* engine, const void* address, int* kind, int* device) try {
  constexpr const char* call = "canele_device_kind_of";
  if (engine == nullptr) return missing(call, "engine");
  if (fork::in_child) return reject_in_child(call);
  Engine& e = engine_of(engine);
  canele::drivers::MemoryPlace place;
  const bool on_device = device::present(e) && device::of(e).memory().locate(address, &place);
  if (kind != nullptr) *kind = on_device ? CANELE_MEMORY_CUDA : CANELE_MEMORY_HOST;
  if (device != nullptr) *device = on_device ? place.device : -1;
  return CANELE_OK;
} catch (...) {
  return caught();
}
