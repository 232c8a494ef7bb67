// SPDX-License-Identifier: BSD-3-Clause
//
// Finding devices, and the posts of messages of device memory. progress.cpp has what follows.
#include "comm/device/devices.hpp"

#include <link.h>

#include <new>

#include "comm/protocol/receive_eager.hpp"
#include "comm/registry/registry.hpp"
#include "comm/state/request_setup.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::device {
namespace {

/// Returns how many libraries the process has loaded until now.
std::uint64_t libraries_loaded() {
  std::uint64_t loads = 0;
  const auto read = [](dl_phdr_info* info, std::size_t, void* result) {
    *static_cast<std::uint64_t*>(result) = info->dlpi_adds;
    return 1;  // each library tells the number: the first is enough
  };
  dl_iterate_phdr(read, &loads);
  return loads;
}

/// Marks a request whose events Devices publishes.
void mark_staged(Request& request) {
  const RequestWordGuard guard(request.context);  // other threads may wait for a begun request
  request.word.fetch_or(RequestWord::staged_bit, std::memory_order_acq_rel);
}

constexpr const char* how_to_help =
    "; expected: host memory. Copy the data to host memory first, or use a send or receive, which take device memory";

}  // namespace

void use(Engine& engine, std::unique_ptr<drivers::Memory> memory) {
  std::shared_ptr<void> devices = std::make_shared<Devices>(engine, std::move(memory));
  engine.lock_for_callback();
  if (engine.devices == nullptr) {
    engine.devices.swap(devices);
    engine.has_devices.store(true, std::memory_order_release);  // with present()
    engine.sessions.devices_present = true;
    engine.sessions.each([](Session& session) { session.posts_fast = false; });
  }
  engine.unlock();
}

bool find(Engine& engine, std::string* why) {
  if (present(engine)) return true;
  const Settings& settings = *engine.lifecycle.settings;
  const std::string& setting = settings.text(Setting::gpu);
  if (setting == "off" || !engine.platform.has_system_threads()) {
    *why = "CANELE_GPU is off";
    return false;
  }
  const auto when = setting == "auto" ? drivers::DeviceLibrary::if_loaded : drivers::DeviceLibrary::load;
  for (const drivers::MemoryFactory* const factory : all_memory_kinds()) {
    std::unique_ptr<drivers::Memory> memory = factory->open(when, settings.text(Setting::gpu_library), why);
    if (memory == nullptr) continue;
    engine.log(LogLevel::info, "messages of " + std::string(memory->name()) +
                                   " memory: " + std::to_string(memory->devices()) + " devices");
    use(engine, std::move(memory));
    return true;
  }
  return false;
}

void find_if_loaded(Engine& engine) {
  if (present(engine)) return;
  const std::uint64_t loads = libraries_loaded();
  if (engine.loads_without_devices.load(std::memory_order_relaxed) == loads) return;
  std::string why;
  if (!find(engine, &why)) engine.loads_without_devices.store(loads, std::memory_order_relaxed);
}

std::string reject_device_memory(Engine& engine, const void* address) {
  drivers::MemoryPlace place;
  if (!present(engine) || !of(engine).memory().locate(address, &place)) return "";
  return "the buffer is memory of " + std::string(of(engine).memory().name()) + " device " +
         std::to_string(place.device) + how_to_help;
}

std::string reject_device_data(Engine& engine, const canele_data_t& data) {
  if (!present(engine) && data.segments != device_segments) return "";
  Layout layout;
  const Answer answer = layout.describe(present(engine) ? &of(engine).memory() : nullptr, data);
  if (answer.code != CANELE_OK) return answer.why;
  return layout.on_device() ? "the data is memory of device " + std::to_string(layout.places[0].device) + how_to_help
                            : "";
}

