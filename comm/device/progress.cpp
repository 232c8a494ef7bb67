// SPDX-License-Identifier: BSD-3-Clause
//
// The task that moves messages of device memory on: begins copies, looks at their events, ends requests.
#include <algorithm>
#include <utility>

#include "comm/device/devices.hpp"
#include "comm/multicast/state.hpp"
#include "comm/protocol/send.hpp"
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
  if (transfer.sends && transfer.state != Transfer::State::staging) return true;
  if (!transfer.sends && transfer.state != Transfer::State::arrived) {
    const bool has_data = request.status_error == CANELE_OK || request.status_error == CANELE_ETRUNC;
    transfer.bytes = has_data ? std::min<std::size_t>(request.status_length, request.data.length) : 0;
    transfer.state = transfer.bytes != 0 ? Transfer::State::arrived : Transfer::State::published;
    if (transfer.bytes == 0) return true;
    transfer.devices->mail(transfer);
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
  transfer.ended = true;
  transfer.devices->mail(transfer);
}

/// Leaves a transfer to the task. Any thread, also under the lock.
void Devices::mail(Transfer& transfer) {
  if (!mailbox_.put(transfer)) return;
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
    Transfer* const transfer = copying_.front();
    copying_.pop_front();
    if (poll(*transfer)) {
      finish_copies(*transfer);
    } else {
      copying_.push_back(transfer);  // another one may be ready: copies wait for events of the program
    }
  }
  release_sends();
  if ((copying_.empty() && mailbox_.end()) || stopped_.load(std::memory_order_relaxed)) return;
  task_.prepare(task_.function);
  engine_.tasks.submit(task_);
  engine_.leave_tasks();  // this thread may leave the library
}

void Devices::take_mail(Transfer& transfer) {
  if (transfer.ended) return free(transfer);
  if (!transfer.sends || transfer.state == Transfer::State::staging) start(transfer);  // else its post has done so
  copying_.push_back(&transfer);
}

/// Begins the copies of a transfer, or makes it wait for its event.
void Devices::start(Transfer& transfer) {
  transfer.waits = transfer.layout.ready != nullptr;
  if (!transfer.waits) begin(transfer);
}

void Devices::begin(Transfer& transfer) {
  switch (transfer.state) {
    case Transfer::State::posted:
      return begin_copies(transfer, transfer.layout.length, CopyDirection::to_host);
    case Transfer::State::staging:
      return begin_staging(transfer);
    case Transfer::State::getting:
      return begin_get(transfer);
    case Transfer::State::arrived:
      return begin_copies(transfer, transfer.bytes, CopyDirection::to_device);
    case Transfer::State::exported:
    case Transfer::State::published:
      break;  // there is nothing to copy
  }
}

/// Copies the pieces in host memory, and begins the copies between devices and staging memory. Errors come out of
/// poll().
void Devices::begin_copies(Transfer& transfer, std::size_t bytes, CopyDirection direction) {
  const Layout& layout = transfer.layout;
  copy_host_pieces(transfer, bytes, direction);
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    const auto copies = layout.copies(static_cast<int>(i), transfer.staging.base, bytes, direction);
    const bool last = i + 1 == layout.places.size();
    transfer.copies.push_back(memory_->begin_copy(layout.places[i], direction, copies, last ? layout.copied : nullptr));
  }
}

void Devices::copy_host_pieces(const Transfer& transfer, std::size_t bytes, CopyDirection direction) {
  for (const drivers::MemoryCopy& one : transfer.layout.copies(-1, transfer.staging.base, bytes, direction))
    drivers::copy_by_processor(one);
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
    if (transfer.error.empty()) begin(transfer);
  }
  while (!transfer.copies.empty()) {
    std::string error;
    const CopyState state = memory_->poll(transfer.copies.back(), &error);
    if (state == CopyState::pending) return false;
    if (state == CopyState::failed && transfer.error.empty()) transfer.error = error;
    transfer.copies.pop_back();
  }
  return true;
}

void Devices::finish_copies(Transfer& transfer) {
  if (transfer.state == Transfer::State::getting) return finish_get(transfer);
  if (!transfer.error.empty()) engine_.log(LogLevel::error, message_of(transfer) + transfer.error);
  if (transfer.state == Transfer::State::staging) return finish_staging(transfer);
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
