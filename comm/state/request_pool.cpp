// SPDX-License-Identifier: BSD-3-Clause
//
// The pool of the library's own requests.
#include "comm/state/request_pool.hpp"

#include <new>

#include "comm/state/spin_guard.hpp"

namespace canele::comm {

PooledRequest* RequestPool::take() {
  const SpinGuard guard(taken_, platform_);
  if (free_ == nullptr && !grow()) return nullptr;
  PooledRequest* const request = free_;
  free_ = request->next_free;
  return request;
}

void RequestPool::give_back(PooledRequest& request) {
  const SpinGuard guard(taken_, platform_);
  request.next_free = free_;
  free_ = &request;
}

/// Adds a block of null requests, which are zero bytes.
bool RequestPool::grow() {
  constexpr std::size_t per_block = 16;
  static_assert(alignof(PooledRequest) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  std::unique_ptr<std::byte[]> block(new (std::nothrow) std::byte[per_block * sizeof(PooledRequest)]{});
  if (block == nullptr) return false;
  auto* const requests = reinterpret_cast<PooledRequest*>(block.get());
  try {
    blocks_.push_back(std::move(block));
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (std::size_t i = 0; i < per_block; ++i) {
    requests[i].next_free = free_;
    free_ = &requests[i];
  }
  return true;
}

}  // namespace canele::comm
