// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts of the C ABI.
//
// Any thread. All destinations are checked here: if one is invalid, nothing is sent to any. A short message to
// destinations on memory rails is sent before the call returns, as if by one send to each. Destinations that this fast
// path cannot serve get the message from multicast.cpp. The call copies the data itself if that saves a copy by the
// kernel for each of several destinations.
#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/multicast/multicast.hpp"
#include "comm/post/copy_to_broadcast_segment.hpp"
#include "comm/protocol/send_fast.hpp"

namespace canele::comm::api {
namespace {

int rejected(int code, const std::string& why) {
  std::string text = "canele_imulticast: ";
  return error(code, text += why);
}

int check_options(const canele_multicast_options_t& options, const canele_data_t& data) {
  if (options.shape < CANELE_SHAPE_AUTO || options.shape > CANELE_SHAPE_8_NOMIAL) {
    return rejected(CANELE_EINVAL,
                    "shape is " + std::to_string(options.shape) + "; expected: a value of enum canele_shape");
  }
  return check_header(options.header, data.length, "canele_imulticast");
}

constexpr std::size_t few = 16;  // maximum number of destinations that are compared with each other

bool is_another(const Engine& engine, int rank) { return rank >= 0 && rank < engine.size && rank != engine.rank; }

/// Returns true for few and valid destinations. (Plain loops here and below: the compiler unrolls a standard algorithm,
/// and a short message would run through four copies of it.)
bool are_few_and_right(const Engine& engine, const int* ranks, std::size_t count) {
  if (count > few) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_another(engine, ranks[i])) return false;
    for (std::size_t before = 0; before < i; ++before) {
      if (ranks[before] == ranks[i]) return false;
    }
  }
  return true;
}

