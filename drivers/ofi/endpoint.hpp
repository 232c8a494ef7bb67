// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoint: libfabric's objects of one instance, and memory registered as the provider requires. The objects are
// fabric, domain, address vector, completion queue and endpoint, opened and closed in the right order.
//
// Used by the ofi driver, by one thread at a time; the domain is opened as FI_THREAD_DOMAIN. Members are declared in
// the order in which they are opened. C++ then closes them in reverse, which is the order that libfabric demands.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/ofi/provider.hpp"

namespace canele::drivers::ofi {

struct FidDeleter {
  template <typename T>
  void operator()(T* object) const {
    ::fi_close(&object->fid);
  }
};
template <typename T>
using Fid = std::unique_ptr<T, FidDeleter>;
using Region = Fid<fid_mr>;  ///< registered memory; may be empty where nothing needs to be registered

/// Base of every operation in flight. The provider owns `reserved` until the operation is complete.
struct Op {
  enum class Kind : std::uint8_t { receive, send, copy };
  explicit Op(Kind is) : kind(is) {}
  fi_context2 reserved = {};
  Kind kind;
};
inline Op* op_of(void* context) { return static_cast<Op*>(context); }

/// Returns the text of an error, for example "Connection refused". libfabric's error codes are negative in return
/// values, positive in completions.
std::string error_text(std::int64_t error);

class Endpoint {
 public:
  explicit Endpoint(DriverContext& context) : context_(context) {}

  /// Opens everything. `longest`: of a message, in bytes. False and *reason on failure.
  bool open(Info info, std::size_t longest, std::string* reason);

  /// Ends all operations: the provider does not touch posted memory any more.
  void close() { ep_.reset(); }

  const fi_info& info() const { return *info_; }
  fid_ep* ep() const { return ep_.get(); }
  fid_cq* cq() const { return cq_.get(); }
  std::span<const std::byte> name() const { return name_; }
  /// -1: the provider has none that can be trusted.
  int descriptor() const { return descriptor_; }
  /// Returns true if nothing is waiting in the completion queue. An arrival then makes the descriptor readable.
  bool may_sleep();
  bool offers(std::uint64_t caps) const { return (info_->caps & caps) == caps; }
  bool wants(int mr_mode) const { return (info_->domain_attr->mr_mode & mr_mode) != 0; }

  /// Adds a peer's name. Returns its number, or FI_ADDR_UNSPEC.
  fi_addr_t add(std::span<const std::byte> name);
  /// Removes all peers.
  void remove_all();

  /// Registers memory for `access` (FI_SEND, FI_REMOTE_READ, …). Empty: rejected, *error says why.
  Region register_memory(const void* memory, std::size_t size, std::uint64_t access, int* error);
  /// Registers memory that only this endpoint touches. Empty without an error where the provider needs no registration.
  Region register_local(const void* memory, std::size_t size, std::uint64_t access, int* error);

 private:
  bool open_queue(std::string* reason);
  bool enable(std::size_t longest, std::string* reason);
  std::uint64_t random_key();

  DriverContext& context_;
  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> av_;
  Fid<fid_cq> cq_;
  Fid<fid_ep> ep_;
  std::set<fi_addr_t> added_;
  std::vector<std::byte> name_;
  int descriptor_ = -1;
};

}  // namespace canele::drivers::ofi
