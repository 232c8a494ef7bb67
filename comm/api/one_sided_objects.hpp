// SPDX-License-Identifier: BSD-3-Clause
//
// Helpers of the functions of <canele/one_sided.h>: the objects behind the handles, and what they need of an engine.
//
// Any thread.
#pragma once

#include <canele/one_sided.h>

#include <string>

#include "comm/api/api.hpp"
#include "comm/state/one_sided.hpp"

namespace canele::comm::api {

inline one_sided::Region& region_of(canele_memory_t* memory) { return *reinterpret_cast<one_sided::Region*>(memory); }
inline const one_sided::Region& region_of(const canele_memory_t* memory) {
  return *reinterpret_cast<const one_sided::Region*>(memory);
}
inline one_sided::RemoteKey& key_of(canele_key_t* key) { return *reinterpret_cast<one_sided::RemoteKey*>(key); }
inline const one_sided::RemoteKey& key_of(const canele_key_t* key) {
  return *reinterpret_cast<const one_sided::RemoteKey*>(key);
}
inline one_sided::Lane& lane_of(canele_lane_t* lane) { return *reinterpret_cast<one_sided::Lane*>(lane); }

/// Holds the engine's lock in a scope.
class CANELE_SCOPED_CAPABILITY EngineGuard {
 public:
  explicit EngineGuard(Engine& engine) CANELE_TAKES_LOCK : engine_(engine) { engine_.lock_for_callback(); }
  ~EngineGuard() CANELE_RELEASE() {
    engine_.unlock();
    engine_.serve_staged();
  }
  EngineGuard(const EngineGuard&) = delete;
  EngineGuard& operator=(const EngineGuard&) = delete;

 private:
  Engine& engine_;
};

/// Prepares an engine for one-sided operations: their requests belong to a session of the library. Returns the error to
/// answer.
int enable(Engine& engine, const char* call);

/// Counts memory or a slot that other ranks access from now on: the on-demand thread stays ready for them.
inline void make_accessible(Engine& engine) {
  engine.accessible.fetch_add(1, std::memory_order_relaxed);
  engine.after_submit();  // it may be parked
}

}  // namespace canele::comm::api
