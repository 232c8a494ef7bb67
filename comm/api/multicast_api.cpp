// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts of the C ABI.
//
// Threads: any.
// Surprise: destinations are checked here, all of them: nothing is sent to any if one is wrong.
#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/multicast/multicast.hpp"

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

int check_destinations(const Engine& engine, const std::vector<int>& ranks) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  for (const int rank : sorted) {
    if (rank < 0 || rank >= engine.size || rank == engine.rank) {
      return refused(CANELE_ERANK, "destination " + std::to_string(rank) + ": ranks run from 0 to " +
                                       std::to_string(engine.size - 1) + ", and the caller is not one of them");
    }
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return CANELE_OK;
  return refused(CANELE_EINVAL, "rank " + std::to_string(*twice) + " is named twice");
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
  std::unique_ptr<Multicast> whole(new (std::nothrow) Multicast);
  if (whole == nullptr) return refused(CANELE_ENOMEM, "no memory");
  if (code == CANELE_OK) {
    whole->ranks.assign(destinations, destinations + count);
    code = check_destinations(engine, whole->ranks);
  }
  if (code != CANELE_OK) return code;
  whole->priorities.assign(count, given.priority);
  if (given.priorities != nullptr) whole->priorities.assign(given.priorities, given.priorities + count);
  whole->outcomes = given.outcomes;
  whole->shape = static_cast<multicast::Shape>(given.shape);
  whole->kind = OpKind::call;
  whole->call = multicast::begin;

  Request& user = request_of(request);
  prepare_send(user, session_of(session), engine.rank, tag, *data, given.header);
  whole->request = &user;
  engine.submit(*whole.release());
  engine.after_submit();
  return CANELE_OK;
}
