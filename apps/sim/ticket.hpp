// SPDX-License-Identifier: BSD-3-Clause
//
// Ticket: a request of a workload with its buffer; Graveyard: those that have ended, which nobody may touch any more.
//
// Who: the workloads. Threads: fibers of one rank; callbacks run on whichever of them makes progress.
// Surprise: what the library has let go of is not freed but scribbled over, and looked at later: a late write is found
//      by its traces, a late read by what comes of it. To free it would hide both most of the time.
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

/// Has this request, which no callback lets go of, ended?
bool is_over(const canele_request_t& request);

/// A counter of the engine, by its name in `canele-info`; 0 if there is none of that name.
std::uint64_t counter(canele_engine_t* engine, std::string_view name);

class Ticket {
 public:
  /// `salt`: what is scribbled; with one pattern for all, a bit that is what it was would hide a write.
  explicit Ticket(std::uint64_t salt) : salt_(salt) {}
  virtual ~Ticket() = default;
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  canele_request_t request{};
  std::vector<std::byte> bytes;

  /// Before it is posted: its end is told by a callback, which lets go of the request at once.
  void end_by_callback();
  bool ends_by_callback() const { return by_callback_; }
  bool over() const;
  /// Once over.
  canele_status_t status() const;

 private:
  friend class Graveyard;
  static void on_end(canele_request_t* request, unsigned events, void* argument);
  void scribble(void* memory, std::size_t size) const;
  bool untouched(const void* memory, std::size_t size) const;
  /// What was done to it after its end; "" if nothing.
  std::string harm() const;

  const std::uint64_t salt_;
  bool by_callback_ = false;
  int calls_ = 0;
  canele_status_t status_{};
};

class Graveyard {
 public:
  explicit Graveyard(std::function<void(const std::string&)> complain) : complain_(std::move(complain)) {}
  /// In: it is over, and nobody needs its bytes.
  void bury(std::unique_ptr<Ticket> ticket);
  /// All that lie here are looked at, and freed.
  void close();

 private:
  static constexpr std::size_t most_bytes = 4u << 20, most_tickets = 256;
  void free_oldest();

  std::function<void(const std::string&)> complain_;
  std::deque<std::unique_ptr<Ticket>> tickets_;
  std::size_t bytes_ = 0;
};

}  // namespace canele::sim
