// SPDX-License-Identifier: BSD-3-Clause
//
// The task that moves messages of device memory on: begins copies, looks at their events, ends requests.
#include <algorithm>
#include <utility>

#include "comm/device/devices.hpp"
#include "comm/multicast/state.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::device {

using drivers::CopyDirection;
using drivers::CopyState;

namespace {

/// Names a message in the log.
std::string message_of(const Transfer& transfer) {
  const Request& request = *transfer.request;
  return (transfer.sends ? "send to rank " : "receive from rank ") + std::to_string(request.rank) + ", tag " +
         std::to_string(request.status_tag) + ": ";
}

/// Frees a multicast whose data could not be read.
void drop(Multicast& multicast, int error) {
  if (multicast.outcomes != nullptr) std::fill_n(multicast.outcomes, multicast.ranks.size(), error);
  delete &multicast;
}

}  // namespace

// ---- under the engine's lock ----------------------------------------------------------------------------------------

bool Devices::may_publish(Staged& staged, Context&, Request& request, unsigned events) {
  auto& transfer = static_cast<Transfer&>(staged);
  if (transfer.state == Transfer::State::published) {
    if (!transfer.sends && !transfer.error.empty()) request.status_error = CANELE_EDEVICE;
    return true;
  }
  if (transfer.sends && !transfer.copying) return true;
  if (!transfer.sends && transfer.state != Transfer::State::arrived) {
    const bool has_data = request.status_error == CANELE_OK || request.status_error == CANELE_ETRUNC;
    transfer.bytes = has_data ? std::min<std::size_t>(request.status_length, request.data.length) : 0;
    const bool uses_device = transfer.bytes != 0 || transfer.there.load(std::memory_order_relaxed) != 0;
    transfer.state = uses_device ? Transfer::State::arrived : Transfer::State::published;
    if (!uses_device) return true;
    transfer.devices->mail(transfer, Transfer::goes_on);
  }
  transfer.events |= events;
  if (events == event::received) CANELE_COVER(device_receive_relays);
  if ((events & event::finalized) != 0) {  // it has ended for the floors below, but is in use until publish()
    transition(request, Request::Stage::moving);
    ++request.session->pending;
  }
  return false;
}

void Devices::ended(Staged& staged) {
  auto& transfer = static_cast<Transfer&>(staged);
  transfer.devices->mail(transfer, Transfer::has_ended);
}

/// Ends a send whose device has failed, and that has paused.
void Devices::fail(Staged& staged) {
  const auto& transfer = static_cast<Transfer&>(staged);
  CANELE_COVER_RARE(device_failed_after_send_left);
  Engine& engine = transfer.devices->engine_;
  rendezvous::fail_send(engine, engine.peer(transfer.request->rank), *transfer.request);
}

/// Handles that the beginning of the data of a receive is in staging memory. Any thread, also under the lock.
void Devices::arrived(Staged& staged, std::uint64_t bytes) {
  auto& transfer = static_cast<Transfer&>(staged);
  if (bytes < transfer.there.load(std::memory_order_relaxed) + transfer.fragment) return;
  transfer.there.store(bytes, std::memory_order_release);  // with begin_arrived()
  transfer.devices->mail(transfer, 0);
}

/// Leaves a transfer to the task. Any thread, also under the lock.
void Devices::mail(Transfer& transfer, std::uint8_t news) {
  // Pairs with the exchange of take_mail(), which comes after this if the transfer is in the mailbox already.
  const std::uint8_t before = transfer.news.fetch_or(news | Transfer::in_mailbox, std::memory_order_acq_rel);
  if ((before & Transfer::in_mailbox) != 0 || !mailbox_.put(transfer)) return;
  task_.prepare([](ltask::Task& task) { static_cast<Task&>(task).devices->serve(); });
  engine_.tasks.submit(task_);
}

// ---- the task -------------------------------------------------------------------------------------------------------

void Devices::serve() {
  constexpr int most_polled = 16;
  for (Mail* mail = mailbox_.take(); mail != nullptr;) {
    Mail* const next = mail->next_mail;
    take_mail(static_cast<Transfer&>(*mail));
    mail = next;
  }
  int polled = 0;
  for (std::size_t left = copying_.size(); left > 0 && polled < most_polled; --left, ++polled) {
    Transfer& transfer = *copying_.front();
    copying_.pop_front();
    transfer.listed = false;
    if (!step(transfer)) list(transfer);  // behind the others: its copies may wait for an event of the program
  }
  release_sends();
  if ((copying_.empty() && mailbox_.end()) || stopped_.load(std::memory_order_relaxed)) return;
  task_.prepare(task_.function);
  engine_.tasks.submit(task_);
  engine_.leave_tasks();  // this thread may leave the library
}

void Devices::take_mail(Transfer& transfer) {
  const std::uint8_t news = transfer.news.exchange(0, std::memory_order_acq_rel);  // with mail()
  if ((news & Transfer::has_ended) != 0) return free(transfer);
  if ((news & Transfer::goes_on) != 0) start(transfer);
  list(transfer);
}

