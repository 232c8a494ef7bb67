// SPDX-License-Identifier: BSD-3-Clause
//
// Script: an input of packet_fuzz as a list of steps: packets of rank 1, actions of the fabric, actions of the user.
//
// Used by packet_fuzz.cpp; make_seeds.cpp writes some. One thread. Every byte string is a script. A step is its number
// and its operands, each a byte, if not stated otherwise:
//
//    kind of job                first of all: which drivers, which strategy
//    raw      rail, size, bytes                     a packet as it stands
//    built    rail, count, count × chunk, changes   chunk: Type, tag, number, session, then what its type has
//                                                   changes: count, count × (position u16, value)
//    bulk     rail, key, offset, length, hold       names and lengths by tables: see name() and length()
//    ...
#pragma once

#include "fuzz_job.hpp"

namespace canele::fuzz {

enum class Step : std::uint8_t {
  raw,
  built,
  bulk,
  hold_ends,
  operation_ends,
  room,
  answers,
  line,
  send,
  receive,
  probe,
  cancel,
  bind,
  fails,
  turn,
  access,  ///< a one-sided operation of ours
  revoke,  ///< of our memory
  count
};

/// Kinds of job, by the first byte.
inline constexpr std::uint8_t job_shm = 0, job_tcp = 1, job_ofi = 2, job_shm_and_tcp = 3, job_tcp_and_ofi = 4,
                              job_count = 5;
/// Added to a kind of job: rank 1 has granted hardly any credit, and there is little to grant.
inline constexpr std::uint8_t job_short_of_memory = 3 * job_count;
/// Lengths that a byte selects by its index; larger bytes stand for themselves.
inline constexpr std::uint64_t lengths[] = {0,
                                            1,
                                            8,
                                            100,
                                            3000,
                                            4096,
                                            32768,
                                            65536,
                                            131072,
                                            200000,
                                            1 << 20,
                                            std::uint64_t{1} << 31,
                                            std::uint64_t{1} << 32,
                                            std::uint64_t{1} << 63,
                                            ~std::uint64_t{0}};
/// From this value to 239, a byte is the type of a one-sided operation.
inline constexpr std::uint8_t first_one_sided = 220;
/// From this value on, a byte names one of the handles that the engine has given away, the latest first.
inline constexpr std::uint8_t first_handle = 32;

class Script {
 public:
  explicit Script(Input& input);
  void run();

 private:
  void step();
  void raw_packet();
  void built_packet();
  void put_chunk(Bytes& packet, bool first);
  Bytes payload_of(comm::wire::Type type, comm::wire::Head& head);
  Bytes rts(comm::wire::Head& head);
  Bytes multicast_rts(comm::wire::Head& head);
  Bytes rtr(bool shared);
  comm::wire::Notification notification(std::uint64_t offset);
  comm::wire::Strides strides();
  void append_put(Bytes& payload, std::uint64_t offset);
  void append_accumulate(Bytes& payload);
  Bytes one_sided(comm::wire::Type type, comm::wire::Head& head);
  void write_line();
  void post_send();
  void post_multicast(std::uint8_t which);
  void post_receive();
  void post_access();
  void deliver(WireDriver& driver, Bytes packet);

  WireDriver& rail() { return job_.driver(input_.byte()); }
  std::uint64_t name();
  std::uint64_t length();
  int source();
  std::uint64_t mask();

  Input& input_;
  FuzzJob job_;
  std::uint32_t coming_ = 0;  ///< envelopes in the packet that is being built
};

}  // namespace canele::fuzz
