// SPDX-License-Identifier: BSD-3-Clause
//
// Parsing and encoding of PMI-1 lines and blobs.
#include "comm/bootstrap/pmi1_wire.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cstdint>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t longest_first_words = 16;  // "99999:65536:"

template <typename Number>
bool parse_number(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

std::string encode(const std::byte* bytes, std::size_t size) {
  std::string text;
  text.reserve((size * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int pending_bits = 0;
  for (std::size_t i = 0; i < size; ++i) {
    bits = bits << 8 | std::to_integer<std::uint32_t>(bytes[i]);
    for (pending_bits += 8; pending_bits >= 6; pending_bits -= 6) text += alphabet[bits >> (pending_bits - 6) & 63];
  }
  if (pending_bits > 0) text += alphabet[bits << (6 - pending_bits) & 63];
  return text;
}

constexpr std::array<std::int8_t, 256> decoding_table() {
  std::array<std::int8_t, 256> table = {};
  table.fill(-1);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  return table;
}

/// Appends to *blob. Returns false for an invalid character, or for bits left over.
bool decode(std::string_view text, Blob* blob) {
  static constexpr std::array<std::int8_t, 256> table = decoding_table();
  std::uint32_t bits = 0;
  int pending_bits = 0;
  for (const char c : text) {
    const std::int8_t six = table[static_cast<unsigned char>(c)];
    if (six < 0) return false;
    bits = (bits << 6 | static_cast<std::uint32_t>(six)) & 0xffff;
    pending_bits += 6;
    if (pending_bits < 8) continue;
    pending_bits -= 8;
    blob->push_back(static_cast<std::byte>(bits >> pending_bits & 0xff));
  }
  return pending_bits < 6 && (bits & ((1u << pending_bits) - 1)) == 0;
}

bool fits_in_key(char c) { return c > ' ' && c < 127 && c != '='; }

}  // namespace

std::optional<Pmi1Message> Pmi1Message::parse(std::string_view line) {
  Pmi1Message message;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::size_t sign = word.find('=');  // the first one: a value may contain others
    if (sign == std::string_view::npos || sign == 0) return std::nullopt;
    if (message.words_.empty() && word.substr(0, sign) != "cmd") return std::nullopt;
    message.words_.insert_or_assign(std::string(word.substr(0, sign)), std::string(word.substr(sign + 1)));
  }
  if (message.words_.empty()) return std::nullopt;
  return message;
}

std::string_view Pmi1Message::word(std::string_view name) const {
  const auto found = words_.find(name);
  return found == words_.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<long> Pmi1Message::number(std::string_view name) const {
  long value = 0;
  if (!parse_number(word(name), &value)) return std::nullopt;
  return value;
}

bool Pmi1Lines::next(std::string* line) {
  const std::size_t end = rest_.find('\n');
  if (end == std::string::npos) return false;
  line->assign(rest_, 0, end);
  rest_.erase(0, end + 1);
  return true;
}

std::string pmi1_key(int rank, std::string_view key, std::size_t part) {
  return std::string(key_prefix) + std::to_string(rank) + "." + std::string(key) + "." + std::to_string(part);
}

bool pmi1_parts(int rank, std::string_view key, const Blob& blob, const Pmi1Limits& limits,
                std::vector<std::string>* values, std::string* why) {
  if (!check_entry(key, blob.size(), why)) return false;
  if (!std::all_of(key.begin(), key.end(), fits_in_key)) {
    *why = "the key '" + std::string(key) + "' has a space, a '=' or a control character, which PMI-1 cannot carry";
    return false;
  }
  // Whole groups of three bytes, so that every part can be decoded alone.
  assert(limits.value > longest_first_words + 8);
  const std::size_t room = (limits.value - 1 - longest_first_words) / 4 * 3;
  const std::size_t parts = std::max<std::size_t>(1, (blob.size() + room - 1) / room);
  if (const std::size_t length = pmi1_key(rank, key, parts - 1).size(); length >= limits.key) {
    *why = "the key '" + std::string(key) + "' is " + std::to_string(length - limits.key + 1) +
           " characters too long for this launcher's PMI-1";
    return false;
  }
  values->clear();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * room;
    values->push_back(encode(blob.data() + begin, std::min(room, blob.size() - begin)));
  }
  values->front().insert(0, std::to_string(parts) + ":" + std::to_string(blob.size()) + ":");
  return true;
}

bool Pmi1Blob::add(std::string_view value) {
  if (have_ == 0) {
    const std::size_t first = value.find(':');
    const std::size_t second = first == std::string_view::npos ? first : value.find(':', first + 1);
    if (second == std::string_view::npos || !parse_number(value.substr(0, first), &parts_) ||
        !parse_number(value.substr(first + 1, second - first - 1), &size_))
      return false;
    if (parts_ == 0 || size_ > longest_blob || parts_ > size_ + 1) return false;
    value.remove_prefix(second + 1);
  }
  if (!decode(value, &blob_) || blob_.size() > size_) return false;
  ++have_;
  return have_ < parts_ || blob_.size() == size_;
}

}  // namespace canele::comm