void Devices::list(Transfer& transfer) {
  if (!std::exchange(transfer.listed, true)) copying_.push_back(&transfer);
}

/// Begins the copies of a transfer, or makes it wait for its event.
void Devices::start(Transfer& transfer) {
  transfer.complete = true;
  transfer.begins = transfer.waits;
  if (!transfer.waits) begin(transfer);
}

void Devices::begin(Transfer& transfer) {
  switch (transfer.state) {
    case Transfer::State::posted:
      return begin_fragments(transfer);
    case Transfer::State::staging:
      return begin_staging(transfer);
    case Transfer::State::getting:
      return begin_get(transfer);
    case Transfer::State::arrived:
      if (transfer.begun < transfer.bytes)
        begin_copies(transfer, transfer.bytes, CopyDirection::to_device, transfer.layout.copied);
      return;
    case Transfer::State::exported:
    case Transfer::State::published:
      break;  // there is nothing to copy
  }
}

/// Begins to copy the data of a send to staging memory, or its next fragments. Few are under way at a time, so that
/// copies of other messages do not wait for all of them.
void Devices::begin_fragments(Transfer& transfer) {
  constexpr std::size_t most_under_way = 4;
  const std::size_t length = transfer.layout.length;
  const std::size_t step = transfer.in_fragments ? transfer.fragment : length;
  while (transfer.begun < length && transfer.copies.size() < most_under_way)
    begin_copies(transfer, std::min(transfer.begun + step, length), CopyDirection::to_host, nullptr);
}

/// Begins to copy to the device what has arrived of a receive, while more arrives.
void Devices::begin_arrived(Transfer& transfer) {
  const std::size_t there = transfer.there.load(std::memory_order_acquire);  // with arrived(): the data is there
  if (transfer.waits || there <= transfer.begun) return;
  CANELE_COVER(device_copies_while_data_arrives);
  begin_copies(transfer, there, CopyDirection::to_device, nullptr);
}

/// Copies the next bytes, up to `end`: those in host memory by the processor. Begins the copies between devices and
/// staging memory, whose errors come out of poll(). copied: an event to be recorded behind them; nullptr: none.
void Devices::begin_copies(Transfer& transfer, std::size_t end, CopyDirection direction, void* copied) {
  const Layout& layout = transfer.layout;
  const Range part{transfer.begun, end};
  for (const drivers::MemoryCopy& one : layout.copies(-1, transfer.staging.base, part, direction))
    drivers::copy_by_processor(one);
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    const auto copies = layout.copies(static_cast<int>(i), transfer.staging.base, part, direction);
    void* const last = i + 1 == layout.places.size() ? copied : nullptr;
    if (copies.empty() && last == nullptr) continue;
    transfer.copies.push_back({memory_->begin_copy(layout.places[i], direction, copies, last), part.begin});
  }
  transfer.begun = end;
  engine_.counters.add_shared(Counter::device_bytes_staged, part.end - part.begin);
}

Answer Devices::copy(const canele_data_t& to, const canele_data_t& from) {
  Layout target, source;
  Answer answer = source.describe(memory_.get(), from);
  if (answer.code == CANELE_OK) answer = target.describe(memory_.get(), to);
  if (answer.code != CANELE_OK) return answer;
  const StagingMemory staging = pool_.take(source.length, &answer.why);
  if (staging.base == nullptr) return {CANELE_ENOMEM, answer.why};
  answer = copy_now(std::move(source), staging, CopyDirection::to_host);
  if (answer.code == CANELE_OK) answer = copy_now(std::move(target), staging, CopyDirection::to_device);
  pool_.give_back(staging);
  return answer;
}

/// Copies between a layout and staging memory, and waits for the end.
Answer Devices::copy_now(Layout&& layout, const StagingMemory& staging, CopyDirection direction) {
  Transfer transfer;
  transfer.layout = std::move(layout);
  transfer.staging = staging;
  transfer.bytes = transfer.layout.length;
  transfer.state = direction == CopyDirection::to_host ? Transfer::State::posted : Transfer::State::arrived;
  transfer.waits = transfer.layout.ready != nullptr;
  start(transfer);
  while (!poll(transfer)) engine_.platform.yield();
  return transfer.error.empty() ? Answer{} : Answer{CANELE_EDEVICE, transfer.error};
}

/// Returns whether the event of a transfer has happened. If the device fails, it has, and the transfer has an error.
bool Devices::event_happened(Transfer& transfer) {
  std::string error;
  const CopyState state = memory_->poll_event(transfer.layout.places[0], transfer.layout.ready, &error);
  if (state == CopyState::pending) return false;
  transfer.waits = false;
  if (state == CopyState::failed) transfer.error = error;
  return true;
}

