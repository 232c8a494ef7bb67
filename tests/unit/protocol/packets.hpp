// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of rank 0 that are made by hand, and handed to the parser of rank 1.
//
// For tests of malformed packets. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/protocol/receive_packet.hpp"
#include "comm/wire/wire.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test {

using Bytes = std::vector<std::byte>;

inline Bytes chunk(comm::wire::Type type, std::uint64_t tag, std::uint32_t seq, std::uint16_t session,
                   const Bytes& payload) {
  Bytes out(comm::wire::chunk_size(payload.size()));
  std::byte* const at = comm::wire::put_head(out.data(), {tag, seq, session, type, 0}, payload.size());
  std::copy(payload.begin(), payload.end(), at);
  return out;
}

template <typename T>
Bytes bytes_of(const T& value) {
  Bytes out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

/// Returns what the verdict says is wrong.
inline const char* reason(comm::Verdict verdict) { return verdict.is_violation() ? verdict.text() : "no violation"; }

/// Returns rank 1's verdict on a packet from rank 0.
inline comm::Verdict give_packet(LocalJob& job, const Bytes& packet) {
  comm::Engine& engine = job.engine(1);
  engine.lock_for_callback();
  const comm::Verdict verdict = comm::receive_path::receive_packet(engine, engine.peer(0), packet);
  engine.unlock();
  return verdict;
}

/// Lets rank 0 send a first message to rank 1, so that the ranks know each other and the session.
inline void meet(LocalJob& job, const std::vector<canele_session_t*>& sessions) {
  canele_request_t send{}, receive{};
  canele_irecv(sessions[1], 0, 1, CANELE_TAG_EXACT, nullptr, 0, &receive);
  canele_isend(sessions[0], 1, 1, nullptr, 0, &send);
  job.finish(receive);
}

}  // namespace canele::test
