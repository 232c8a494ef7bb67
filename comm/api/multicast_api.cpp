// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts of the C ABI.
//
// Threads: any.
// Surprise: destinations are checked here, all of them: nothing is sent to any if one is wrong. A short message to
//     those that are reached through memory is gone when the call returns, as if it had been sent to each; what cannot
//     leave so goes the long way (multicast.cpp), for the destinations that are left; the data is copied in the call
//     where that spares each of several a copy by the kernel.
#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/multicast/multicast.hpp"
#include "comm/protocol/short_cut.hpp"

namespace canele::comm::api {
namespace {

int refused(int code, const std::string& why) {
  std::string text = "canele_imulticast: ";
  return error(code, text += why);
}

int check_options(const canele_multicast_options_t& options, const canele_data_t& data) {
  if (options.struct_size < sizeof options) {
    return refused(CANELE_EINVAL, "options->struct_size must be sizeof(canele_multicast_options_t)");
  }
  if (options.shape < CANELE_SHAPE_AUTO || options.shape > CANELE_SHAPE_8_NOMIAL) {
    return refused(CANELE_EINVAL, "there is no shape " + std::to_string(options.shape));
  }
  return check_header(options.header, data.length, "canele_imulticast");
}

constexpr std::size_t few = 16;  // destinations that are compared with each other

bool is_another(const Engine& engine, int rank) { return rank >= 0 && rank < engine.size && rank != engine.rank; }

/// Few, and nothing is wrong with them.
bool are_few_and_right(const Engine& engine, const int* ranks, std::size_t count) {
  if (count > few) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_another(engine, ranks[i])) return false;
    if (std::find(ranks, ranks + i, ranks[i]) != ranks + i) return false;
  }
  return true;
}

int check_destinations(const Engine& engine, const int* ranks, std::size_t count) {
  if (are_few_and_right(engine, ranks, count)) return CANELE_OK;
  std::vector<int> sorted(ranks, ranks + count);
  std::sort(sorted.begin(), sorted.end());
  for (const int rank : sorted) {
    if (!is_another(engine, rank)) {
      return refused(CANELE_ERANK, "destination " + std::to_string(rank) + ": ranks run from 0 to " +
                                       std::to_string(engine.size - 1) + ", and the caller is not one of them");
    }
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return CANELE_OK;
  return refused(CANELE_EINVAL, "rank " + std::to_string(*twice) + " is named twice");
}

/// Sends to one after the other if nothing stands in the way; to how many. If to all, the request is over.
std::size_t leave_at_once(Session& session, const int* destinations, std::size_t count, std::uint64_t tag,
                          const canele_data_t& data, const canele_multicast_options_t& options, Request& request) {
  Engine& engine = *session.engine;
  const bool simple = data.segments == nullptr && options.header == 0 && options.priorities == nullptr;
  if (count == 0 || data.length > Rail::longest_at_once || !is_unwatched(request) || !simple ||
      !engine.try_lock_to_post())
    return 0;
  std::size_t gone = 0;
  const bool clear = std::all_of(destinations, destinations + count, [&](int rank) {
    return send_path::way_is_clear(engine.peers[rank], session, data.length);
  });
  while (clear && gone < count &&
         send_path::leave_at_once(engine, session, destinations[gone], tag, data.base, data.length)) {
    ++gone;
  }
  if (gone == count) {
    CANELE_MARK(multicast_left_at_once);
    engine.counters.add(Counter::multicasts_sent);
    end_as_send(request, session, engine.rank, tag, data.length);
  }
  engine.unlock();
  if (options.outcomes != nullptr) std::fill_n(options.outcomes, gone, CANELE_OK);
  return gone;
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_imulticast(canele_session_t* session, const int* destinations, size_t count, uint64_t tag,
                      const canele_data_t* data, const canele_multicast_options_t* options, canele_request_t* request) {
  static_assert(CANELE_SHAPE_8_NOMIAL == static_cast<int>(multicast::Shape::eight_nomial));
  if (!postable(&request_of(request), &session_of(session))) return refuse(&request_of(request), &session_of(session));
  if (count != 0 && destinations == nullptr) {
    return refused(CANELE_EINVAL, "count is not 0 but destinations is NULL");
  }
  int code = check_data(data, "canele_imulticast");
  canele_multicast_options_t given{};
  given.struct_size = sizeof given;
  if (options != nullptr) given = *options;
  if (code == CANELE_OK) code = check_options(given, *data);
  Engine& engine = *session_of(session).engine;
  if (code == CANELE_OK) code = check_destinations(engine, destinations, count);
  if (code != CANELE_OK) return code;
  Request& user = request_of(request);
  const std::size_t gone = leave_at_once(session_of(session), destinations, count, tag, *data, given, user);
  if (gone == count && count != 0) return CANELE_OK;

  // Only a full ring has stopped it in the middle: the rest is a multicast of its own.
  std::unique_ptr<Multicast> whole(new (std::nothrow) Multicast);
  if (whole == nullptr) return refused(CANELE_ENOMEM, "no memory");
  whole->ranks.assign(destinations + gone, destinations + count);
  whole->priorities.assign(count - gone, given.priority);
  if (given.priorities != nullptr) whole->priorities.assign(given.priorities, given.priorities + count);
  whole->outcomes = given.outcomes != nullptr ? given.outcomes + gone : nullptr;
  whole->shape = static_cast<multicast::Shape>(given.shape);
  whole->kind = OpKind::call;
  whole->call = multicast::begin;
  multicast::shelve(engine, *whole, *data);

  prepare_send(user, session_of(session), engine.rank, tag, *data, given.header);
  whole->request = &user;
  engine.submit(*whole.release());
  engine.after_submit();
  return CANELE_OK;
}