int check_destinations(const Engine& engine, const int* ranks, std::size_t count) {
  if (count >= static_cast<std::size_t>(engine.size)) {
    return rejected(CANELE_EINVAL, std::to_string(count) + " destinations; expected: at most " +
                                       std::to_string(engine.size - 1) + ", each other rank once");
  }
  if (are_few_and_right(engine, ranks, count)) return CANELE_OK;
  std::vector<int> sorted(ranks, ranks + count);
  std::sort(sorted.begin(), sorted.end());
  for (const int rank : sorted) {
    if (!is_another(engine, rank)) {
      return rejected(CANELE_ERANK, "destination " + std::to_string(rank) + "; expected: ranks 0 to " +
                                        std::to_string(engine.size - 1) + " without the caller");
    }
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return CANELE_OK;
  return rejected(CANELE_EINVAL, "rank " + std::to_string(*twice) + " is named twice");
}

/// Returns true if the options are valid and ask for nothing that a loop of sends would not do.
bool is_plain(const canele_multicast_options_t& options) {
  return options.struct_size == sizeof options && options.header == 0 && options.priorities == nullptr &&
         options.shape >= CANELE_SHAPE_AUTO && options.shape <= CANELE_SHAPE_8_NOMIAL;
}

/// The arguments of a call.
struct Given {
  Session* session;
  const int* destinations;
  std::size_t count;
  std::uint64_t tag;
  const canele_data_t* data;
  const canele_multicast_options_t* options;
  Request* request;
};

bool may_send_fast(const Given& given) {
  const canele_data_t* const data = given.data;
  return postable_fast(given.request, given.session) && is_unwatched(*given.request) && given.count != 0 &&
         given.destinations != nullptr && data != nullptr && data->length <= Rail::longest_fast &&
         (data->length == 0 || data->base != nullptr) && data->segments == nullptr &&
         (given.options == nullptr || is_plain(*given.options)) &&
         are_few_and_right(engine_of(*given.session->context), given.destinations, given.count);
}

/// Sends to one destination after the other if all paths are clear. Returns the number of sends. After a send to all
/// destinations the request has ended.
[[gnu::always_inline]] inline std::size_t try_send_fast(const Given& given) {
  if (!may_send_fast(given) || !engine_of(*given.session->context).try_lock_to_post()) return 0;
  Session& session = *given.session;
  Engine& engine = engine_of(*session.context);
  const int* const destinations = given.destinations;
  const std::size_t length = given.data->length;
  std::size_t sent = 0;
  bool clear = true;
  for (std::size_t i = 0; i < given.count; ++i)
    clear = clear && send_path::can_send_fast(engine.peers[destinations[i]], session, length);
  while (clear && sent < given.count &&
         send_path::try_send_fast(engine, destinations[sent], {session, given.tag, given.data->base, length})) {
    ++sent;
  }
  if (sent == given.count) {
    CANELE_COVER(multicast_sent_fast);
    engine.counters.add(Counter::multicasts_sent);
    end_as_send(*given.request, session, engine.rank, given.tag, length);
  }
  engine.unlock_idle();
  if (given.options != nullptr && given.options->outcomes != nullptr) [[unlikely]]
    std::fill_n(given.options->outcomes, sent, CANELE_OK);
  return sent;
}

int check(const Given& given, const canele_multicast_options_t& options) {
  if (!postable(given.request, given.session)) return reject(given.request, given.session);
  if (fork::in_child) return reject_in_child("canele_imulticast");
  if (given.count != 0 && given.destinations == nullptr) {
    return rejected(CANELE_EINVAL, "count is not 0 but destinations is NULL");
  }
  int code = check_data(given.data, "canele_imulticast");
  if (code == CANELE_OK) code = check_options(options, *given.data);
  if (code == CANELE_OK) code = check_destinations(engine_of(*given.session->context), given.destinations, given.count);
  return code;
}

/// Posts the multicast to the destinations after the first `sent`. Out of line: otherwise the compiler would scatter
/// the code of a short message among this code.
[[gnu::noinline]] int post_multicast(const Given& given, std::size_t sent) {
  canele_multicast_options_t options{};
  options.struct_size = sizeof options;
  if (given.options != nullptr) {
    const int code = check_size(given.options, given.options->struct_size, sizeof options, "canele_imulticast",
                                "canele_multicast_options_t");
    if (code != CANELE_OK) return code;
    options = *given.options;
  }
  if (sent == 0) {
    if (const int code = check(given, options); code != CANELE_OK) return code;
  }
  // Only a full ring can stop the fast path in the middle; the rest becomes a multicast of its own.
  std::unique_ptr<Multicast> multicast(new (std::nothrow) Multicast);
  if (multicast == nullptr) return rejected(CANELE_ENOMEM, "no memory");
  multicast->ranks.assign(given.destinations + sent, given.destinations + given.count);
  multicast->priorities.assign(given.count - sent, options.priority);
  if (options.priorities != nullptr) multicast->priorities.assign(options.priorities, options.priorities + given.count);
  multicast->outcomes = options.outcomes != nullptr ? options.outcomes + sent : nullptr;
  multicast->shape = static_cast<multicast::Shape>(options.shape);
  multicast->kind = OpKind::call;
  multicast->call = multicast::begin;
  Engine& engine = engine_of(*given.session->context);
  if (concerns_devices(engine, *given.data)) [[unlikely]] {
    const auto code =
        multicast_by_device(*given.session, given.tag, *given.data, options.header, multicast, *given.request);
    if (code.has_value()) return *code;
  }
  multicast::copy_to_broadcast_segment(engine, *multicast, *given.data);
  prepare_send(*given.request, *given.session, engine.rank, given.tag, *given.data, options.header);
  multicast->request = given.request;
  engine.submit(*multicast.release());
  engine.after_submit();
  return CANELE_OK;
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_imulticast(canele_session_t* session, const int* destinations, size_t count, uint64_t tag,
                      const canele_data_t* data, const canele_multicast_options_t* options,
                      canele_request_t* request) try {
  static_assert(CANELE_SHAPE_8_NOMIAL == static_cast<int>(multicast::Shape::eight_nomial));
  const Given given{&session_of(session), destinations, count, tag, data, options, &request_of(request)};
  const std::size_t sent = try_send_fast(given);
  return sent == count && count != 0 ? CANELE_OK : post_multicast(given, sent);
} catch (...) {
  return caught();
}
