// SPDX-License-Identifier: BSD-3-Clause
//
// TrackedRequest: a request of a workload with its buffer. EndedRequests: requests that have ended, which must not be
// accessed any more.
//
// Threads: fibers of one rank; callbacks run on whichever fiber makes progress. Memory that the library has released is
// not freed but overwritten with a pattern, and checked later. A late write leaves traces in the pattern, and a late
// read gets the pattern instead of data. Freeing the memory would hide both most of the time.
#pragma once

#include <canele/canele.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace canele::sim {

/// Returns whether a request without callback has ended.
bool is_done(const canele_request_t& request);

/// Returns a counter of the engine, by its name in `canele-info`; 0 if there is none of that name.
std::uint64_t counter(canele_engine_t* engine, std::string_view name);

class TrackedRequest {
 public:
  /// `salt` selects the pattern. With one pattern for all, a write of equal bits would be hidden.
  explicit TrackedRequest(std::uint64_t salt) : salt_(salt) {}
  virtual ~TrackedRequest() = default;
  TrackedRequest(const TrackedRequest&) = delete;
  TrackedRequest& operator=(const TrackedRequest&) = delete;

  canele_request_t request{};
  std::vector<std::byte> bytes;

  /// Makes a callback report the end of the request, and release it at once. Call before it is posted.
  void end_by_callback();
  bool ends_by_callback() const { return by_callback_; }
  bool done() const;
  /// Returns the status. Call once done().
  canele_status_t status() const;

 private:
  friend class EndedRequests;
  static void on_end(canele_request_t* request, unsigned events, void* argument);
  void fill_pattern(void* memory, std::size_t size) const;
  bool untouched(const void* memory, std::size_t size) const;
  /// Returns what was done to it after its end; "" if nothing.
  std::string damage() const;

  const std::uint64_t salt_;
  bool by_callback_ = false;
  int calls_ = 0;
  canele_status_t status_{};
};

class EndedRequests {
 public:
  explicit EndedRequests(std::function<void(const std::string&)> complain) : complain_(std::move(complain)) {}
  /// Takes a request that has ended, and whose bytes are not needed any more.
  void add(std::unique_ptr<TrackedRequest> tracked);
  /// Checks and frees all requests in it.
  void close();

 private:
  static constexpr std::size_t most_bytes = 4u << 20, most_requests = 256;
  void free_oldest();

  std::function<void(const std::string&)> complain_;
  std::deque<std::unique_ptr<TrackedRequest>> requests_;
  std::size_t bytes_ = 0;
};

}  // namespace canele::sim
