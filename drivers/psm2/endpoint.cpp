// SPDX-License-Identifier: BSD-3-Clause
//
// Opening and closing libpsm2. See endpoint.hpp.
//
// Some errors end the process whatever handler is registered, because libpsm2 takes them for fatal. Examples are an
// assertion of its own, and a lack of memory while it answers a connection. README.md lists those that were found.
#include "drivers/psm2/endpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "drivers/net/bytes.hpp"
#include "drivers/net/siphash.hpp"
#include "drivers/psm2/stale_shm.hpp"

namespace canele::drivers::psm2 {
namespace {

constexpr std::int64_t open_patience_ns = 5'000'000'000;
constexpr std::int64_t connect_patience_ns = 2'000'000'000;  ///< what libpsm2 makes of any shorter limit
constexpr std::int64_t close_patience_ns = 1'000'000'000;    ///< what libpsm2 makes of any shorter limit

enum class Life : int { never, open, closed };
std::atomic<Life> endpoint_life{Life::never};  ///< state of this process's only endpoint
std::atomic<bool> library_ready{false};

std::string text_of(psm2_error_t error) {
  return std::string(psm2_error_get_string(error)) + " (libpsm2 error " + std::to_string(error) + ")";
}

/// Derives the key that all ranks of a job share. It is visible to others, so it contains nothing secret.
void derive_key(std::uint64_t job, psm2_uuid_t key) {
  std::array<std::byte, 16> public_key = {};
  std::memcpy(public_key.data(), "canele psm2 job ", public_key.size());
  std::array<std::byte, 9> text = {};
  net::write_le(text.data(), job, 8);
  for (int half = 0; half < 2; ++half) {
    text[8] = static_cast<std::byte>(half);
    const std::uint64_t bits = net::siphash24(public_key, text);
    std::memcpy(key + 8 * half, &bits, sizeof bits);
  }
}

bool start_library(std::string* reason) {
  if (library_ready) return true;
  // Before any other call; otherwise the first error ends the process.
  psm2_error_register_handler(nullptr, PSM2_ERRHANDLER_NO_HANDLER);
  int major = PSM2_VERNO_MAJOR, minor = PSM2_VERNO_MINOR;
  const psm2_error_t error = psm2_init(&major, &minor);
  if (error != PSM2_OK) *reason = "psm2_init: " + text_of(error) + "; is there an Omni-Path unit (/dev/hfi1_0)?";
  library_ready = error == PSM2_OK;
  return library_ready;
}

}  // namespace

bool Endpoint::open(std::uint64_t job, std::string* reason) {
  Life was = Life::never;
  if (!endpoint_life.compare_exchange_strong(was, Life::open)) {
    *reason = was == Life::open ? "this process has a psm2 endpoint already; libpsm2 can have one per process"
                                : "this process had a psm2 endpoint before; libpsm2 can open one per process";
    return false;
  }
  psm2_ep_open_opts options = {};
  if (!start_library(reason)) return endpoint_life = Life::never, false;
  psm2_ep_open_opts_get_defaults(&options);
  options.timeout = open_patience_ns;
  options.affinity = PSM2_EP_OPEN_AFFINITY_SKIP;  // the driver must not decide where threads run
  psm2_uuid_t key;
  derive_key(job, key);
  const psm2_error_t error = psm2_ep_open(key, &options, &handle_, &id_);
  if (error != PSM2_OK) {
    handle_ = nullptr;
    *reason = "psm2_ep_open: " + text_of(error) + "; without Omni-Path hardware PSM2_DEVICES=self,shm is needed";
    endpoint_life = Life::never;
    return false;
  }
  psm2_error_register_handler(handle_, PSM2_ERRHANDLER_NO_HANDLER);
  memory_only_ = static_cast<std::uint32_t>(id_) == memory_only_id;
  if (psm2_mq_init(handle_, PSM2_MQ_ORDERMASK_ALL, nullptr, 0, &queue_) == PSM2_OK && read_limits(reason)) return true;
  if (reason->empty()) *reason = "psm2_mq_init failed";
  close();
  return false;
}

bool Endpoint::read_limits(std::string* reason) {
  std::uint32_t limits[2] = {0, 0};
  const int names[2] = {PSM2_MQ_RNDV_SHM_SZ, PSM2_MQ_RNDV_HFI_SZ};
  for (int i = 0; i < 2; ++i) {
    std::uint64_t size = sizeof limits[i];
    if (psm2_getopt(PSM2_COMPONENT_MQ, queue_, names[i], &limits[i], &size) != PSM2_OK) {
      *reason = "libpsm2 does not tell its thresholds";
      return false;
    }
  }
  eager_limit_ = std::min(limits[0], limits[1]);
  if (eager_limit_ < 1024) {
    *reason = "the lower one of PSM2_MQ_RNDV_SHM_THRESH and PSM2_MQ_RNDV_HFI_THRESH is " +
              std::to_string(eager_limit_) + "; expected: at least 1024";
    return false;
  }
  return true;
}

void Endpoint::close() {
  if (handle_ == nullptr) return;
  if (memory_only_) {
    remove_own(id_);
  } else {
    psm2_ep_close(handle_, PSM2_EP_CLOSE_GRACEFUL, close_patience_ns);
  }
  handle_ = nullptr;
  endpoint_life = Life::closed;
}

psm2_error_t Endpoint::connect(psm2_epid_t peer, psm2_epaddr_t* address) const {
  // libpsm2 writes `error` only inside the call: an answer that comes later is recognised as late.
  psm2_error_t error = PSM2_OK;
  *address = nullptr;
  return psm2_ep_connect(handle_, 1, &peer, nullptr, &error, address, connect_patience_ns);
}

psm2_epaddr_t Endpoint::find(psm2_epid_t peer) const {
  psm2_epconn_t found = {};
  return psm2_ep_epid_lookup2(handle_, peer, &found) == PSM2_OK ? found.addr : nullptr;
}

bool Endpoint::shares_memory(psm2_epid_t peer) const {
  int result = 0;
  return psm2_ep_epid_share_memory(handle_, peer, &result) == PSM2_OK && result != 0;
}

std::string why_not_here() {
  // Asks what libpsm2 asks first. Uses stat(), so that a test can answer it.
  struct stat unit = {};
  for (const char* name : {"/dev/hfi1_0", "/dev/hfi1_1", "/dev/hfi1_2", "/dev/hfi1_3"}) {
    if (::stat(name, &unit) == 0) return "";
  }
  return "no Omni-Path unit: there is no /dev/hfi1_0 (the kernel's driver is hfi1)";
}

}  // namespace canele::drivers::psm2
