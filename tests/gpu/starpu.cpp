// SPDX-License-Identifier: BSD-3-Clause
//
// The NewMadeleine interface as StarPU uses it, with data on devices: tiles with gaps, and data of unknown type, whose
// size comes from host memory and its data from a device in one message.
#include <mpi-ext.h>
#include <mpi.h>
#include <nm_launcher_interface.h>
#include <nm_mpi_nmad.h>
#include <nm_sendrecv_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/gpu/checks.hpp"

namespace canele::gpu_test {
namespace {

int rank = 0, size = 1;

/// A request of StarPU: it is told of the end, and of a header.
struct Operation {
  nm_sr_request_t request{};
  piom_cond_t done{};
  nm_session_t session{};
  nm_gate_t gate{};
  std::int64_t length = 0;
  std::unique_ptr<DeviceMemory> payload;
  struct iovec pieces[2] = {};

  explicit Operation(int peer) {
    piom_cond_init(&done, 0);
    nm_mpi_nmad_dest(&session, &gate, MPI_COMM_WORLD, peer);
  }
  ~Operation() { piom_cond_destroy(&done); }
  void wait() {
    while (!piom_cond_test_locked(&done, 1)) piom_cond_wait(&done, 1);
  }
};

void signal_done(nm_sr_event_t event, const nm_sr_event_info_t*, void* reference) {
  if ((event & NM_SR_EVENT_FINALIZED) != 0) piom_cond_signal(&static_cast<Operation*>(reference)->done, 1);
}

void monitor(Operation& one, nm_sr_event_t events, nm_sr_event_notifier_t notifier) {
  nm_sr_request_set_ref(&one.request, &one);
  EXPECT(nm_sr_request_monitor(one.session, &one.request, events, notifier) == NM_ESUCCESS);
}

void send(Operation& one, const nm_data_s& data, nm_tag_t tag) {
  nm_sr_send_init(one.session, &one.request);
  nm_sr_send_pack_data(one.session, &one.request, &data);
  if (one.length != 0) nm_sr_send_header(one.session, &one.request, sizeof one.length);
  EXPECT(nm_sr_send_isend(one.session, &one.request, one.gate, tag) == NM_ESUCCESS);
  monitor(one, NM_SR_EVENT_FINALIZED, signal_done);
}

/// A tile of a matrix whose leading dimension is larger than the tile, from device to device.
void tiles() {
  constexpr std::size_t rows = 200, width = 100 * sizeof(double), pitch = 512 * sizeof(double);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  const DeviceMemory out(pattern(rows * pitch, static_cast<unsigned>(rank))), in(rows * pitch);
  driver().cuMemsetD8_v2(in.pointer(), 0, in.size());
  MPI_Datatype type;
  MPI_Type_vector(rows, width, pitch, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  const MPI_Datatype sent = type;
  Operation to(next), from(previous);
  nm_data_s data;
  nm_mpi_nmad_data_get(&data, in.data(), type, 1);
  nm_sr_recv_init(from.session, &from.request);
  nm_sr_recv_unpack_data(from.session, &from.request, &data);
  nm_sr_recv_irecv(from.session, &from.request, from.gate, 77, NM_TAG_MASK_FULL);
  monitor(from, NM_SR_EVENT_FINALIZED, signal_done);
  nm_mpi_nmad_data_get(&data, out.data(), type, 1);
  send(to, data, 77);
  MPI_Type_free(&type);
  to.wait();
  from.wait();
  nm_mpi_nmad_data_release(sent);
  nm_mpi_nmad_data_release(sent);
  const std::string source = pattern(rows * pitch, static_cast<unsigned>(previous));
  std::string wanted(rows * pitch, '\0');
  for (std::size_t row = 0; row < rows; ++row) wanted.replace(row * pitch, width, source, row * pitch, width);
  EXPECT(in.read() == wanted);
}

/// The header has come: makes room for the data on the device, and binds both pieces.
void bind(nm_sr_event_t event, const nm_sr_event_info_t* info, void* reference) {
  auto& one = *static_cast<Operation*>(reference);
  if ((event & NM_SR_EVENT_RECV_DATA) == 0) return signal_done(event, info, reference);
  nm_data_s data;
  nm_data_contiguous_build(&data, &one.length, sizeof one.length);
  EXPECT(nm_sr_recv_peek(one.session, &one.request, &data) == NM_ESUCCESS);
  use_device(0);
  one.payload = std::make_unique<DeviceMemory>(static_cast<std::size_t>(one.length));
  one.pieces[0] = {&one.length, sizeof one.length};
  one.pieces[1] = {one.payload->data(), static_cast<std::size_t>(one.length)};
  nm_data_iov_build(&data, one.pieces, 2);
  nm_sr_recv_offset(one.session, &one.request, sizeof one.length);
  nm_sr_recv_unpack_data(one.session, &one.request, &data);
}

void unknown_types() {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (const std::int64_t length : {std::int64_t{1}, std::int64_t{5000}, std::int64_t{700'000}}) {
    Operation from(previous), to(next);
    nm_sr_recv_init(from.session, &from.request);
    monitor(from, static_cast<nm_sr_event_t>(NM_SR_EVENT_FINALIZED | NM_SR_EVENT_RECV_DATA), bind);
    nm_sr_recv_irecv(from.session, &from.request, from.gate, 78, NM_TAG_MASK_FULL);
    to.length = length;
    to.payload = std::make_unique<DeviceMemory>(pattern(static_cast<std::size_t>(length), static_cast<unsigned>(rank)));
    to.pieces[0] = {&to.length, sizeof to.length};
    to.pieces[1] = {to.payload->data(), static_cast<std::size_t>(length)};
    nm_data_s data;
    nm_data_iov_build(&data, to.pieces, 2);
    send(to, data, 78);
    to.wait();
    from.wait();
    EXPECT(from.length == length);
    EXPECT(from.payload != nullptr &&
           from.payload->read() == pattern(static_cast<std::size_t>(length), static_cast<unsigned>(previous)));
  }
}

int run(int argc, char** argv) {
  use_device(0);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(MPIX_Query_cuda_support() == 1);
  for (int round = 0; round < 3; ++round) {
    tiles();
    unknown_types();
  }
  MPI_Finalize();
  return end_checks(rank);
}

}  // namespace
}  // namespace canele::gpu_test

int main(int argc, char** argv) { return canele::gpu_test::run(argc, argv); }