Devices::Devices(Engine& engine, std::unique_ptr<drivers::Memory> memory)
    : engine_(engine),
      memory_(std::move(memory)),
      pool_(*memory_, engine.lifecycle.settings->number(Setting::gpu_staging)),
      imports_(*memory_),
      staged_next_(static_cast<std::size_t>(engine.size)),
      least_exported_(engine.lifecycle.settings->number(Setting::gpu_export_min)),
      fragment_(engine.lifecycle.settings->number(Setting::gpu_fragment)),
      order_(engine.platform) {
  task_.devices = this;
}

Devices::~Devices() = default;

std::unique_ptr<Transfer> Devices::make_transfer(Layout&& layout, bool sends) {
  auto transfer = std::make_unique<Transfer>();
  transfer->may_publish = Devices::may_publish;
  transfer->ended_publishing = Devices::ended;
  transfer->devices = this;
  transfer->fail = Devices::fail;
  transfer->arrived = Devices::arrived;
  transfer->layout = std::move(layout);
  transfer->waits = transfer->layout.ready != nullptr;
  transfer->sends = sends;
  // Copies cost some microseconds each beside their bytes. So long messages have longer fragments, not many more.
  constexpr std::size_t most_fragments = 32;
  transfer->fragment = std::max(fragment_, transfer->layout.length / most_fragments);
  return transfer;
}

Answer Devices::take_staging(Transfer& transfer) {
  Answer answer;
  transfer.staging = pool_.take(transfer.layout.length, &answer.why);
  if (transfer.staging.base == nullptr) answer.code = CANELE_ENOMEM;
  return answer;
}

// ---- posts ----------------------------------------------------------------------------------------------------------

std::optional<Answer> Devices::send(const SendToPost& what, Request& request) {
  Layout layout;
  if (Answer answer = describe_send(what.data, &layout); answer.code != CANELE_OK) return answer;
  const bool on_device = layout.on_device();
  const WaitingSend waiting{&what.session, what.destination, what.tag, &request};
  if (!on_device && !order_.must_wait(what.session, what.destination, what.tag)) return std::nullopt;
  std::unique_ptr<Transfer> transfer;
  canele_data_t data = what.data;
  if (on_device) {
    transfer = make_transfer(std::move(layout), true);
    if (!export_to(what, *transfer)) {
      if (Answer answer = take_staging(*transfer); answer.code != CANELE_OK) return answer;
      transfer->in_fragments = transfer->layout.length >= 2 * transfer->fragment;
    }
    data = transfer->data();
  }
  if (request.stage == Request::Stage::begun) {
    prepare_begun_send(request, what.session, what.destination, what.tag, data, what.header);
  } else {
    prepare_send(request, what.session, what.destination, what.tag, data, what.header);
  }
  request.synchronous = what.synchronous;
  request.item.priority = what.priority;
  count_waiting(what.session);
  const bool exported = transfer != nullptr && transfer->state == Transfer::State::exported;
  request.rendezvous = exported || (transfer != nullptr && transfer->in_fragments);
  const bool may_leave = transfer == nullptr || (exported && transfer->layout.ready == nullptr);
  if (!may_leave) {
    post_copying(std::move(transfer), waiting);
  } else {
    if (transfer != nullptr) adopt(std::move(transfer), request);
    post_in_order(waiting);
  }
  return Answer{};
}

std::optional<Answer> Devices::multicast(const SendToPost& what, std::unique_ptr<Multicast>& multicast,
                                         Request& request) {
  Layout layout;
  if (Answer answer = describe_send(what.data, &layout); answer.code != CANELE_OK) return answer;
  const WaitingSend waiting{&what.session, every_rank, what.tag, &request, multicast.get()};
  std::unique_ptr<Transfer> transfer;
  canele_data_t data = what.data;
  if (layout.on_device()) {
    CANELE_COVER(multicast_from_device);
    transfer = make_transfer(std::move(layout), true);
    if (Answer answer = take_staging(*transfer); answer.code != CANELE_OK) return answer;
    data = transfer->data();
  } else if (!order_.must_wait(what.session, every_rank, what.tag)) {
    return std::nullopt;
  }
  prepare_send(request, what.session, engine_.rank, what.tag, data, what.header);
  multicast.release()->request = &request;
  count_waiting(what.session);
  if (transfer != nullptr) {
    post_copying(std::move(transfer), waiting);
  } else {
    post_in_order(waiting);
  }
  return Answer{};
}

