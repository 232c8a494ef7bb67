// SPDX-License-Identifier: BSD-3-Clause
//
// Messages from and to device memory, between the ranks of a job (or of one rank with itself).
#include <canele/collectives.h>
#include <canele/one_sided.h>
#include <canele/post.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "tests/gpu/exchange.hpp"

namespace canele::gpu_test {
namespace {

bool in_fragments = false;  ///< messages of some KiB are long

void sizes_and_ways() {
  unsigned seed = 1;
  for (const std::size_t length : {0, 1, 8, 47, 48, 49, 1024, 4095, 4096, 8192, 16'000, 65'536, 65'537, 1'000'003}) {
    for (const When when : {When::expected, When::unexpected, When::late, When::synchronous}) {
      exchange(when, true, true, length, length, seed++);
      exchange(when, true, false, length, length, seed++);
      exchange(when, false, true, length, length, seed++);
    }
  }
}

void truncation() {
  unsigned seed = 1000;
  for (const std::size_t length : {9, 5000, 300'000}) {
    for (const When when : {When::expected, When::unexpected}) {
      exchange(when, true, true, length, length - 3, seed++);
      exchange(when, false, true, length, 1, seed++);
      exchange(when, true, true, length, length + 7, seed++);
    }
  }
}

/// A host header and a device payload in one message, described as pieces of unknown kind.
void mixed_pieces() {
  for (const std::size_t length : {1, 3000, 200'000}) {
    std::string head = pattern(8, 1), got_head(8, '\0');
    const Buffer payload(true, pattern(length, 2));
    Buffer got(true, length);
    const iovec out[] = {{head.data(), 8}, {const_cast<Buffer&>(payload).data(), length}};
    const iovec in[] = {{got_head.data(), 8}, {got.data(), length}};
    const canele_iov_t from{out, 2}, to{in, 2};
    const canele_data_t data = canele_data_iov(&from), into = canele_data_iov(&to);
    canele_request_t send{}, receive{};
    canele_send_options_t options{};
    options.struct_size = sizeof options;
    options.header = 8;
    if (receives()) MUST(canele_irecv_data(job->session, job->peer, 7, CANELE_TAG_EXACT, &into, &receive));
    if (sends()) MUST(canele_isend_data(job->session, job->peer, 7, &data, &options, &send));
    if (receives()) EXPECT(wait(receive) == CANELE_OK);
    if (receives()) EXPECT(got_head == head && got.read() == pattern(length, 2));
    if (sends()) EXPECT(wait(send) == CANELE_OK);
  }
}

/// Tiles with gaps: described as rows with a pitch, and as a list of rows. Each costs one copy: of the receiver, if
/// that reads the sender's memory, else one a side.
void strided_tiles() {
  end_of_staging();
  constexpr std::size_t width = 240, rows = 50, pitch = 1000;
  for (const bool as_list : {false, true}) {
    Buffer from(true, pattern(rows * pitch, 3)), to(true, rows * pitch);
    std::vector<iovec> out, in;
    for (std::size_t row = 0; row < rows; ++row) {
      out.push_back({static_cast<char*>(from.data()) + row * pitch, width});
      in.push_back({static_cast<char*>(to.data()) + row * pitch, width});
    }
    const canele_iov_t from_list{out.data(), rows}, to_list{in.data(), rows};
    const canele_device_piece_t from_tile{from.data(), width, rows, pitch, CANELE_MEMORY_CUDA, 0};
    const canele_device_piece_t to_tile{to.data(), width, rows, pitch, CANELE_MEMORY_AUTO, 0};
    const canele_device_data_t from_all{sizeof from_all, &from_tile, 1, nullptr, nullptr};
    const canele_device_data_t to_all{sizeof to_all, &to_tile, 1, nullptr, nullptr};
    const canele_data_t data = as_list ? canele_data_iov(&from_list) : canele_data_device(&from_all);
    const canele_data_t into = as_list ? canele_data_iov(&to_list) : canele_data_device(&to_all);
    const std::uint64_t before = calls_of("cuMemcpy2DAsync_v2");
    canele_request_t send{}, receive{};
    if (receives()) MUST(canele_irecv_data(job->session, job->peer, 8, CANELE_TAG_EXACT, &into, &receive));
    if (sends()) MUST(canele_isend_data(job->session, job->peer, 8, &data, nullptr, &send));
    if (receives()) EXPECT(wait(receive) == CANELE_OK);
    if (sends()) EXPECT(wait(send) == CANELE_OK);
    const std::uint64_t calls = calls_of("cuMemcpy2DAsync_v2") - before;
    const std::uint64_t least = job->size == 1 ? 2 : direct && sends() ? 0 : 1;
    EXPECT(in_fragments ? calls >= least : calls == least);
    std::string wanted(rows * pitch, '\xee');
    for (std::size_t row = 0; row < rows; ++row)
      wanted.replace(row * pitch, width, pattern(rows * pitch, 3), row * pitch, width);
    if (receives()) EXPECT(to.read() == wanted);
  }
}

std::string report_of_engine() {
  std::string text(1 << 16, '\0');
  std::size_t needed = 0;
  MUST(canele_report(job->engine, text.data(), text.size(), &needed));
  return text;
}

/// Later sends of one tag do not overtake one that is still being read; those of other tags do. A report tells why.
void order() {
  constexpr int count = 12;
  job->barrier();
  if (sends()) {
    Buffer device(true, pattern(5000, 1));
    std::vector<std::string> host;
    for (int i = 1; i < count; ++i) host.push_back(pattern(100, static_cast<unsigned>(i)));
    canele_request_t requests[count]{}, other{};
    driver().fakeCudaHold(1);
    MUST(canele_isend(job->session, job->peer, 9, device.data(), 5000, &requests[0]));
    for (int i = 1; i < count; ++i)
      MUST(canele_isend(job->session, job->peer, 9, host[static_cast<std::size_t>(i - 1)].data(), 100, &requests[i]));
    EXPECT(canele_inject(job->session, job->peer, 9, "x", 1) == CANELE_EAGAIN);
    EXPECT(canele_inject(job->session, job->peer, 10, "y", 1) == CANELE_OK);
    MUST(canele_isend(job->session, job->peer, 11, "other", 5, &other));
    for (int i = 0; i < 50; ++i) canele_progress(job->engine);
    const std::string report = report_of_engine();
    EXPECT(report.find("waits for its device to copy the data") != std::string::npos);
    EXPECT(report.find("waits for an earlier send of device memory") != std::string::npos);
    int done = 1;
    MUST(canele_test(&requests[1], &done, nullptr));
    EXPECT(done == 0);
    if (job->size > 1) EXPECT(wait(other) == CANELE_OK);
    driver().fakeCudaHold(0);
    if (job->size > 1) {
      for (auto& request : requests) EXPECT(wait(request) == CANELE_OK);
      return;
    }
    std::string small(5, '\0'), y(1, '\0');
    canele_request_t receive{};
    MUST(canele_irecv(job->session, 0, 11, CANELE_TAG_EXACT, small.data(), 5, &receive));
    EXPECT(wait(receive) == CANELE_OK && small == "other");
    MUST(canele_irecv(job->session, 0, 10, CANELE_TAG_EXACT, y.data(), 1, &receive));
    EXPECT(wait(receive) == CANELE_OK && wait(other) == CANELE_OK);
    for (int i = 0; i < count; ++i) {
      std::string got(6000, '\0');
      canele_status_t status;
      MUST(canele_irecv(job->session, 0, 9, CANELE_TAG_EXACT, got.data(), got.size(), &receive));
      EXPECT(canele_wait(&receive, &status) == CANELE_OK);
      got.resize(status.length);
      EXPECT(got == (i == 0 ? pattern(5000, 1) : pattern(100, static_cast<unsigned>(i))));
      EXPECT(wait(requests[i]) == CANELE_OK);
    }
    return;
  }
  std::string small(5, '\0'), y(1, '\0');
  canele_request_t receive{};
  MUST(canele_irecv(job->session, job->peer, 11, CANELE_TAG_EXACT, small.data(), 5, &receive));
  EXPECT(wait(receive) == CANELE_OK && small == "other");
  MUST(canele_irecv(job->session, job->peer, 10, CANELE_TAG_EXACT, y.data(), 1, &receive));
  EXPECT(wait(receive) == CANELE_OK);
  for (int i = 0; i < count; ++i) {
    std::string got(6000, '\0');
    canele_status_t status;
    MUST(canele_irecv(job->session, job->peer, 9, CANELE_TAG_EXACT, got.data(), got.size(), &receive));
    EXPECT(canele_wait(&receive, &status) == CANELE_OK);
    got.resize(status.length);
    EXPECT(got == (i == 0 ? pattern(5000, 1) : pattern(100, static_cast<unsigned>(i))));
  }
}

/// The events of the program: the data is read after `ready`, and `copied` is recorded before the receive ends.
void events() {
  job->barrier();
  Stream stream = nullptr;
  Event ready = nullptr, copied = nullptr;
  driver().cuStreamCreate(&stream, stream_non_blocking);
  driver().cuEventCreate(&ready, event_disable_timing);
  driver().cuEventCreate(&copied, event_disable_timing);
  Buffer source(true, pattern(20'000, 5)), from(true, std::size_t{20'000}), to(true, std::size_t{20'000});
  const canele_device_piece_t out{from.data(), 20'000, 0, 0, CANELE_MEMORY_CUDA, 0};
  const canele_device_piece_t in{to.data(), 20'000, 0, 0, CANELE_MEMORY_CUDA, 0};
  const canele_device_data_t from_all{sizeof from_all, &out, 1, ready, nullptr};
  const canele_device_data_t to_all{sizeof to_all, &in, 1, nullptr, copied};
  const canele_data_t data = canele_data_device(&from_all), into = canele_data_device(&to_all);
  canele_request_t send{}, receive{};
  if (receives()) MUST(canele_irecv_data(job->session, job->peer, 12, CANELE_TAG_EXACT, &into, &receive));
  if (sends()) {
    driver().fakeCudaHold(1);
    driver().cuMemcpyAsync(reinterpret_cast<DevicePtr>(from.data()), reinterpret_cast<DevicePtr>(source.data()), 20'000,
                           stream);
    driver().cuEventRecord(ready, stream);
    MUST(canele_isend_data(job->session, job->peer, 12, &data, nullptr, &send));
    for (int i = 0; i < 20; ++i) canele_progress(job->engine);
    driver().fakeCudaHold(0);
    if (job->size > 1) EXPECT(wait(send) == CANELE_OK);
  }
  if (receives()) {
    EXPECT(wait(receive) == CANELE_OK);
    EXPECT(driver().cuEventQuery(copied) == success);
    EXPECT(to.read() == pattern(20'000, 5));
  }
  if (sends() && job->size == 1) EXPECT(wait(send) == CANELE_OK);
  // A send has nothing that is copied to a device; events need a piece on one.
  canele_device_data_t wrong = from_all;
  wrong.copied = copied;
  const canele_data_t with_copied = canele_data_device(&wrong);
  EXPECT(canele_isend_data(job->session, job->peer, 12, &with_copied, nullptr, &send) == CANELE_EINVAL);
}

/// A message whose event does not happen keeps no other one back.
void events_of_others() {
  job->barrier();
  Stream stream = nullptr;
  Event ready = nullptr;
  driver().cuStreamCreate(&stream, stream_non_blocking);
  driver().cuEventCreate(&ready, event_disable_timing);
  for (const std::size_t length : {2000, 50'000}) {
    Buffer late(true, pattern(length, 6)), other(true, pattern(length, 7)), got_late(true, length), got(true, length);
    const canele_device_piece_t piece{late.data(), length, 0, 0, CANELE_MEMORY_CUDA, 0};
    const canele_device_data_t all{sizeof all, &piece, 1, ready, nullptr};
    const canele_data_t data = canele_data_device(&all);
    canele_request_t sends_[2]{}, receives_[2]{};
    if (receives()) {
      MUST(canele_irecv(job->session, job->peer, 21, CANELE_TAG_EXACT, got_late.data(), length, &receives_[0]));
      MUST(canele_irecv(job->session, job->peer, 22, CANELE_TAG_EXACT, got.data(), length, &receives_[1]));
    }
    if (sends()) {
      driver().fakeCudaHoldStream(stream, 1);
      driver().cuEventRecord(ready, stream);
      MUST(canele_isend_data(job->session, job->peer, 21, &data, nullptr, &sends_[0]));
      MUST(canele_isend(job->session, job->peer, 22, other.data(), length, &sends_[1]));
    }
    if (receives()) EXPECT(wait(receives_[1]) == CANELE_OK && got.read() == pattern(length, 7));
    if (sends()) {
      EXPECT(wait(sends_[1]) == CANELE_OK);
      int done = 1;
      MUST(canele_test(&sends_[0], &done, nullptr));
      EXPECT(done == 0);
      driver().fakeCudaHoldStream(stream, 0);
    }
    if (receives()) EXPECT(wait(receives_[0]) == CANELE_OK && got_late.read() == pattern(length, 6));
    if (sends()) EXPECT(wait(sends_[0]) == CANELE_OK);
  }
}

void cancelled() {
  Buffer to(true, std::size_t{5000});
  canele_request_t receive{};
  for (int i = 0; i < 3; ++i) {
    MUST(canele_irecv(job->session, job->peer, 13, CANELE_TAG_EXACT, to.data(), 5000, &receive));
    MUST(canele_cancel(&receive));
    canele_status_t status{};
    EXPECT(canele_wait(&receive, &status) == CANELE_ECANCELED && status.cancelled == 1);
  }
  EXPECT(to.read() == std::string(5000, '\xee'));
}

/// A request of device memory is in use until its data is there.
void busy_until_copied() {
  job->barrier();
  const std::string bytes = pattern(3000, 6);
  Buffer to(true, std::size_t{3000});
  canele_request_t send{}, receive{};
  if (receives()) {
    driver().fakeCudaHold(1);
    MUST(canele_irecv(job->session, job->peer, 14, CANELE_TAG_EXACT, to.data(), 3000, &receive));
  }
  if (sends()) MUST(canele_isend(job->session, job->peer, 14, bytes.data(), 3000, &send));
  if (sends()) EXPECT(wait(send) == CANELE_OK);
  if (!receives()) return;
  std::uint64_t before = 0, now = 0;
  driver().fakeCudaCalls("cuEventQuery", &before);
  for (now = before; now < before + 5; driver().fakeCudaCalls("cuEventQuery", &now)) canele_progress(job->engine);
  int done = 1;
  MUST(canele_test(&receive, &done, nullptr));
  EXPECT(done == 0);
  EXPECT(canele_irecv(job->session, job->peer, 14, CANELE_TAG_EXACT, to.data(), 3000, &receive) == CANELE_EBUSY);
  MUST(canele_cancel(&receive));  // too late, and harmless
  EXPECT(canele_session_close(job->session) == CANELE_EBUSY);
  driver().fakeCudaHold(0);
  EXPECT(wait(receive) == CANELE_OK);
  EXPECT(to.read() == bytes);
}

/// A failed copy ends its request only, with CANELE_EDEVICE.
void device_errors() {
  job->barrier();
  Buffer on_device(true, pattern(4000, 7));
  std::string host(4000, '\0');
  canele_request_t send{}, receive{};
  if (sends()) {
    driver().fakeCudaFail("cuMemcpyAsync", 0, launch_failed, 0);
    MUST(canele_isend(job->session, job->peer, 15, on_device.data(), 4000, &send));
    EXPECT(wait(send) == CANELE_EDEVICE);
    MUST(canele_isend(job->session, job->peer, 15, on_device.data(), 4000, &send));
  }
  if (receives()) {
    MUST(canele_irecv(job->session, job->peer, 15, CANELE_TAG_EXACT, host.data(), 4000, &receive));
    EXPECT(wait(receive) == CANELE_OK && host == pattern(4000, 7));
  }
  if (sends()) EXPECT(wait(send) == CANELE_OK);
  if (sends()) MUST(canele_isend(job->session, job->peer, 16, host.data(), 4000, &send));
  if (receives()) {
    driver().fakeCudaFail("cuMemcpyAsync", 0, illegal_address, 0);
    MUST(canele_irecv(job->session, job->peer, 16, CANELE_TAG_EXACT, on_device.data(), 4000, &receive));
    EXPECT(wait(receive) == CANELE_EDEVICE);
    driver().fakeCudaFail("cuMemHostAlloc", 0, out_of_memory, 0);
    EXPECT(canele_irecv(job->session, job->peer, 16, CANELE_TAG_EXACT, on_device.data(), 3'000'000, &receive) ==
           CANELE_ENOMEM);
    driver().fakeCudaFail(nullptr, 0, success, 0);
  }
  if (sends()) EXPECT(wait(send) == CANELE_OK);
}

/// Persistent operations, posts without a request, packs.
void other_posts() {
  for (int round = 0; round < 3; ++round) {
    static canele_persistent_t send, receive;
    Buffer from(true, pattern(2000, 8)), to(true, std::size_t{2000});
    const canele_data_t data = canele_data_contiguous(from.data(), 2000);
    const canele_data_t into = canele_data_contiguous(to.data(), 2000);
    if (receives()) {
      MUST(canele_receive_init(job->session, job->peer, 17, CANELE_TAG_EXACT, &into, nullptr, &receive));
      MUST(canele_start(&receive));
    }
    if (sends()) {
      MUST(canele_send_init(job->session, job->peer, 17, &data, nullptr, &send));
      MUST(canele_start(&send));
    }
    if (receives()) EXPECT(wait(receive.request) == CANELE_OK && to.read() == pattern(2000, 8));
    if (sends()) EXPECT(wait(send.request) == CANELE_OK);
  }
  canele_completion_counter_t counter{};
  Buffer from(true, pattern(100'000, 9)), to(true, std::size_t{100'000});
  const canele_data_t data = canele_data_contiguous(from.data(), 100'000);
  const canele_data_t into = canele_data_contiguous(to.data(), 100'000);
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done.kind = CANELE_COMPLETE_COUNTER;
  options.done.object = &counter;
  if (receives()) MUST(canele_post_receive(job->session, job->peer, 18, CANELE_TAG_EXACT, &into, &options, nullptr));
  if (sends()) MUST(canele_post_send(job->session, job->peer, 18, &data, &options, nullptr));
  const std::uint64_t all = job->size == 1 ? 2 : 1;
  EXPECT(canele_completion_counter_wait(job->engine, &counter, all, UINT64_MAX) == CANELE_OK);
  if (receives()) EXPECT(to.read() == pattern(100'000, 9));
}

bool says_device(int code) { return code == CANELE_EINVAL && std::strstr(canele_error_detail(), "device") != nullptr; }

/// Calls that take host memory only say so.
void rejections() {
  Buffer device(true, std::size_t{64});
  char host[64] = "";
  const canele_data_t data = canele_data_contiguous(device.data(), 64);
  const canele_data_t there = canele_data_contiguous(host, 64);
  EXPECT(says_device(canele_inject(job->session, job->peer, 1, device.data(), 8)));
  canele_am_t message{};
  EXPECT(says_device(canele_am_send(job->session, job->peer, 1, nullptr, 0, &data, nullptr, &message)));
  EXPECT(says_device(canele_am_send(job->session, job->peer, 1, device.data(), 8, nullptr, nullptr, &message)));
  canele_request_t request{};
  canele_memory_t* memory = nullptr;
  EXPECT(says_device(canele_memory_register(job->engine, device.data(), 64, nullptr, &memory)));
  void* base = nullptr;
  MUST(canele_memory_allocate(job->engine, 64, nullptr, &base, &memory));
  unsigned char bytes[CANELE_KEY_SIZE];
  canele_key_t* key = nullptr;
  MUST(canele_memory_key(memory, bytes));
  MUST(canele_key_open(job->engine, bytes, &key));
  EXPECT(says_device(canele_put(key, 0, &data, nullptr, nullptr)));
  EXPECT(says_device(canele_put(key, 0, &data, nullptr, &request)));
  EXPECT(says_device(canele_get(key, 0, &data, nullptr, &request)));
  EXPECT(says_device(canele_atomic(key, 0, CANELE_ATOMIC_READ, 8, 0, 0, device.data(), nullptr, &request)));
  MUST(canele_put(key, 0, &there, nullptr, &request));
  EXPECT(wait(request) == CANELE_OK);
  MUST(canele_key_close(key));
  MUST(canele_memory_free(memory));
  canele_group_t* group = nullptr;
  MUST(canele_group_create(job->engine, "rejections", nullptr, 0, &group));
  canele_collective_options_t options{};
  options.struct_size = sizeof options;
  options.blocking = 1;
  for (int i = 0; i < 2; ++i) EXPECT(canele_ibcast(group, host, 64, 0, &options, nullptr) == CANELE_OK);
  EXPECT(says_device(canele_ibcast(group, device.data(), 64, 0, &options, nullptr)));
  EXPECT(says_device(canele_igather(group, device.data(), 8, nullptr, nullptr, 0, &options, nullptr)) ||
         job->rank == 0);
  // Descriptions that are wrong.
  canele_device_piece_t piece{host, 8, 2, 4, CANELE_MEMORY_AUTO, 0};
  canele_device_data_t all{sizeof all, &piece, 1, nullptr, nullptr};
  canele_data_t tile = canele_data_device(&all);
  EXPECT(canele_isend_data(job->session, job->peer, 1, &tile, nullptr, &request) == CANELE_EINVAL);
  piece = {host, 8, 1, 0, CANELE_MEMORY_CUDA, 0};
  EXPECT(says_device(canele_isend_data(job->session, job->peer, 1, &tile, nullptr, &request)));
  EXPECT(canele_device_support(job->engine, 7) == CANELE_EINVAL);
}

/// Random messages of both kinds in both directions, many at a time, matched by tag in order.
void random_messages(unsigned seed) {
  constexpr int count = 300;
  std::mt19937 dice(seed);  // both ranks draw the same numbers
  struct Message {
    std::unique_ptr<Buffer> from, to;
    canele_request_t send{}, receive{};
    std::string bytes;
    std::uint64_t tag;
  };
  std::vector<Message> all(count);
  for (int i = 0; i < count; ++i) {
    Message& one = all[static_cast<std::size_t>(i)];
    const bool from_device = dice() % 2 != 0, to_device = dice() % 3 != 0, long_one = dice() % 10 == 0;
    const std::size_t length = dice() % (long_one ? 200'000 : 3000);
    one.tag = 100 + dice() % 4;
    one.bytes = pattern(length, static_cast<unsigned>(i));
    one.from = std::make_unique<Buffer>(from_device, one.bytes);
    one.to = std::make_unique<Buffer>(to_device, length);
    const bool early = dice() % 2 != 0;
    const auto receive = [&] {
      MUST(canele_irecv(job->session, job->peer, one.tag, CANELE_TAG_EXACT, one.to->data(), length, &one.receive));
    };
    if (early) receive();
    MUST(canele_isend(job->session, job->peer, one.tag, one.from->data(), length, &one.send));
    if (!early) receive();
    if (dice() % 8 == 0) canele_progress(job->engine);
  }
  for (Message& one : all) {
    EXPECT(wait(one.receive) == CANELE_OK);
    EXPECT(one.to->read() == one.bytes);
  }
  for (Message& one : all) EXPECT(wait(one.send) == CANELE_OK);
}

/// Threads without a context post and wait.
void threads() {
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 3; ++t) {
    all.emplace_back([t] {
      for (unsigned i = 0; i < 20; ++i) {
        use_device(0);
        Buffer from(true, pattern(1000 + 700 * i, t)), to(true, 1000 + 700 * i);
        driver().cuCtxSetCurrent(nullptr);
        canele_request_t send{}, receive{};
        MUST(canele_irecv(job->session, job->peer, 200 + t, CANELE_TAG_EXACT, to.data(), 1000 + 700 * i, &receive));
        MUST(canele_isend(job->session, job->peer, 200 + t, from.data(), 1000 + 700 * i, &send));
        EXPECT(wait(receive) == CANELE_OK && wait(send) == CANELE_OK);
        Context current = nullptr;
        driver().cuCtxGetCurrent(&current);
        EXPECT(current == nullptr);
        use_device(0);
        EXPECT(to.read() == pattern(1000 + 700 * i, t));
      }
    });
  }
  for (auto& thread : all) thread.join();
}

void other_device_and_kinds() {
  use_device(1);
  const DeviceMemory second(pattern(5000, 4));
  use_device(0);
  const DeviceMemory pool(5000, DeviceMemory::Kind::pool);
  canele_request_t send{}, receive{};
  if (receives()) MUST(canele_irecv(job->session, job->peer, 20, CANELE_TAG_EXACT, pool.data(), 5000, &receive));
  if (sends()) MUST(canele_isend(job->session, job->peer, 20, second.data(), 5000, &send));
  if (receives()) EXPECT(wait(receive) == CANELE_OK && pool.read() == pattern(5000, 4));
  if (sends()) EXPECT(wait(send) == CANELE_OK);
  int kind = -1, device = -1;
  MUST(canele_device_kind_of(job->engine, second.data(), &kind, &device));
  EXPECT(kind == CANELE_MEMORY_CUDA && device == 1);
  MUST(canele_device_kind_of(job->engine, &kind, &kind, &device));
  EXPECT(kind == CANELE_MEMORY_HOST && device == -1);
}

/// Copies within the process, between all kinds.
void local_copies() {
  for (const bool from_device : {false, true}) {
    for (const bool to_device : {false, true}) {
      Buffer from(from_device, pattern(9000, 3)), to(to_device, std::size_t{9000});
      const canele_data_t source = canele_data_contiguous(from.data(), 9000);
      const canele_data_t target = canele_data_contiguous(to.data(), 9000);
      MUST(canele_device_copy(job->engine, &target, &source));
      EXPECT(to.read() == pattern(9000, 3));
    }
  }
  char byte = 0;
  const canele_data_t one = canele_data_contiguous(&byte, 1), none = canele_data_contiguous(&byte, 0);
  EXPECT(canele_device_copy(job->engine, &one, &none) == CANELE_EINVAL);
}

int run(int argc, char** argv) {
  static Job made;
  job = &made;
  const unsigned seeds = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 3;
  in_fragments = std::getenv("CANELE_EXPERT_GPU_FRAGMENT") != nullptr;
  direct = job->size == 2 && std::getenv("FAKE_CUDA_NO_IPC") == nullptr;
  sizes_and_ways();
  truncation();
  mixed_pieces();
  strided_tiles();
  order();
  events();
  events_of_others();
  cancelled();
  busy_until_copied();
  device_errors();
  other_posts();
  other_device_and_kinds();
  rejections();
  local_copies();
  threads();
  for (unsigned seed = 1; seed <= seeds; ++seed) random_messages(seed);
  job->barrier();
  return made.end();
}

}  // namespace
}  // namespace canele::gpu_test

int main(int argc, char** argv) { return canele::gpu_test::run(argc, argv); }
