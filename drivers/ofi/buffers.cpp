// SPDX-License-Identifier: BSD-3-Clause
//
// Pools of buffers. See buffers.hpp.
//
// Memory is allocated without being touched (no zeroing): a slab that is never filled costs only address space.
#include "drivers/ofi/buffers.hpp"

#include <algorithm>
#include <utility>

namespace canele::drivers::ofi {
namespace {

constexpr std::size_t multi_length = 256 * 1024, multi_count = 4, single_count = 64;

}  // namespace

SendBuffer* SendPool::take() {
  if (free_ == nullptr && !grow()) return nullptr;
  ++in_use_;
  SendBuffer* const taken = std::exchange(free_, free_->next);
  taken->next = nullptr;
  taken->handshake = false;
  return taken;
}

void SendPool::give_back(SendBuffer* buffer) {
  assert(in_use_ > 0);
  --in_use_;
  buffer->next = std::exchange(free_, buffer);
}

bool SendPool::grow() {
  if (slabs_.size() == most_slabs) return false;
  auto slab = std::make_unique<Slab>();
  slab->memory.reset(new std::byte[per_slab * longest_message]);
  int error = 0;
  slab->region = endpoint_.register_local(slab->memory.get(), per_slab * longest_message, FI_SEND, &error);
  if (error != 0) return false;
  for (std::size_t i = 0; i < per_slab; ++i) {
    SendBuffer& buffer = slab->buffers[i];
    buffer.data = slab->memory.get() + i * longest_message;
    buffer.descriptor = slab->region ? ::fi_mr_desc(slab->region.get()) : nullptr;
    buffer.next = std::exchange(free_, &buffer);
  }
  slabs_.push_back(std::move(slab));
  return true;
}

bool ReceiveBuffers::open(bool multi, std::string* reason) {
  multi_ = multi && endpoint_.offers(FI_MULTI_RECV);
  length_ = multi_ ? multi_length : longest_message;
  const std::size_t count = multi_ ? multi_count : std::min(single_count, endpoint_.info().rx_attr->size);
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 2); ++i) {
    if (!add(reason)) return false;
  }
  const int error = post();
  if (error != 0) *reason = "cannot post receive buffers: " + error_text(error);
  return error == 0;
}

bool ReceiveBuffers::add(std::string* reason) {
  auto made = std::make_unique<ReceiveBuffer>();
  made->memory.reset(new std::byte[length_]);
  int error = 0;
  made->region = endpoint_.register_local(made->memory.get(), length_, FI_RECV, &error);
  if (error != 0) {
    *reason = "cannot register receive buffers: " + error_text(error) + " (ulimit -l?)";
    return false;
  }
  ++unposted_;
  buffers_.push_back(std::move(made));
  return true;
}

void ReceiveBuffers::released(ReceiveBuffer& buffer) {
  if (buffer.spoilt || !std::exchange(buffer.posted, false)) return;
  ++unposted_;
}

bool ReceiveBuffers::spoilt(ReceiveBuffer& buffer) {
  if (!multi_) {
    released(buffer);  // it held one message, so the provider no longer uses it
    return true;
  }
  if (std::exchange(buffer.spoilt, true)) return true;
  std::string reason;
  return ++spoilt_ <= most_spoilt && add(&reason);
}

int ReceiveBuffers::post() {
  if (unposted_ == 0) return 0;
  for (auto& buffer : buffers_) {
    if (buffer->posted || buffer->spoilt) continue;
    const iovec memory = {buffer->memory.get(), length_};
    void* descriptor = buffer->region ? ::fi_mr_desc(buffer->region.get()) : nullptr;
    fi_msg message = {};
    message.msg_iov = &memory;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = static_cast<Op*>(buffer.get());
    const auto error = ::fi_recvmsg(endpoint_.ep(), &message, multi_ ? FI_MULTI_RECV | FI_COMPLETION : FI_COMPLETION);
    if (error == -FI_EAGAIN) return 0;
    if (error != 0) return static_cast<int>(error);
    buffer->posted = true;
    --unposted_;
  }
  return 0;
}

}  // namespace canele::drivers::ofi
