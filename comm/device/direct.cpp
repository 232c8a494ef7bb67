// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that go from device to device, within a host: the sender exports its memory, and a device of the receiver
// copies from it. The receiver may also want a stream, because its buffer is elsewhere, or the memory cannot be shared.
//
//   exported ──FIN──▶ published        exported ──CTS──▶ staging: sent in fragments
//   posted ──matched──▶ getting ──(event)──▶ published, or posted: asks for a stream
#include "comm/device/devices.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::device {

using drivers::CopyDirection;

namespace {

bool stays_on_host(const Rail& rail) { return rail.local || rail.instance->memory_only(); }

}  // namespace

// ---- send -----------------------------------------------------------------------------------------------------------

/// Exports the data of a send. Returns false if it has to be staged.
bool Devices::export_to(const SendToPost& send, Transfer& transfer) {
  const bool pays = transfer.layout.length >= std::max<std::size_t>(least_exported_, 1);
  // A header travels ahead, so it has to be in host memory.
  if (!pays || send.header != 0 || !peer_takes_exports(send.destination)) return false;
  if (!export_data(*memory_, transfer.layout, &transfer.exported)) return false;
  transfer.key = transfer.exported.bytes();
  transfer.stage = Devices::stage;
  transfer.available = 0;
  transfer.state = Transfer::State::exported;
  return true;
}

/// Returns whether a rank is another one of this host, and has not wanted streams lately.
bool Devices::peer_takes_exports(int rank) {
  engine_.lock_for_callback();
  const Peer* const peer = engine_.peers[rank];
  bool takes = peer != nullptr && peer->state == Peer::State::up && stays_on_host(*peer->rail) && rank != engine_.rank;
  if (std::uint8_t& staged = staged_next_[static_cast<std::size_t>(rank)]; takes && staged > 0) {
    takes = false;
    --staged;
  }
  engine_.unlock();
  return takes;
}

/// Handles a clear to send for data that is still on its device.
void Devices::stage(Staged& staged) {
  constexpr std::uint8_t staged_at_once = 63;  // a stream that begins with its clear to send is slower
  auto& transfer = static_cast<Transfer&>(staged);
  CANELE_COVER(device_data_staged_when_asked);
  transfer.key = {};
  transfer.copying = true;
  transfer.state = Transfer::State::staging;
  transfer.devices->staged_next_[static_cast<std::size_t>(transfer.request->rank)] = staged_at_once;
  transfer.devices->mail(transfer, Transfer::goes_on);
}

void Devices::begin_staging(Transfer& transfer) {
  transfer.in_fragments = transfer.has_left = true;
  const Answer answer = take_staging(transfer);
  transfer.error = answer.why;
  if (answer.code == CANELE_OK) begin_fragments(transfer);
}

// ---- receive --------------------------------------------------------------------------------------------------------

/// Handles that a receive has met a message whose data is on a device of the sender.
void Devices::get(Staged& staged, const DeviceGet& get) {
  auto& transfer = static_cast<Transfer&>(staged);
  transfer.wanted = get;
  transfer.state = Transfer::State::getting;
  transfer.devices->mail(transfer, Transfer::goes_on);
}

void Devices::begin_get(Transfer& transfer) {
  const drivers::MemoryPlace& place = transfer.layout.places[0];
  const DeviceGet& wanted = transfer.wanted;
  ExportedData data;
  transfer.error = read_exported(wanted.key, wanted.length, &data);
  if (transfer.error.empty()) transfer.mapping = imports_.take(wanted.rank, data.memory, place.device, &transfer.error);
  if (transfer.mapping == nullptr) return;
  const Piece from{transfer.mapping->base + data.memory.offset, data.width, data.rows, data.pitch, 0, 0};
  const auto copies = transfer.layout.copies_from(from, wanted.length);
  transfer.copies.push_back(
      {memory_->begin_copy(place, CopyDirection::within_devices, copies, transfer.layout.copied), 0});
}

/// Ends the copy. If it has failed, the floors below ask for a stream.
void Devices::finish_get(Transfer& transfer) {
  if (transfer.mapping != nullptr) imports_.give_back(std::exchange(transfer.mapping, nullptr));
  const DeviceGet wanted = transfer.wanted;
  const bool failed = !transfer.error.empty();
  if (failed) {
    CANELE_COVER(device_get_failed_and_streams);
    engine_.counters.add_shared(Counter::device_gets_failed);
  } else {
    CANELE_COVER(device_has_got_data);
    engine_.counters.add_shared(Counter::device_bytes_direct, wanted.length);
  }
  if (failed && not_imported_.insert(wanted.rank).second)
    engine_.log(LogLevel::info, "device memory of rank " + std::to_string(wanted.rank) +
                                    " goes through host memory: " + transfer.error);
  transfer.error.clear();
  transfer.complete = !failed;
  transfer.state = failed ? Transfer::State::posted : Transfer::State::published;
  *wanted.status = failed ? drivers::Status::failed : drivers::Status::ok;
  engine_.submit(*wanted.done);  // the transfer may be gone now
  engine_.after_submit();
}

}  // namespace canele::comm::device
