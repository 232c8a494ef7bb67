// SPDX-License-Identifier: BSD-3-Clause
//
// The platform of exhaustive_schedules: threads of the Explorer, sleeps without a timeout, descriptors that are
// functions.
#pragma once

// clang-format off: before all else
#include "tests/exhaustive/schedules/stand_ins.hpp"
// clang-format on

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ltask/platform.hpp"

namespace canele::exhaustive {

class ExploredPlatform final : public Platform {
 public:
  std::uint64_t now_ns() noexcept override { return 1; }
  std::uint64_t random() noexcept override { return 4; }
  const char* variable(const char*) noexcept override { return nullptr; }
  void each_variable(std::string_view, const std::function<void(std::string_view)>&) override {}
  std::unique_ptr<PlatformThread> start_thread(const char*, std::function<void()> body) override {
    Explorer::current()->step({"start a thread", nullptr, false, true, false});
    return std::make_unique<Thread>(Explorer::current()->spawn(std::move(body)));
  }
  void relax() noexcept override { Explorer::current()->yield(); }
  void yield() noexcept override { Explorer::current()->yield(); }
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t) noexcept override {
    Explorer& explorer = *Explorer::current();
    explorer.call({"park", &word, true, true, false});
    if (word.now() != expected) return;
    bool woken = false;
    parked_[&word].push_back(&woken);
    const std::function<bool()> awake = [&woken] { return woken; };
    explorer.call({"asleep on the word", &word, true, true, false}, &awake);
  }
  void unpark(const std::atomic<std::uint32_t>& word) noexcept override {
    Explorer& explorer = *Explorer::current();
    explorer.call({"unpark", &word, true, true, false});
    for (bool* const woken : parked_[&word]) *woken = true;
    parked_.erase(&word);
  }
  std::unique_ptr<WakeSet> make_wake_set(std::string*) override { return std::make_unique<Bell>(*this); }
  unsigned processors() noexcept override { return 2; }
  long process() noexcept override { return 1; }
  void log(LogLevel, std::string_view) noexcept override {}

  /// Makes a descriptor that is readable as the function says, which makes no step.
  int make_descriptor(std::function<bool()> readable) {
    descriptors_.push_back(std::move(readable));
    return static_cast<int>(descriptors_.size()) - 1;
  }

 private:
  class Thread final : public PlatformThread {
   public:
    explicit Thread(int number) : number_(number) {}
    ~Thread() override { Explorer::current()->join(number_); }
    long native_id() const override { return number_; }

   private:
    int number_;
  };
  /// A wake set: its bell, and the descriptors that it watches.
  class Bell final : public WakeSet {
   public:
    explicit Bell(ExploredPlatform& platform)
        : platform_(platform), descriptor_(platform.make_descriptor([this] { return readable(); })) {}
    bool watch(int descriptor) noexcept override {
      Explorer::current()->call({"watch", this, true, true, false});
      watched_.push_back(descriptor);
      return true;
    }
    void unwatch(int descriptor) noexcept override {
      Explorer::current()->call({"unwatch", this, true, true, false});
      ::std::erase(watched_, descriptor);
    }
    void wait(std::uint64_t) noexcept override {
      const std::function<bool()> rung = [this] { return readable(); };
      Explorer::current()->call({"sleep on the bell", this, true, true, false}, &rung);
    }
    void ring() noexcept override {
      Explorer::current()->call({"ring", this, true, true, false});
      rung_ = true;
    }
    void quiet() noexcept override {
      Explorer::current()->call({"quiet", this, true, true, false});
      rung_ = false;
    }

    int descriptor() const noexcept override { return descriptor_; }

   private:
    bool readable() const {
      return rung_ || ::std::any_of(watched_.begin(), watched_.end(), [this](int one) {
               return platform_.descriptors_[static_cast<std::size_t>(one)]();
             });
    }

    ExploredPlatform& platform_;
    const int descriptor_;
    std::vector<int> watched_;
    bool rung_ = false;
  };

  std::map<const void*, std::vector<bool*>> parked_;  ///< the sleepers of each word
  std::vector<std::function<bool()>> descriptors_;
};

}  // namespace canele::exhaustive
