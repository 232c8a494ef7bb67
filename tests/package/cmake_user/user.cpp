// SPDX-License-Identifier: BSD-3-Clause
//
// A user's program in C++, outside the tree: both headers, and one message of a rank to itself.
#include <canele/canele.h>

#include <canele/canele.hpp>
#include <iostream>
#include <vector>

int main() {
  canele_engine_t* engine = nullptr;
  canele_session_t* session = nullptr;
  if (canele_init(nullptr, &engine) != CANELE_OK) {
    std::cerr << canele_error_detail() << '\n';
    return 1;
  }
  if (canele_session_open(engine, "user", CANELE_ORDER_PER_TAG, &session) != CANELE_OK) return 1;
  const std::vector<double> out(100'000, 2.5);
  std::vector<double> in(out.size());
  const std::size_t bytes = out.size() * sizeof(double);
  canele_request_t send{}, receive{};
  canele_isend(session, canele_rank(engine), 3, out.data(), bytes, &send);
  canele_irecv(session, CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, in.data(), bytes, &receive);
  if (canele_wait(&receive, nullptr) != CANELE_OK || canele_wait(&send, nullptr) != CANELE_OK) return 1;
  if (canele_session_close(session) != CANELE_OK || canele_finalize(engine) != CANELE_OK) return 1;
  std::cout << (in == out ? "right" : "wrong") << '\n';
  return in == out ? 0 : 1;
}
