// SPDX-License-Identifier: BSD-3-Clause
//
// InfoList: an array of pmix_info_t that frees itself. Used by one thread at a time.
//
// libpmix copies its arguments, so the strings passed in need not outlive the call.
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace canele::run {

class InfoList {
 public:
  InfoList() = default;
  InfoList(InfoList&& other) noexcept : entries_(std::exchange(other.entries_, {})) {}
  InfoList(const InfoList&) = delete;
  InfoList& operator=(const InfoList&) = delete;
  InfoList& operator=(InfoList&&) = delete;
  ~InfoList() {
    for (pmix_info_t& entry : entries_) PMIX_INFO_DESTRUCT(&entry);
  }

  void add(const char* key, const char* text, pmix_data_type_t type = PMIX_STRING) { load(key, text, type); }
  void add(const char* key, const std::string& text) { load(key, text.c_str(), PMIX_STRING); }
  void add(const char* key, std::uint32_t number, pmix_data_type_t type = PMIX_UINT32) { load(key, &number, type); }
  void add(const char* key, std::uint16_t number) { load(key, &number, PMIX_UINT16); }
  void add(const char* key, std::int32_t number) { load(key, &number, PMIX_INT); }
  void add(const char* key, bool flag) { load(key, &flag, PMIX_BOOL); }
  void add(const char* key, const pmix_proc_t& process) { load(key, &process, PMIX_PROC); }
  /// Adds a nested list.
  void add(const char* key, InfoList&& list) {
    pmix_data_array_t array = {};
    array.type = PMIX_INFO;
    array.array = list.entries_.data();
    array.size = list.entries_.size();
    load(key, &array, PMIX_DATA_ARRAY);  // copied: `list` frees its own memory
  }

  pmix_info_t* data() { return entries_.data(); }
  std::size_t size() const { return entries_.size(); }

 private:
  void load(const char* key, const void* value, pmix_data_type_t type) {
    entries_.emplace_back();
    PMIX_INFO_CONSTRUCT(&entries_.back());
    const pmix_status_t status = PMIx_Info_load(&entries_.back(), key, value, type);
    assert(status == PMIX_SUCCESS);
    static_cast<void>(status);
  }
  std::vector<pmix_info_t> entries_;
};

}  // namespace canele::run
