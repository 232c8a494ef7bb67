// SPDX-License-Identifier: BSD-3-Clause
//
// What the collectives of the C ABI share: checking what each has, and beginning it.
//
// Who: collective_api.cpp (groups, operators, reductions), collective_parts_api.cpp (those with parts in memory).
// Threads: as collectives.h says: one thread at a time for one group.
// Surprise: a checker keeps the first thing that is wrong, and the caller asks once, at the end.
#pragma once

#include <canele/collectives.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/collectives/group.hpp"
#include "comm/collectives/run.hpp"

namespace canele::comm::api {

inline collectives::Group& group_of(canele_group_t* g) { return *reinterpret_cast<collectives::Group*>(g); }
inline const collectives::Group& group_of(const canele_group_t* g) {
  return *reinterpret_cast<const collectives::Group*>(g);
}

/// One call of the C ABI, from its arguments to its run.
class Collective {
 public:
  Collective(const char* name, collectives::Operation operation, canele_group_t* group,
             const canele_collective_options_t* options, canele_request_t* request);

  bool well() const { return code_ == CANELE_OK; }
  /// Says what is wrong, unless something was before.
  void wrong(int code, const std::string& words);
  void require(bool right, const char* words) {
    if (!right) [[unlikely]]
      wrong(CANELE_EINVAL, words);
  }
  void root(int position);
  void operation(const canele_operator_t* given);
  /// count elements of the operator, in bytes.
  std::uint64_t bytes(std::size_t count);
  /// Memory for so many bytes is there.
  void memory(const void* address, std::uint64_t length, const char* name) {
    if (address == nullptr && length != 0) [[unlikely]]
      wrong(CANELE_EINVAL, std::string(name) + " is NULL, but " + std::to_string(length) + " bytes of it are used");
  }
  /// The input is `input`, or in place.
  void input(const void* input, std::uint64_t length);
  /// Of parts as the user gives them. `sums` keeps what the result points to.
  collectives::Parts parts(const canele_parts_t& given, std::vector<std::uint64_t>& sums);
  /// Bytes from the beginning to the end of the last part.
  std::uint64_t extent(const collectives::Parts& parts) const;

  bool at_root() const { return call.rank == call.root; }
  /// Begins it, if all is well.
  int begin();

  collectives::Call call;
  collectives::Work work;

 private:
  int choice(collectives::Choice* asked) const;
  int carry_out(const collectives::Schedule& schedule);
  int no_option(const std::string& words) const;
  int no_memory(const char* whose) const;

  const char* const name_;
  collectives::Group* const group_;
  const canele_collective_options_t* const options_;
  Request* const request_;
  int code_ = CANELE_OK;
};

}  // namespace canele::comm::api
