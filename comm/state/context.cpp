// SPDX-License-Identifier: BSD-3-Clause
//
// The beginning of a context: what the settings and the launcher say.
#include "comm/state/context.hpp"

#include "comm/matching/alternatives/factory.hpp"

namespace canele::comm {
namespace {

bool is_receiver_initiated(const Settings& settings, bool oversubscribed) {
  const std::string& how = settings.text(Setting::receiver_initiated);
  return how == "on" || (how == "auto" && !oversubscribed);
}

}  // namespace

bool is_oversubscribed(Platform& platform, const Bootstrap& bootstrap, unsigned each) {
  return each * static_cast<unsigned>(bootstrap.local_size()) > platform.processors();
}

Context::Context(Platform& on, const Settings& settings, const Bootstrap& bootstrap, rendezvous::State& of_large,
                 MulticastState& of_multicasts)
    : platform(on),
      rank(bootstrap.rank()),
      size(bootstrap.size()),
      verbosity(static_cast<LogLevel>(settings.number(Setting::verbose))),
      eager_setting(settings.number(Setting::eager_limit, 0)),
      receiver_initiated(is_receiver_initiated(settings, is_oversubscribed(on, bootstrap))),
      oversubscribed(is_oversubscribed(on, bootstrap)),
      incarnation(on.random()),
      sleeper(on),
      watch(settings.number(Setting::hang_report) * 1'000'000'000, on.now_ns()),
      request_pool(on),
      cache_warmer(settings.number(Setting::cache_warmer) * 1000),
      peers(new Peer*[static_cast<std::size_t>(bootstrap.size())]()),
      matcher(on.random(), matching::make_alternative(settings.text(Setting::matcher), incarnation,
                                                      matching::best_isa(), &cache_warmer.regions)),
      large(of_large),
      multicasts(of_multicasts),
      flip_countdown(settings.fault("flip-byte")),
      inspect_deliveries(flip_countdown != 0) {}

void Context::log(LogLevel level, const std::string& text) {
  if (level <= verbosity) platform.log(level, "rank " + std::to_string(rank) + ": " + text);
}

}  // namespace canele::comm
