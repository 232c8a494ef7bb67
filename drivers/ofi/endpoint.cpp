// SPDX-License-Identifier: BSD-3-Clause
//
// Opening and registering. See endpoint.hpp.
//
// Where the provider lets the driver choose the key of registered memory, the key is random. Any process that reaches
// the endpoint may try to read, and with consecutive keys it would succeed.
#include "drivers/ofi/endpoint.hpp"

#include <algorithm>
#include <cstdlib>

#include "drivers/ofi/wire.hpp"

namespace canele::drivers::ofi {

std::string error_text(std::int64_t error) { return ::fi_strerror(static_cast<int>(std::llabs(error))); }

bool Endpoint::open(Info info, std::size_t longest, std::string* reason) {
  info_ = std::move(info);
  const std::string where = provider_name(*info_);
  const auto problem = [&](const char* what, int error) {
    *reason = "libfabric's provider " + where + ": " + what + ": " + error_text(error);
    return false;
  };
  fid_fabric* fabric = nullptr;
  int error = ::fi_fabric(info_->fabric_attr, &fabric, nullptr);
  if (error != 0) return problem("cannot open the fabric", error);
  fabric_.reset(fabric);

  fid_domain* domain = nullptr;
  error = ::fi_domain(fabric, info_.get(), &domain, nullptr);
  if (error != 0) return problem("cannot open the domain", error);
  domain_.reset(domain);

  fi_av_attr attributes = {};
  attributes.type = FI_AV_TABLE;
  attributes.count = std::min<std::size_t>(static_cast<std::size_t>(context_.size), 256);  // a hint; shm takes no more
  fid_av* av = nullptr;
  error = ::fi_av_open(domain, &attributes, &av, nullptr);
  if (error != 0) return problem("cannot open an address vector", error);
  av_.reset(av);
  if (!open_queue(reason)) return false;

  fid_ep* ep = nullptr;
  error = ::fi_endpoint(domain, info_.get(), &ep, nullptr);
  if (error != 0) return problem("cannot open an endpoint", error);
  ep_.reset(ep);
  return enable(longest, reason);
}

/// Opens a completion queue with a descriptor to sleep on, or else without one.
bool Endpoint::open_queue(std::string* reason) {
  fi_cq_attr attributes = {};
  attributes.format = FI_CQ_FORMAT_DATA;  // a multi-receive buffer's completion must say where the message lies
  fid_cq* cq = nullptr;
  int error = -FI_ENOSYS;
  if (has_honest_descriptor(*info_)) {
    attributes.wait_obj = FI_WAIT_FD;
    error = ::fi_cq_open(domain_.get(), &attributes, &cq, nullptr);
    if (error == 0 && ::fi_control(&cq->fid, FI_GETWAIT, &descriptor_) != 0) {
      ::fi_close(&cq->fid);
      error = -FI_ENOSYS;
      descriptor_ = -1;
    }
  }
  if (error != 0) {
    attributes.wait_obj = FI_WAIT_NONE;
    error = ::fi_cq_open(domain_.get(), &attributes, &cq, nullptr);
  }
  if (error != 0) {
    *reason =
        "libfabric's provider " + provider_name(*info_) + ": cannot open a completion queue: " + error_text(error);
    return false;
  }
  cq_.reset(cq);
  return true;
}

bool Endpoint::enable(std::size_t longest, std::string* reason) {
  int error = ::fi_ep_bind(ep_.get(), &av_->fid, 0);
  if (error == 0) error = ::fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV);
  if (error == 0) error = ::fi_enable(ep_.get());
  if (error == 0 && offers(FI_MULTI_RECV)) {
    // After fi_enable(): shm 1.17 has no queue to set it on before. A buffer with less room than this is given back, so
    // that no message is ever truncated.
    error = ::fi_setopt(&ep_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &longest, sizeof longest);
  }
  std::size_t size = max_name;
  name_.resize(size);
  if (error == 0) error = ::fi_getname(&ep_->fid, name_.data(), &size);
  if (error != 0) {
    *reason = "libfabric's provider " + provider_name(*info_) + ": cannot enable an endpoint: " + error_text(error);
    return false;
  }
  name_.resize(size);
  return true;
}

bool Endpoint::may_sleep() {
  fid* const queue = &cq_->fid;
  fid* waits[1] = {queue};
  return ::fi_trywait(fabric_.get(), waits, 1) == 0;
}

fi_addr_t Endpoint::add(std::span<const std::byte> name) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  // Some providers read a socket address in place: it must be aligned, and may be longer than the name that they gave.
  alignas(16) std::byte copy[max_name + 1] = {};
  std::copy(name.begin(), name.end(), copy);
  if (::fi_av_insert(av_.get(), copy, 1, &peer, 0, nullptr) != 1) return FI_ADDR_UNSPEC;
  added_.insert(peer);
  return peer;
}

void Endpoint::remove_all() {
  for (fi_addr_t peer : added_) ::fi_av_remove(av_.get(), &peer, 1, 0);
  added_.clear();
}

std::uint64_t Endpoint::random_key() {
  const std::size_t size = info_->domain_attr->mr_key_size;
  const std::uint64_t key = context_.random();
  return size >= sizeof key || size == 0 ? key : key & ((std::uint64_t{1} << (8 * size)) - 1);
}

Region Endpoint::register_memory(const void* memory, std::size_t size, std::uint64_t access, int* error) {
  fid_mr* region = nullptr;
  *error = -FI_ENOKEY;
  for (int tries = 0; tries < 16 && *error == -FI_ENOKEY; ++tries) {
    const std::uint64_t key = wants(FI_MR_PROV_KEY) ? 0 : random_key();
    *error = ::fi_mr_reg(domain_.get(), memory, size, access, 0, key, 0, &region, nullptr);
  }
  if (*error != 0) return {};
  Region made(region);
  if (wants(FI_MR_ENDPOINT)) {
    *error = ::fi_mr_bind(region, &ep_->fid, 0);
    if (*error == 0) *error = ::fi_mr_enable(region);
    if (*error != 0) return {};
  }
  return made;
}

Region Endpoint::register_local(const void* memory, std::size_t size, std::uint64_t access, int* error) {
  *error = 0;
  return wants(FI_MR_LOCAL) ? register_memory(memory, size, access, error) : Region();
}

}  // namespace canele::drivers::ofi
