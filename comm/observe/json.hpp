// SPDX-License-Identifier: BSD-3-Clause
//
// JsonWriter: writes JSON text: objects, arrays, strings, numbers, booleans. Nothing is read, nothing kept but the
// text.
//
// Who: the reports (counters, info) and the event log. Threads: one writer, one thread.
// Surprise: bytes that are not UTF-8 become U+FFFD, so the text is valid whatever a file or host is called.
//
// Why not nlohmann-json, as in apps: the library itself should need nothing beyond libc, hwloc and PMIx.
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
  /// Opens and closes; the calls must nest. Inside an object every value needs key() before it.
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(std::integral auto number) { return raw(std::to_string(number)); }
  /// A finite number; anything else becomes null, which is what JSON has for it.
  JsonWriter& value(double number);

  /// key(name).value(v)
  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& v) {
    return key(name).value(v);
  }

  /// A number that the caller has formatted.
  JsonWriter& raw(std::string_view number);

  /// The finished text; everything must be closed.
  std::string finish() &&;

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  std::vector<char> open_;  ///< the brackets that will close what is open, innermost last
  bool first_ = true;       ///< nothing yet in the innermost
  bool after_key_ = false;
};

}  // namespace canele::comm
