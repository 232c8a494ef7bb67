// SPDX-License-Identifier: BSD-3-Clause
//
// Round trips, and starts at an agreed date.
#include "global_clock.hpp"

namespace canele::perf::progress {
namespace {
constexpr int trip_tag = 21, answer_tag = 22, date_tag = 23, late_tag = 24, verdict_tag = 25;
}  // namespace

Offset GlobalClock::ask(int trips) {
  std::vector<Trip> all(static_cast<std::size_t>(trips));
  for (Trip& trip : all) {
    trip.sent = local_.now();
    send(link_, 0, trip_tag, nullptr, 0);
    receive(link_, 0, answer_tag, &trip.answered, sizeof trip.answered);
    trip.received = local_.now();
  }
  return offset_of(all);
}

void GlobalClock::answer(int rank, int trips) {
  for (int trip = 0; trip < trips; ++trip) {
    receive(link_, rank, trip_tag, nullptr, 0);
    const Date date = local_.now();
    send(link_, rank, answer_tag, &date, sizeof date);
  }
}

Offset GlobalClock::synchronise(int trips) {
  if (link_.rank() != 0) return ask(trips);
  const Date begin = local_.now();
  for (int rank = 1; rank < link_.size(); ++rank) answer(rank, trips);
  return {begin, 0, 0};
}

Date GlobalClock::start(const ClockLine& line) {
  Date date = link_.rank() == 0 ? appointments_.next(local_.now()) : 0;
  tell_all(link_, date_tag, &date, sizeof date);
  const Date begin = line.local(date);
  Date now = local_.now();
  late_ = now > begin;
  while (now < begin) now = local_.now();
  return now;
}

bool GlobalClock::in_time() {
  char late = late_ ? 1 : 0;
  if (link_.rank() == 0) {
    for (int rank = 1; rank < link_.size(); ++rank) {
      char other = 0;
      receive(link_, rank, late_tag, &other, sizeof other);
      if (other != 0) late = 1;
    }
  } else {
    send(link_, 0, late_tag, &late, sizeof late);
  }
  tell_all(link_, verdict_tag, &late, sizeof late);
  return appointments_.kept(late != 0);
}

}  // namespace canele::perf::progress
