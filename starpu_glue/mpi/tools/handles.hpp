// SPDX-License-Identifier: BSD-3-Clause
//
// What a tool holds: handles of variables, and sessions. Any thread, under tools::lock.
//
// A handle is the address of its object. A set of all addresses finds out those that are none.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace canele::mpi::tools {

/// A handle of a control variable.
struct ControlHandle {
  int index;
  int count;  ///< characters that a value has room for
};

/// A handle of a performance variable. One that is not continuous counts what happens between start and stop.
struct PerformanceHandle {
  int index;
  bool runs;            ///< always, if it is continuous
  std::uint64_t begun;  ///< the engine's value when it was last started or read
  std::uint64_t total;  ///< what it has counted before
};

/// Objects that a tool knows by their addresses.
template <class Object, class Handle>
class Held {
 public:
  Handle add(Object&& object) {
    all_.push_back(std::make_unique<Object>(std::move(object)));
    return reinterpret_cast<Handle>(all_.back().get());
  }
  /// Returns nullptr if the handle is none.
  Object* find(Handle handle) const {
    const auto place = place_of(handle);
    return place == all_.end() ? nullptr : place->get();
  }
  bool remove(Handle handle) {
    const auto place = place_of(handle);
    if (place == all_.end()) return false;
    all_.erase(place);
    return true;
  }
  void clear() { all_.clear(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  auto place_of(Handle handle) const {
    return std::find_if(all_.begin(), all_.end(),
                        [handle](const auto& one) { return reinterpret_cast<Handle>(one.get()) == handle; });
  }

  std::vector<std::unique_ptr<Object>> all_;
};

/// A session: a tool's own handles of performance variables.
struct Session {
  Held<PerformanceHandle, MPI_T_pvar_handle> handles;
};

Held<ControlHandle, MPI_T_cvar_handle>& control_handles();
Held<Session, MPI_T_pvar_session>& sessions();
void drop_all_handles();

}  // namespace canele::mpi::tools
