// SPDX-License-Identifier: BSD-3-Clause
//
// The other ranks of the job: their states, their values, their hosts.
#include <canele/job.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/api/api.hpp"
#include "comm/api/exchange.hpp"
#include "comm/bootstrap/limits.hpp"
#include "comm/engine/peer_watch.hpp"

using namespace canele::comm;
using namespace canele::comm::api;

static_assert(CANELE_PUBLISH_KEY_MAX == longest_key && CANELE_PUBLISH_VALUE_MAX == longest_blob &&
              CANELE_PUBLISH_MAX == longest_published && CANELE_HOST_NAME_SIZE == longest_host_name + 1);

namespace {

int state_of(const Peer* peer) {
  if (peer == nullptr) return CANELE_PEER_UNKNOWN;
  switch (peer->state) {
    case Peer::State::resolving:
    case Peer::State::connecting:
      return CANELE_PEER_CONNECTING;
    case Peer::State::up:
      return CANELE_PEER_UP;
    case Peer::State::left:
      return CANELE_PEER_LEFT;
    case Peer::State::failed:
      break;
  }
  return CANELE_PEER_LOST;
}

/// Checks a key of the program.
int check_key(std::string_view key, const char* call) {
  if (key.empty() || key.size() > longest_key) {
    return error(CANELE_EINVAL, std::string(call) + ": a key has 1 to " + std::to_string(longest_key) +
                                    " bytes, this one " + (key.empty() ? "none" : "more"));
  }
  if (!key.starts_with(key_prefix)) return CANELE_OK;
  return error(CANELE_EINVAL,
               std::string(call) + ": keys that begin with \"" + std::string(key_prefix) + "\" are the library's own");
}

/// Returns a key as far as it has to be read to see that it is too long.
std::string_view key_of(const char* key) { return {key, strnlen(key, longest_key + 1)}; }

/// Returns what the last exchange has brought, or nullptr with the error of the call.
std::shared_ptr<const ExchangedValues> exchanged(canele_engine_t* engine, const char* call) {
  auto values = exchange_of(engine_of(engine)).values();
  if (values == nullptr) error(CANELE_ESTATE, call, "there was no exchange yet: call canele_exchange on all ranks");
  return values;
}

/// Copies what fits.
int copy_out(std::span<const std::byte> from, void* to, std::size_t room, const char* call) {
  const std::size_t fits = std::min(room, from.size());
  if (fits != 0) std::memcpy(to, from.data(), fits);
  if (fits == from.size()) return CANELE_OK;
  return error(CANELE_ETRUNC, std::string(call) + ": there is room for " + std::to_string(room) + " of " +
                                  std::to_string(from.size()) + " bytes");
}

}  // namespace

int canele_peer_state(canele_engine_t* engine, int rank) try {
  if (const int code = check_peer(engine, rank, "canele_peer_state"); code != CANELE_OK) return code;
  Engine& e = engine_of(engine);
  e.lock_for_callback();
  const int state = state_of(e.peers[rank]);
  e.unlock();
  return state;
} catch (...) {
  return caught();
}

int canele_on_peer(canele_engine_t* engine, canele_peer_fn callback, void* argument) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_on_peer: engine is NULL");
  if (fork::in_child) return reject_in_child("canele_on_peer");
  Engine& e = engine_of(engine);
  e.lock_for_callback();
  e.peer_watch.callback = callback;
  e.peer_watch.argument = argument;
  tell_of_ends(e);
  e.unlock();
  e.after_submit();
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_publish(canele_engine_t* engine, const char* key, const void* value, size_t size) try {
  constexpr const char* call = "canele_publish";
  if (engine == nullptr) return missing(call, "engine");
  if (key == nullptr) return missing(call, "key");
  if (fork::in_child) return reject_in_child(call);
  const std::string_view name = key_of(key);
  if (const int code = check_key(name, call); code != CANELE_OK) return code;
  if (size > longest_blob) {
    return error(CANELE_EINVAL, std::string(call) + ": a value has at most " + std::to_string(longest_blob) +
                                    " bytes, this one " + std::to_string(size));
  }
  if (value == nullptr && size != 0) return missing(call, "value");
  if (const int code = check_memory(call); code != CANELE_OK) return code;
  return exchange_of(engine_of(engine)).publish(name, {static_cast<const std::byte*>(value), size});
} catch (...) {
  return caught();
}

int canele_exchange(canele_engine_t* engine, uint64_t deadline) try {
  constexpr const char* call = "canele_exchange";
  if (engine == nullptr) return missing(call, "engine");
  if (fork::in_child) return reject_in_child(call);
  if (callback_depth() != 0)
    return error(CANELE_EDEADLK, call, "inside a completion callback it would wait for itself");
  if (const int code = check_memory(call); code != CANELE_OK) return code;
  return exchange_of(engine_of(engine)).run(deadline);
} catch (...) {
  return caught();
}

int canele_lookup(canele_engine_t* engine, int rank, const char* key, void* value, size_t* size) try {
  constexpr const char* call = "canele_lookup";
  if (key == nullptr) return missing(call, "key");
  if (size == nullptr) return missing(call, "size");
  if (value == nullptr && *size != 0) return missing(call, "value");
  if (const int code = check_peer(engine, rank, call); code != CANELE_OK) return code;
  const std::string_view name = key_of(key);
  if (const int code = check_key(name, call); code != CANELE_OK) return code;
  const auto values = exchanged(engine, call);
  if (values == nullptr) return CANELE_ESTATE;
  const auto found = values->find(rank, name);
  if (!found) {
    return error(CANELE_ENOENT, std::string(call) + ": rank " + std::to_string(rank) + " had published no \"" +
                                    std::string(name) + "\" at its last exchange");
  }
  const std::size_t room = *size;
  *size = found->size();
  return copy_out(*found, value, room, call);
} catch (...) {
  return caught();
}

int canele_local_ranks(canele_engine_t* engine, int* ranks, size_t room, size_t* count) try {
  constexpr const char* call = "canele_local_ranks";
  if (engine == nullptr) return missing(call, "engine");
  if (ranks == nullptr && room != 0) return missing(call, "ranks");
  if (count == nullptr) return missing(call, "count");
  if (fork::in_child) return reject_in_child(call);
  const auto values = exchanged(engine, call);
  if (values == nullptr) return CANELE_ESTATE;
  const std::vector<int> all = values->ranks_of(values->host_of(engine_of(engine).rank));
  std::copy_n(all.begin(), std::min(room, all.size()), ranks);
  *count = all.size();
  if (room >= all.size()) return CANELE_OK;
  return error(CANELE_ETRUNC, std::string(call) + ": there is room for " + std::to_string(room) + " of " +
                                  std::to_string(all.size()) + " ranks");
} catch (...) {
  return caught();
}

int canele_rank_host(canele_engine_t* engine, int rank, int* index, char* name, size_t size) try {
  constexpr const char* call = "canele_rank_host";
  if (name == nullptr && size != 0) return missing(call, "name");
  if (const int code = check_peer(engine, rank, call); code != CANELE_OK) return code;
  const auto values = exchanged(engine, call);
  if (values == nullptr) return CANELE_ESTATE;
  const int host = values->host_of(rank);
  if (index != nullptr) *index = host;
  if (name == nullptr) return CANELE_OK;
  const std::string& text = values->host_name(host);
  const int code = copy_out(std::as_bytes(std::span(text.c_str(), text.size() + 1)), name, size, call);
  if (code != CANELE_OK && size != 0) name[size - 1] = '\0';
  return code;
} catch (...) {
  return caught();
}
