// SPDX-License-Identifier: BSD-3-Clause
//
// The beginning of a context: what the settings and the launcher say.
#include "comm/state/context.hpp"

#include "comm/matching/alternatives/factory.hpp"

namespace canele::comm {
namespace {

bool pushes(const Settings& settings, bool crowded) {
  const std::string& how = settings.text(Setting::receiver_initiated);
  return how == "on" || (how == "auto" && !crowded);
}

}  // namespace

const char try_later[] = "not now: there is no memory for it, or what comes before it is waited for";

bool is_oversubscribed(Platform& platform, const Bootstrap& bootstrap, unsigned each) {
  return each * static_cast<unsigned>(bootstrap.local_size()) > platform.processors();
}

Context::Context(Platform& on, const Settings& settings, const Bootstrap& bootstrap, rendezvous::State& rendezvous,
                 Casts& multicasts)
    : platform(on),
      rank(bootstrap.rank()),
      size(bootstrap.size()),
      verbosity(static_cast<LogLevel>(settings.number(Setting::verbose))),
      eager_setting(settings.number(Setting::eager_limit, 0)),
      pushes(comm::pushes(settings, is_oversubscribed(on, bootstrap))),
      crowded(is_oversubscribed(on, bootstrap)),
      incarnation(on.random()),
      sleeper(on),
      watch(settings.number(Setting::hang_report) * 1'000'000'000, on.now_ns()),
      heater(settings.number(Setting::cache_warmer) * 1000),
      peers(new Peer*[static_cast<std::size_t>(bootstrap.size())]()),
      matcher(on.random(), matching::make_alternative(settings.text(Setting::matcher), incarnation,
                                                      matching::best_isa(), &heater.regions)),
      large(rendezvous),
      casts(multicasts),
      flip_countdown(settings.fault("flip-byte")),
      looks_closely(flip_countdown != 0) {}

void Context::log(LogLevel level, const std::string& text) {
  if (level <= verbosity) platform.log(level, "rank " + std::to_string(rank) + ": " + text);
}

}  // namespace canele::comm
