// SPDX-License-Identifier: BSD-3-Clause
//
// What each of Canelé's own drivers must declare: a driver that declares less fails, instead of being tested less.
//
// It is a list of minima: what a driver declares beyond it is tested too.
#include "tests/conformance/suite.hpp"

namespace canele::conformance {
namespace {

using drivers::WakeUp;

constexpr KnownDriver known[] = {
    {.variant = "self",
     .name = "self",
     .min_inline = 56,
     .min_packet = 16384,
     .memory_only = true,
     .reserves = true,
     .bulk_stream = true,
     .get = true,
     .put = true,
     .rma_any_thread = true,
     .wake_up = WakeUp::doorbell,
     .self = true},
    {.variant = "shm",
     .name = "shm",
     .min_inline = 56,
     .min_packet = 16384,
     .memory_only = true,
     .reserves = true,
     .bulk_stream = true,
     .get = true,
     .put = true,
     .rma_any_thread = true,
     .shared_lines = 28,
     .wake_up = WakeUp::doorbell,
     .local = true,
     .detects_failure = true,
     .dials = true},
    {.variant = "shm_two_copies",
     .name = "shm",
     .min_inline = 56,
     .min_packet = 16384,
     .memory_only = true,
     .reserves = true,
     .bulk_stream = true,
     .shared_lines = 28,
     .wake_up = WakeUp::doorbell,
     .local = true,
     .detects_failure = true,
     .dials = true},
    {.variant = "tcp",
     .name = "tcp",
     .min_inline = 64,
     .min_packet = 16384,
     .bulk_stream = true,
     .wake_up = WakeUp::descriptor,
     .local = true,
     .detects_failure = true,
     .dials = true},
    {.variant = "ofi_tcp_rxm",
     .name = "ofi",
     .min_inline = 32,
     .min_packet = 4096,
     .bulk_stream = true,
     .get = true,
     .put = true,
     .wake_up = WakeUp::descriptor,
     .local = true,
     .remote = true,
     .detects_failure = true},
    {.variant = "ofi_shm",
     .name = "ofi",
     .min_inline = 32,
     .min_packet = 2048,
     .bulk_stream = true,
     .get = true,
     .put = true,
     .local = true,
     .cannot = "killed",
     .because =
         "libfabric's shm has one queue for all senders, and a sender that is killed while it fills its slot stops it"},
    {.variant = "ofi_udp_rxd",
     .name = "ofi",
     .min_inline = 32,
     .min_packet = 4096,
     .bulk_stream = true,
     .get = true,
     .put = true,
     .local = true,
     .remote = true,
     .slow = true,
     .cannot = "peer_has_left",
     .because = "libfabric's rxd tells of a peer that never answers after minutes only"},
    {.variant = "psm2",
     .name = "psm2",
     .min_inline = 56,
     .min_packet = 4096,
     .bulk_stream = true,
     .wake_up = WakeUp::descriptor,  // not with hardware
     .local = true,                  // and remote with hardware
     .detects_failure = true,
     .max_instances = 1,
     .parts_survivors = true},  // libpsm2's senders lock the receiver's queue
};

}  // namespace

const KnownDriver* known_driver(std::string_view variant) {
  for (const KnownDriver& one : known) {
    if (one.variant == variant) return &one;
  }
  return nullptr;
}

}  // namespace canele::conformance