/// Returns whether all copies of a transfer have ended. Begins them if it has waited for its event.
bool Devices::poll(Transfer& transfer) {
  if (transfer.waits) {
    if (!event_happened(transfer)) return false;
    if (std::exchange(transfer.begins, false) && transfer.error.empty()) begin(transfer);
  }
  while (!transfer.copies.empty()) {
    std::string error;
    const CopyState state = memory_->poll(transfer.copies.front().pending, &error);
    if (state == CopyState::pending) return false;
    if (state == CopyState::failed && transfer.error.empty()) transfer.error = error;
    transfer.copies.pop_front();
  }
  return true;
}

/// Looks at the copies of a transfer, and does what follows. Returns true if the next step comes with mail.
bool Devices::step(Transfer& transfer) {
  const bool idle = poll(transfer);
  if (transfer.in_fragments) return step_send(transfer);
  if (!transfer.sends && !transfer.complete) {
    begin_arrived(transfer);
    return !transfer.waits && transfer.copies.empty();
  }
  if (idle) finish_copies(transfer);
  return idle;
}

/// Likewise for a send in fragments.
bool Devices::step_send(Transfer& transfer) {
  if (transfer.waits) return false;
  if (transfer.error.empty()) begin_fragments(transfer);
  const bool idle = transfer.copies.empty();
  if (!transfer.error.empty() && !idle) return false;  // the device still writes to the staging memory
  if (!transfer.has_left) return let_leave(transfer, idle);
  const bool has_more = transfer.error.empty() && transfer.copied() > transfer.available;
  return (idle || has_more) && send_further(transfer, idle);
}

/// Lets a send leave whose first fragment is in staging memory. Returns true if all of it is.
bool Devices::let_leave(Transfer& transfer, bool idle) {
  if (idle) {
    transfer.in_fragments = false;
    transfer.available = Staged::whole;
    finish_copies(transfer);
  } else if (transfer.copied() != 0) {
    CANELE_COVER(device_send_leaves_early);
    transfer.has_left = transfer.copying = true;
    transfer.available = transfer.copied();
    order_.copied(*transfer.request, CANELE_OK);
  }
  return idle;
}

/// Sends what else has been copied. Ends the copies if they are `idle`; returns whether that is so.
bool Devices::send_further(Transfer& transfer, bool idle) {
  Request& request = *transfer.request;
  const bool has_failed = !transfer.error.empty();
  if (has_failed) engine_.log(LogLevel::error, message_of(transfer) + transfer.error);
  engine_.lock_for_callback();
  transfer.copying = !idle;
  transfer.failed = has_failed;
  if (!has_failed) transfer.available = transfer.copied();
  const bool has_ended = transfer.events != 0;  // its peer has failed meanwhile
  if (has_ended) CANELE_COVER_RARE(device_send_ended_while_copying);
  if (!has_ended && transfer.granted_end != 0) {
    request.data.base = transfer.staging.base;
    rendezvous::send_further(engine_, engine_.peer(request.rank), request);
  }
  engine_.unlock();
  if (has_ended && idle) {
    publish(transfer);
  } else {
    engine_.after_submit();
  }
  return idle;
}

void Devices::finish_copies(Transfer& transfer) {
  if (transfer.state == Transfer::State::getting) return finish_get(transfer);
  if (!transfer.error.empty()) engine_.log(LogLevel::error, message_of(transfer) + transfer.error);
  if (transfer.sends) {
    order_.copied(*transfer.request, transfer.error.empty() ? CANELE_OK : CANELE_EDEVICE);
  } else {
    publish(transfer);
  }
}

/// Publishes the events that may_publish() has held back.
void Devices::publish(Transfer& transfer) {
  Request& request = *transfer.request;
  engine_.lock_for_callback();
  transfer.state = Transfer::State::published;
  if ((transfer.events & event::finalized) != 0) {
    transition(request, Request::Stage::idle);
    --request.session->pending;
  }
  engine_.publish(request, transfer.events);
  engine_.unlock();
  engine_.after_submit();
}

void Devices::release_sends() {
  for (std::vector<WaitingSend> ready = order_.take_ready(); !ready.empty(); ready = order_.take_ready()) {
    for (const WaitingSend& send : ready) release(send);
    order_.remove_leaving();
  }
}

/// Gives a send to the engine, or ends it if its data could not be read.
void Devices::release(const WaitingSend& send) {
  engine_.lock_for_callback();
  if (send.error != CANELE_OK) {
    if (send.multicast != nullptr) drop(*send.multicast, send.error);
    engine_.finish(*send.request, send.error);
  } else {
    --send.session->pending;
    --engine_.pending_sends;
    if (send.multicast == nullptr) send_path::on_send_posted(engine_, *send.request);
  }
  engine_.unlock();
  if (send.error == CANELE_OK && send.multicast != nullptr) engine_.submit(*send.multicast);
  engine_.after_submit();
}

void Devices::free(Transfer& transfer) {
  if (transfer.staging.base != nullptr) pool_.give_back(transfer.staging);
  delete &transfer;
  transfers_.fetch_sub(1, std::memory_order_release);  // pairs with the acquire load in idle()
}

}  // namespace canele::comm::device
