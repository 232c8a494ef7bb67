// SPDX-License-Identifier: BSD-3-Clause
//
// JsonWriter: nesting, commas, escapes. UTF-8 is checked byte by byte (overlong forms, surrogates and values beyond
// U+10FFFF are rejected).
#include "comm/observe/json.hpp"

#include <cassert>
#include <cmath>
#include <cstdio>

namespace canele::comm {
namespace {

bool continues(std::string_view text, std::size_t at, unsigned char least = 0x80, unsigned char most = 0xBF) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= least && byte <= most;
}

/// Returns the length of the well-formed UTF-8 sequence at text[at] (Unicode, table 3-7), or 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(text, at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned char least = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned char most = lead == 0xED ? 0x9F : 0xBF;
    return continues(text, at + 1, least, most) && continues(text, at + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned char least = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char most = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(text, at + 1, least, most) && continues(text, at + 2) && continues(text, at + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  assert(!open_.empty() && open_.back() == '}' && !after_key_);
  separate();
  quote(name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return raw("null");
  char digits[32];
  // 17 significant digits restore any double exactly; a decimal comma from the locale would not be JSON.
  const int length = std::snprintf(digits, sizeof digits, "%.17g", number);
  assert(length > 0 && length < static_cast<int>(sizeof digits));
  for (char& c : digits) c = c == ',' ? '.' : c;
  return raw(std::string_view(digits, static_cast<std::size_t>(length)));
}

JsonWriter& JsonWriter::raw(std::string_view number) {
  separate();
  text_ += number;
  return *this;
}

std::string JsonWriter::finish() && {
  assert(open_.empty() && !text_.empty());
  return std::move(text_);
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  open_.push_back(bracket == '{' ? '}' : ']');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  assert(!open_.empty() && open_.back() == bracket && !after_key_);
  open_.pop_back();
  if (!first_) text_.append("\n").append(2 * open_.size(), ' ');
  text_ += bracket;
  first_ = false;
  return *this;
}

/// Writes what comes before a key or an array's value: comma, new line, indent. Writes nothing between a key and its
/// value.
void JsonWriter::separate() {
  if (std::exchange(after_key_, false)) return;
  assert(!open_.empty() || text_.empty());  // one value per text
  if (open_.empty()) return;
  if (!first_) text_ += ',';
  text_.append("\n").append(2 * open_.size(), ' ');
  first_ = false;
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char c = text[at];
    if (length == 0) {
      text_ += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      text_.append(1, '\\').append(1, c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      text_ += escape;
    } else {
      text_ += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  text_ += '"';
}

}  // namespace canele::comm
