// SPDX-License-Identifier: BSD-3-Clause
//
// The post of a one-sided operation: made at once by the calling thread, or handed to the engine.
//
// Used by one_sided_api.cpp. Any thread, without the engine's lock.
#pragma once

#include <canele/one_sided.h>

#include <cstdint>

#include "comm/api/one_sided_objects.hpp"
#include "comm/state/one_sided.hpp"

namespace canele::comm::api {

/// An operation that is about to be posted.
struct Access {
  const char* call;
  one_sided::AccessKind operation;
  Engine& engine;
  int rank;
  one_sided::RemoteKey* key = nullptr;
  std::uint64_t offset = 0;
  canele_data_t data{};
  std::uint32_t slot = 0;
  std::uint64_t immediate = 0;  ///< of a notification; operand of an atomic operation
  std::uint64_t compare = 0;
  /// Of an atomic operation: enum canele_atomic_operation. Of an accumulate: enum canele_operation, or
  /// canele_accumulate_operation.
  unsigned code = 0;
  canele_element element{};                 ///< of an accumulate
  std::byte* before = nullptr;              ///< of an accumulate: the former elements go there; nullptr: nowhere
  std::uint64_t start = 0;                  ///< of a part of an accumulate: where it begins in `data`, and ends behind
  one_sided::Transfer* transfer = nullptr;  ///< of a large operation
  wire::Strides strides{};                  ///< of a put or get: the memory of the target
  Session* session = nullptr;
};

/// What the options of an operation say, checked.
struct AccessOptions {
  canele_completion_t done{};
  one_sided::Lane* lane = nullptr;
  std::int32_t priority = 0;
  std::uint32_t slot = 0;
  std::uint64_t immediate = 0;
  std::uint64_t block = 0, stride = 0;  ///< as given; the operation checks them
};

/// Reads the options of an operation. options may be NULL. Returns the error to answer.
int read_options(const canele_access_options_t* options, bool may_notify, const char* call, AccessOptions* out);

/// Returns whether the key allows this access to these bytes.
inline bool allows(const one_sided::RemoteKey& key, std::uint64_t offset, std::uint64_t length, std::uint32_t wanted) {
  return length <= key.length && offset <= key.length - length && (key.access & wanted) != 0;
}
/// Sets the strides of a put or get, or checks that another operation has none. Returns the error to answer.
int set_strides(const AccessOptions& options, Access& access);
/// Sets the strides of an operation, and checks its range against its key. Returns the error to answer.
int check_access(const AccessOptions& options, std::uint32_t wanted, Access& access);

/// Posts a checked operation. Returns the error to answer.
int post_access(Access access, AccessOptions options, canele_request_t* request);

}  // namespace canele::comm::api
