// SPDX-License-Identifier: BSD-3-Clause
//
// A call with a time limit.
#include "comm/bootstrap/bounded.hpp"

#include <memory>
#include <utility>

namespace canele::comm {

Bounded run_bounded(Platform& platform, const char* name, std::uint64_t timeout_ns, std::function<void()> body) {
  struct State {
    explicit State(Platform& p) : changed(p) {}
    Signal changed;
    std::atomic<bool> done{false};
  };
  const std::uint64_t until = deadline_after(platform, timeout_ns);
  const auto state = std::make_shared<State>(platform);
  std::unique_ptr<PlatformThread> thread = platform.start_thread(name, [state, call = std::move(body)] {
    call();
    state->done = true;
    state->changed.change();
  });
  if (thread == nullptr) return Bounded::no_thread;
  if (state->changed.wait(until, [&] { return state->done.load(); })) return Bounded::ended;
  // Destroying the thread object would wait for the call after all. The object is leaked on purpose.
  static_cast<void>(thread.release());
  return Bounded::late;
}

Bounded run_bounded_or_here(Platform& platform, const char* name, std::uint64_t timeout_ns,
                            const std::function<void()>& body) {
  const Bounded how = run_bounded(platform, name, timeout_ns, body);
  if (how != Bounded::no_thread) return how;
  body();
  return Bounded::ended;
}

}  // namespace canele::comm
