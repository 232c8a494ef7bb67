// SPDX-License-Identifier: BSD-3-Clause
//
// JsonWriter: writes JSON text: objects, arrays, strings, numbers, booleans. It parses nothing, and keeps only the
// text.
//
// Used by the reports (counters, info) and the event log. One thread for each writer.
//
// Bytes that are not UTF-8 become U+FFFD, so the text is valid whatever the name of a file or host is.
//
// Rejected: nlohmann-json, which apps use. The library itself should need nothing beyond libc, hwloc and PMIx.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace canele::comm {

class JsonWriter {
 public:
  /// Open and close objects and arrays; the calls must nest. Inside an object every value needs a preceding key().
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(std::integral auto number) { return raw(std::to_string(number)); }
  /// Writes a finite number. Any other number becomes null, as JSON has no notation for it.
  JsonWriter& value(double number);

  /// Writes key(name).value(v).
  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& v) {
    return key(name).value(v);
  }

  /// Writes a number that the caller has formatted.
  JsonWriter& raw(std::string_view number);

  /// Returns the finished text; everything must be closed.
  std::string finish() &&;

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  std::vector<char> open_;  ///< the closing brackets of what is open, innermost last
  bool first_ = true;       ///< nothing yet in the innermost one
  bool after_key_ = false;
};

}  // namespace canele::comm
