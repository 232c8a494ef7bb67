// SPDX-License-Identifier: BSD-3-Clause
//
// Devices: what an engine keeps for messages of device memory, and the posts of such messages.
//
// comm/post and comm/api call it if Context::has_devices is set. Each post first finds out where its data is. Data in
// host memory only goes the ordinary way, unless an earlier send of device memory must not be overtaken.
//
//   send:     post ─▶ copy to staging memory ──(event)──▶ SendOrder ─▶ engine: an ordinary send from there
//   receive:  post ─▶ engine: an ordinary receive into staging memory ─▶ copy to the device ──(event)──▶ finalized
//
// A large message to a process of this host is exported instead (direct.cpp): a device of the receiver copies it.
//
//   send:     post ─▶ engine: a send with a key ──────────────────▶ finalized
//   receive:  matched ─▶ copy from the sender's device ──(event)──▶ finalized
//
// If the receiver cannot do that, it asks for a stream, and the sender copies its data to staging memory then.
//
// A long staged message goes in fragments. The send leaves when the first one is in staging memory, and goes on as
// others are. The receiver copies to its device what has come:
//
//   sender's device ─copy─▶ │f3│f2│f1│ ─stream─▶ │f0│ ─copy─▶ receiver's device
//
// Threading: posts are made by any thread, without the engine's lock. One task at a time, on any thread that makes
// progress, begins the copies of receives and looks at the events. It waits for nothing.
//
// Pitfalls: no call into a device's library may be made under the engine's lock, since it may enter the kernel.
// may_publish() runs under the lock: it only leaves mail for the task.
//
// Rejected: sending the envelope of a staged message before any of its data is there. A receiver that has matched it
// would see most errors of the sender's device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/device/exported_data.hpp"
#include "comm/device/imports.hpp"
#include "comm/device/layout.hpp"
#include "comm/device/send_order.hpp"
#include "comm/device/staging_pool.hpp"
#include "comm/engine/engine.hpp"
#include "comm/state/mailbox.hpp"
#include "comm/state/staged.hpp"

namespace canele::comm::device {

/// A send or multicast that was checked, but for its data.
struct SendToPost {
  Session& session;
  int destination;  ///< every_rank: a multicast
  std::uint64_t tag;
  const canele_data_t& data;
  std::int32_t priority = 0;
  bool synchronous = false;
  std::size_t header = 0;
};

/// A message of device memory, from its post until its staging memory is free again.
struct Transfer : Staged, Mail {
  enum class State : std::uint8_t {
    posted,    ///< the data of a send is being read, or has been; a receive waits for its message
    exported,  ///< the data of a send stays on its device
    staging,   ///< the receiver wants a stream of data that was exported: it is being read
    getting,   ///< a device copies the data of a receive from the sender's
    arrived,   ///< the data of a receive is in staging memory, or being copied from there
    published  ///< its end may be published
  };

  /// What the task is told.
  enum News : std::uint8_t {
    in_mailbox = 1,
    goes_on = 2,   ///< `state` has changed: begin() is next
    has_ended = 4  ///< the request no longer uses the staging memory
  };
  /// A copy under way. `begin`: all data before this byte is copied once the copies before it have ended.
  struct Copy {
    drivers::PendingCopy* pending;
    std::size_t begin;
  };

  class Devices* devices = nullptr;
  Request* request = nullptr;
  Layout layout;
  StagingMemory staging;
  std::size_t fragment = 0;  ///< bytes
  bool sends = false;

  // Under the engine's lock.
  State state = State::posted;  ///< the task reads it after `goes_on`
  std::size_t bytes = 0;        ///< of a receive: what has arrived, once it is `arrived`
  unsigned events = 0;          ///< those that were held back, to be published
  bool copying = false;         ///< of a send that has left: its device reads its data
  ExportedData exported;        ///< of a send
  DeviceGet wanted{};           ///< of a receive that is `getting`

  // Of the thread that posts, then of the task.
  std::deque<Copy> copies;
  std::size_t begun = 0;  ///< bytes whose copies have begun
  std::string error;
  Imports::Mapping* mapping = nullptr;
  bool waits = false;         ///< for the event `layout.ready`
  bool begins = false;        ///< begin() follows that event
  bool has_left = false;      ///< of a send: it may be sent, though data is being read
  bool in_fragments = false;  ///< of a send
  bool complete = false;      ///< of a receive: no more data will arrive
  bool listed = false;        ///< in Devices::copying_

  std::atomic<std::size_t> there{0};  ///< of a receive: bytes in staging memory
  std::atomic<std::uint8_t> news{0};

