// SPDX-License-Identifier: BSD-3-Clause
//
// The request of a send.
#include "comm/state/request_setup.hpp"

#include <new>

namespace canele::comm {

void begin_use(Request& request, Context& context) {
  prepare_outcome(request, context, nullptr, Request::Kind::send);
  request.rank = -1;
  request.status_tag = request.status_length = 0;
  request.data = {};
  transition(request, Request::Stage::begun);
}

namespace {

/// Fills in what a send needs beside its outcome.
inline void fill(Request& request, int rank, std::uint64_t tag, const canele_data_t& data, std::size_t header) {
  request.data = data;
  request.rank = rank;
  request.status_tag = tag;
  request.status_length = data.length;
  request.synchronous = request.rendezvous = false;
  request.header = static_cast<std::uint16_t>(header);
  request.bulk_rails = 0;
  request.registration = 0;
  request.handle = Handle::none;
  request.moved = request.expected = 0;
  new (&request.item) strategies::Item;
  request.stage = Request::Stage::posted;  // from `idle` or `begun`
}

}  // namespace

void prepare_send(Request& request, Session& session, int rank, std::uint64_t tag, const canele_data_t& data,
                  std::size_t header) {
  prepare(request, session, Request::Kind::send);
  fill(request, rank, tag, data, header);
}

void prepare_begun_send(Request& request, Session& session, int rank, std::uint64_t tag, const canele_data_t& data,
                        std::size_t header) {
  request.session = &session;
  request.begin(*session.context);
  fill(request, rank, tag, data, header);
}

}  // namespace canele::comm
