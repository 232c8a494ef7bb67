// SPDX-License-Identifier: BSD-3-Clause
//
// Requests: the free ones that threads keep, stale handles, and communicators that are freed under a request.
//
// The last test starts MPI, in a process of its own.
#include "starpu_glue/mpi/messages/request.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

/// Runs the function in a thread that keeps nothing yet.
template <class Function>
void in_thread(Function function) {
  std::thread(function).join();
}

TEST(Requests, TheOneGivenLastIsTakenFirst) {
  in_thread([] {
    Request* first = free_requests.take();
    Request* second = free_requests.take();
    ASSERT_NE(first, second);
    free_requests.give(*first);
    free_requests.give(*second);
    EXPECT_EQ(free_requests.take_cached(), second);
    EXPECT_EQ(free_requests.take_cached(), first);
    free_requests.give(*first);
    free_requests.give(*second);
  });
}

TEST(Requests, AThreadKeepsNoneUntilItNeedsThem) {
  in_thread([] { EXPECT_EQ(free_requests.take_cached(), nullptr); });
}

TEST(Requests, AThreadLeavesNoneBehind) {
  const auto take_some = [] {
    std::vector<Request*> taken;
    for (int i = 0; i < FreeRequests::kBatch + 1; ++i) taken.push_back(free_requests.take());
    for (Request* request : taken) free_requests.give(*request);
  };
  in_thread(take_some);
  const auto used = requests_pool.used();
  for (int i = 0; i < 50; ++i) in_thread(take_some);
  EXPECT_EQ(requests_pool.used(), used);
}

TEST(Requests, AThreadKeepsNoMoreThanItMay) {
  constexpr int many = 4 * FreeRequests::kMost;
  in_thread([] {
    std::vector<Request*> taken;
    for (int i = 0; i < many; ++i) taken.push_back(free_requests.take());
    for (Request* request : taken) free_requests.give(*request);
    int kept = 0;
    std::vector<Request*> again;
    while (Request* request = free_requests.take_cached()) again.push_back(request), ++kept;
    EXPECT_LE(kept, FreeRequests::kMost);
    EXPECT_GE(kept, FreeRequests::kMost / 2);
    for (Request* request : again) free_requests.give(*request);
  });
}

TEST(Requests, AThreadThatHasLeftGoesOnWithoutKeeping) {
  in_thread([] {
    free_requests.give(*free_requests.take());
    free_requests.on_thread_exit();
    Request* request = free_requests.take();  // as the destructor of a variable of the thread may
    ASSERT_NE(request, nullptr);
    free_requests.give(*request);
    EXPECT_EQ(free_requests.take_cached(), nullptr);
  });
}

TEST(Requests, OneThreadStartsThemAndAnotherFreesThem) {
  constexpr int rounds = 20000;
  constexpr std::size_t room = 8;
  static std::atomic<MPI_Request> places[room];
  for (std::atomic<MPI_Request>& place : places) place.store(MPI_REQUEST_NULL);
  const auto used = requests_pool.used();
  std::thread other([] {
    for (int i = 0; i < rounds; ++i) {
      std::atomic<MPI_Request>& place = places[static_cast<std::size_t>(i) % room];
      MPI_Request handle;
      while ((handle = place.exchange(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL) std::this_thread::yield();
      Request* request = nullptr;
      ASSERT_EQ(get_request(handle, &request), MPI_SUCCESS);
      free_request(*request);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    Request* request = free_requests.take();
    request->flags = 0;
    std::atomic<MPI_Request>& place = places[static_cast<std::size_t>(i) % room];
    while (place.load() != MPI_REQUEST_NULL) std::this_thread::yield();
    place.store(RequestPool::open(*request));
  }
  other.join();
  EXPECT_LE(requests_pool.used(), used + 2 * (FreeRequests::kMost + FreeRequests::kBatch) + room);
}

TEST(Requests, AFreedHandleIsRejectedInWords) {
  Request* request = free_requests.take();
  request->flags = 0;
  const MPI_Request handle = RequestPool::open(*request);
  Request* found = nullptr;
  EXPECT_EQ(get_request(handle, &found), MPI_SUCCESS);
  EXPECT_EQ(found, request);
  free_request(*request);
  for (const MPI_Request wrong : {handle, reinterpret_cast<MPI_Request>(MPI_INT), to_handle<MPI_Request>(-1),
                                  to_handle<MPI_Request>(0x5fffffff)}) {
    EXPECT_EQ(get_request(wrong, &found), MPI_ERR_REQUEST);
    EXPECT_EQ(found, nullptr);
    char text[MPI_MAX_ERROR_STRING];
    describe_error(MPI_ERR_REQUEST, text, sizeof text);
    EXPECT_NE(std::string(text).find("is not a request, or was completed before"), std::string::npos) << text;
  }
  EXPECT_EQ(get_request(MPI_REQUEST_NULL, &found), MPI_SUCCESS);
}

/// Returns whether the session of that label is open.
bool is_open(const char* label) {
  canele_session_t* session = nullptr;
  const int error = canele_session_open(engine(), label, CANELE_ORDER_PER_TAG, &session);
  if (error == CANELE_OK) canele_session_close(session);
  return error == CANELE_EBUSY;
}

/// Returns 0, or the number of the step that failed.
int free_communicator_under_request() {
  MPI_Comm comm, another;
  MPI_Request request;
  int in = 0, out = 7;
  MPI_Init(nullptr, nullptr);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (!is_open("mpi.0.1.p")) return 1;
  MPI_Irecv(&in, 1, MPI_INT, 0, 5, comm, &request);
  MPI_Send(&out, 1, MPI_INT, 0, 5, comm);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &another);
  if (!is_open("mpi.0.1.p")) return 2;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (in != 7) return 3;
  MPI_Comm_free(&another);  // closes both
  if (is_open("mpi.0.1.p")) return 4;
  if (is_open("mpi.0.2.p")) return 5;
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 6;
}

TEST(Requests, ACommunicatorIsClosedWhenNoRequestIsOnIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(free_communicator_under_request()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace canele::mpi
