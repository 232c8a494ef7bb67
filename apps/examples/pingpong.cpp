// SPDX-License-Identifier: BSD-3-Clause
//
// pingpong.cpp - a first program in C++: two ranks throw a vector back and forth, and measure how long a throw takes.
//
// For newcomers: read it from main() down. It has one thread. For figures worth quoting use canele-perf, which pins its
// processes and compares with the hardware baseline of the machine.
//
//   c++ -std=c++20 pingpong.cpp $(pkg-config --cflags --libs canele) -o pingpong && canele-run -n 2 ./pingpong
#include <canele/canele.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::uint64_t ball_tag = 1;
constexpr int warm_up = 1000;
constexpr int throws = 10000;

/// Throws the ball there and back. The receive is posted first, so that the reply arrives in place without a copy.
void throw_and_catch(canele::session& session, int peer, std::vector<double>& ball) {
  std::vector<double> returned(ball.size());
  auto received = session.irecv(peer, ball_tag, returned);
  session.send(peer, ball_tag, ball);
  received.wait();  // throws canele::error if the peer died
  ball.swap(returned);
}

void catch_and_return(canele::session& session, int peer, std::vector<double>& ball) {
  session.recv(peer, ball_tag, ball);
  for (double& value : ball) value += 1;
  session.send(peer, ball_tag, ball);
}

/// Plays and measures on rank 0. Returns false if the ball does not have the expected values.
bool play_first(canele::engine& engine, canele::session& session, std::vector<double>& ball) {
  for (int i = 0; i < warm_up; ++i) throw_and_catch(session, 1, ball);
  const std::uint64_t start = engine.now();
  for (int i = 0; i < throws; ++i) throw_and_catch(session, 1, ball);
  const double microseconds = static_cast<double>(engine.now() - start) / 1000.0;
  std::printf("pingpong: %zu bytes, %.2f us one way\n", ball.size() * sizeof(double), microseconds / throws / 2);
  for (const double value : ball) {
    if (value != warm_up + throws) return false;
  }
  return true;
}

/// Shows that a message longer than its receive fills the buffer, overwrites nothing else, and is reported.
void show_a_mistake(canele::session& session, int rank) {
  const std::vector<int> long_message = {1, 2, 3, 4};
  int room = 0;
  auto receive = session.irecv(rank, 2, canele::one(room));
  auto send = session.isend(rank, 2, long_message);
  const canele::status outcome = receive.wait(std::nothrow);  // returns the outcome as a value instead of throwing
  send.wait();
  std::printf("pingpong: %zu bytes into room for %zu: %s\n", outcome.length, sizeof room,
              canele_error_string(outcome.code));
}

int play(canele::engine& engine) {
  if (engine.size() != 2) {
    std::fprintf(stderr, "pingpong: two ranks are needed, not %d: canele-run -n 2 canele-pingpong\n", engine.size());
    return 2;
  }
  canele::session session(engine, "pingpong");
  std::vector<double> ball(16);
  if (engine.rank() == 1) {
    for (int i = 0; i < warm_up + throws; ++i) catch_and_return(session, 0, ball);
    return 0;
  }
  const bool right = play_first(engine, session, ball);
  if (!right) std::fprintf(stderr, "pingpong: the ball came back wrong\n");
  show_a_mistake(session, engine.rank());
  return right ? 0 : 1;
}

/// Ends the job if this rank cannot go on, because the other rank would wait for it.
int play_or_abort(canele::engine& engine) {
  try {
    return play(engine);
  } catch (const canele::error& problem) {
    engine.abort(1, problem.what());
  }
}

}  // namespace

int main() {
  try {
    canele::engine engine;
    const int code = play_or_abort(engine);
    engine.finalize();  // the destructor would finalize, too, but could not report a failure
    return code;
  } catch (const canele::error& problem) {
    std::fprintf(stderr, "pingpong: %s\n", problem.what());
    return 1;
  }
}
