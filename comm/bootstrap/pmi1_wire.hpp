// SPDX-License-Identifier: BSD-3-Clause
//
// PMI-1 on the wire: lines of "name=value" words, and blobs as values of them.
//
// Used by pmi1_client.cpp and tests. Any thread; there is no shared state. A value has at most 1023 characters and a
// key 63. So a blob is cut into parts, each under a key of its own. The first part gives their number:
//
//   canele.3.address.0 = "2:1100:AAEC..."   parts, bytes, then base64url without padding
//   canele.3.address.1 = "x8Jq..."
//
// Rejected: hexadecimal. It is simpler, but every address would take two questions to the launcher instead of one.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"

namespace canele::comm {

/// One parsed line.
class Pmi1Message {
 public:
  /// Parses a line. nullopt: not a PMI-1 line ("cmd=..." comes first, every word has a '=').
  static std::optional<Pmi1Message> parse(std::string_view line);

  /// Returns the value of a word; "" if the word is missing.
  std::string_view word(std::string_view name) const;
  std::string_view command() const { return word("cmd"); }
  /// Returns the number in a word; nullopt if it is missing or is no number.
  std::optional<long> number(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> words_;
};

/// Cuts a stream of bytes into lines.
class Pmi1Lines {
 public:
  /// The longest valid line: a value, a key, the name of the key space, and some words.
  static constexpr std::size_t longest_line = 8192;

  void add(std::string_view bytes) { rest_ += bytes; }
  /// Returns false if there is no complete line. Call too_long() then.
  bool next(std::string* line);
  bool too_long() const { return rest_.size() > longest_line; }
  bool empty() const { return rest_.empty(); }

 private:
  std::string rest_;
};

/// The launcher's limits in bytes, both with the final zero of C strings.
struct Pmi1Limits {
  std::size_t key = 64;
  std::size_t value = 1024;
};

/// Returns the key of one part of a blob.
std::string pmi1_key(int rank, std::string_view key, std::size_t part);

/// Writes the values of all parts. Returns false and sets *why if the key has characters that PMI-1 cannot carry, or is
/// too long.
bool pmi1_parts(int rank, std::string_view key, const Blob& blob, const Pmi1Limits& limits,
                std::vector<std::string>* values, std::string* why);

/// Reassembles the parts of a blob.
class Pmi1Blob {
 public:
  /// Adds the next part's value. Returns false if the value is malformed.
  bool add(std::string_view value);
  bool complete() const { return have_ > 0 && have_ == parts_; }
  std::size_t next_part() const { return have_; }
  Blob take() { return std::move(blob_); }

 private:
  std::size_t parts_ = 0, have_ = 0, size_ = 0;
  Blob blob_;
};

}  // namespace canele::comm