  /// Returns how many bytes, from the first on, have been copied.
  std::size_t copied() const { return copies.empty() ? begun : copies.front().begin; }
  /// Returns the data of the request: that of the program, in staging memory.
  canele_data_t data() { return {layout.length, staging.base, nullptr, static_cast<Staged*>(this)}; }
};

class Devices {
 public:
  Devices(Engine& engine, std::unique_ptr<drivers::Memory> memory);
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  drivers::Memory& memory() { return *memory_; }
  /// Posts a send, or adds it to those that wait. Empty: its data is in host memory, nothing is before it, and nothing
  /// was done.
  std::optional<Answer> send(const SendToPost& send, Request& request);
  /// Posts a receive of device memory. Empty: the memory is host memory, and nothing was done.
  std::optional<Answer> receive(const Posting& posting);
  /// Gives a receive its buffer. Empty: host memory, and nothing was done.
  std::optional<Answer> bind(Request& request, const canele_data_t& data);
  /// Posts a multicast, or adds it to those that wait, and takes `multicast`. Empty: its data is in host memory,
  /// nothing is before it, and nothing was done.
  std::optional<Answer> multicast(const SendToPost& what, std::unique_ptr<Multicast>& multicast, Request& request);
  /// Returns whether a send that is posted now would have to wait for an earlier one.
  bool must_wait(const Session& session, int destination, std::uint64_t tag) {
    return order_.must_wait(session, destination, tag);
  }
  /// Calls visit(send) for each send that waits for a device, or for an earlier one.
  template <typename Visit>
  void each_waiting_send(Visit visit) CANELE_UNDER_LOCK {
    order_.each_waiting(visit);
  }
  /// Copies data of any kind; blocks until the device has done so.
  Answer copy(const canele_data_t& to, const canele_data_t& from);
  /// Ends the work of the task: what is still on its way to a device stays there. Called when the engine ends.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  /// Returns whether no message of device memory is under way.
  bool idle() const { return transfers_.load(std::memory_order_acquire) == 0; }

 private:
  std::unique_ptr<Transfer> make_transfer(Layout&& layout, bool sends);
  Answer describe_send(const canele_data_t& data, Layout* layout);
  std::unique_ptr<Transfer> make_receive(Layout&& layout, Answer* answer);
  Answer take_staging(Transfer& transfer);
  void post_in_order(const WaitingSend& send);
  void adopt(std::unique_ptr<Transfer> transfer, Request& request);
  void post_copying(std::unique_ptr<Transfer> transfer, const WaitingSend& send);
  Answer copy_now(Layout&& layout, const StagingMemory& staging, drivers::CopyDirection direction);
  void start(Transfer& transfer);
  void begin(Transfer& transfer);
  bool event_happened(Transfer& transfer);
  void begin_fragments(Transfer& transfer);
  void begin_arrived(Transfer& transfer);
  void begin_copies(Transfer& transfer, std::size_t end, drivers::CopyDirection direction, void* copied);
  void mail(Transfer& transfer, std::uint8_t news);
  void serve();
  void take_mail(Transfer& transfer);
  void list(Transfer& transfer);
  bool step(Transfer& transfer);
  bool step_send(Transfer& transfer);
  bool let_leave(Transfer& transfer, bool idle);
  bool send_further(Transfer& transfer, bool idle);
  bool poll(Transfer& transfer);
  void finish_copies(Transfer& transfer);
  void publish(Transfer& transfer);
  void release_sends();
  void release(const WaitingSend& send);
  void free(Transfer& transfer);
  void count_waiting(Session& session);

  // direct.cpp
  bool export_to(const SendToPost& send, Transfer& transfer);
  bool peer_takes_exports(int rank);
  void begin_staging(Transfer& transfer);
  void begin_get(Transfer& transfer);
  void finish_get(Transfer& transfer);
  static void stage(Staged& staged) CANELE_UNDER_LOCK;
  static void get(Staged& staged, const DeviceGet& get) CANELE_UNDER_LOCK;

  static void fail(Staged& staged) CANELE_UNDER_LOCK;
  static void arrived(Staged& staged, std::uint64_t bytes);
  static bool may_publish(Staged& staged, Context& context, Request& request, unsigned events) CANELE_UNDER_LOCK;
  static void ended(Staged& staged) CANELE_UNDER_LOCK;

  Engine& engine_;
  const std::unique_ptr<drivers::Memory> memory_;
  StagingPool pool_;
  Imports imports_;                                      ///< of the task alone
  std::set<int> not_imported_;                           ///< of the task alone: ranks whose memory could not be mapped
  std::vector<std::uint8_t> staged_next_ CANELE_LOCKED;  ///< by rank: so many of the next sends to it are staged
  const std::size_t least_exported_, fragment_;
  SendOrder order_;
  Mailbox mailbox_;
  struct Task : ltask::Task {
    Devices* devices = nullptr;
  } task_;
  std::deque<Transfer*> copying_;  ///< of the task alone
  std::atomic<std::uint64_t> transfers_{0};
  std::atomic<bool> stopped_{false};
};

/// Lets posts look for memory of this kind at their addresses. Of two threads that have found devices, the first does
/// it.
void use(Engine& engine, std::unique_ptr<drivers::Memory> memory);
/// Looks for devices, if none are known yet. Returns whether there are any; if not, *why is set.
bool find(Engine& engine, std::string* why);
/// Looks for devices again, if the process has loaded a library since they were looked for in vain.
void find_if_loaded(Engine& engine);
/// The devices of an engine whose has_devices is set.
inline Devices& of(Engine& engine) { return *static_cast<Devices*>(engine.devices.get()); }
inline bool present(const Context& context) {
  return context.has_devices.load(std::memory_order_acquire);  // with use(): `devices` is read next
}

/// Returns why data that a call takes in host memory only is not there, or "". All of them are cheap without a device.
std::string reject_device_memory(Engine& engine, const void* address);
std::string reject_device_data(Engine& engine, const canele_data_t& data);

}  // namespace canele::comm::device