/// Describes the data of a send or multicast.
Answer Devices::describe_send(const canele_data_t& data, Layout* layout) {
  if (Answer answer = layout->describe(memory_.get(), data); answer.code != CANELE_OK) return answer;
  if (layout->copied == nullptr) return {};
  return {CANELE_EINVAL, "an event for copied data is given to a send; expected: NULL"};
}

/// Gives a transfer to its request.
void Devices::adopt(std::unique_ptr<Transfer> transfer, Request& request) {
  mark_staged(request);
  transfer.release()->request = &request;
  transfers_.fetch_add(1, std::memory_order_relaxed);
  engine_.counters.add_shared(Counter::device_messages);
}

/// Waits for the event of a send, and begins to copy its data to staging memory. It is posted when its data is there.
void Devices::post_copying(std::unique_ptr<Transfer> transfer, const WaitingSend& send) {
  Transfer& posted = *transfer;
  const std::size_t length = posted.layout.length;
  adopt(std::move(transfer), *send.request);
  WaitingSend waiting = send;
  waiting.state = WaitingSend::State::copying;
  order_.add(waiting);
  start(posted);
  mail(posted, 0);  // it may be gone now
  engine_.after_submit(length);
}

/// Posts a send whose data needs no copy. It waits if an earlier one does.
void Devices::post_in_order(const WaitingSend& send) {
  // The send before it may have left meanwhile: then there is nothing to wait for.
  if (!order_.add_if_it_must_wait(send)) release(send);
  engine_.after_submit();
}

/// Counts a send that waits, so that its session and its engine stay.
void Devices::count_waiting(Session& session) {
  engine_.lock_for_callback();
  ++session.pending;
  ++engine_.pending_sends;
  engine_.unlock();
}

/// Makes the transfer of a receive. Its message may have to come through host memory, so it has staging memory.
std::unique_ptr<Transfer> Devices::make_receive(Layout&& layout, Answer* answer) {
  std::unique_ptr<Transfer> transfer = make_transfer(std::move(layout), false);
  *answer = take_staging(*transfer);
  if (answer->code != CANELE_OK) return nullptr;
  if (transfer->layout.is_on_one_device()) transfer->get = Devices::get;
  return transfer;
}

std::optional<Answer> Devices::receive(const Posting& given) {
  Layout layout;
  Answer answer = layout.describe(memory_.get(), given.data);
  if (answer.code != CANELE_OK) return answer;
  if (!layout.on_device()) return std::nullopt;
  std::unique_ptr<Transfer> transfer = make_receive(std::move(layout), &answer);
  if (transfer == nullptr) return answer;
  Request& request = *given.request;
  Posting posting = given;
  posting.data = transfer->data();
  prepare_outcome(request, *given.session, Request::Kind::receive);
  request.unbound = false;
  adopt(std::move(transfer), request);
  transition(request, Request::Stage::posted);
  receive_path::fill(engine_, posting);
  request.PostOp::kind = OpKind::receive;
  engine_.submit(static_cast<PostOp&>(request));
  engine_.after_submit(given.data.length);
  return Answer{};
}

std::optional<Answer> Devices::bind(Request& request, const canele_data_t& data) {
  Layout layout;
  Answer answer = layout.describe(memory_.get(), data);
  if (answer.code != CANELE_OK) return answer;
  if (!layout.on_device()) return std::nullopt;
  std::unique_ptr<Transfer> transfer = make_receive(std::move(layout), &answer);
  if (transfer == nullptr) return answer;
  request.data = transfer->data();
  adopt(std::move(transfer), request);
  request.PostOp::kind = OpKind::bind;
  engine_.submit(static_cast<PostOp&>(request));
  engine_.after_submit(data.length);
  return Answer{};
}

}  // namespace canele::comm::device
