// SPDX-License-Identifier: BSD-3-Clause
//
// The address that another rank has published, to an engine that is to connect to it.
//
// The input may begin as our own address would: otherwise the version alone would stop nearly every input.
#include "comm/engine/connect.hpp"
#include "fuzz_job.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace canele::fuzz;
  Input input(data, size);
  FuzzJob::Options options;
  options.drivers = {Like::shm, Like::tcp};
  options.joined = input.flag();
  const bool our_start = input.flag();
  if (our_start) {
    const std::uint32_t version = canele::comm::wire::version;
    const auto* bytes = reinterpret_cast<const std::byte*>(&version);
    options.address_of_others.assign(bytes, bytes + sizeof version);
  }
  const auto rest = input.rest();
  options.address_of_others.insert(options.address_of_others.end(), rest.begin(), rest.end());
  if (options.address_of_others.empty()) options.address_of_others.resize(1);
  FuzzJob job(options);
  canele_send_options_t sending{};
  sending.struct_size = sizeof sending;
  job.send(0, hostile, 1, 100, sending, false);
  job.settle();
  canele::comm::Peer& peer = job.peer(hostile);
  // The peer is connected, or rejected with a reason.
  FUZZ_CHECK(peer.state == canele::comm::Peer::State::up || (peer.disconnected() && !peer.reason.empty()));
  FUZZ_CHECK(is_printable(peer.reason));
  FUZZ_CHECK(job.posts() == 0);
  return 0;
}
