// SPDX-License-Identifier: BSD-3-Clause
//
// Settings in the C ABI: the table, and the values in force. Any thread.
#include <canele/settings.h>

#include <string>

#include "comm/api/api.hpp"
#include "comm/observe/report.hpp"

using namespace canele::comm;
using namespace canele::comm::api;

namespace {
bool is_setting(int index) { return index >= 0 && index < canele_setting_count(); }
}  // namespace

int canele_setting_count(void) { return static_cast<int>(Setting::count); }

const char* canele_setting_name(int index) {
  return is_setting(index) ? Settings::info(static_cast<Setting>(index)).name.data() : nullptr;
}

const char* canele_setting_help(int index) {
  return is_setting(index) ? Settings::info(static_cast<Setting>(index)).help.data() : nullptr;
}

int canele_setting_read(canele_engine_t* engine, int index, char* text, size_t size, size_t* needed) try {
  if (engine != nullptr && fork::in_child) return reject_in_child("canele_setting_read");
  if (!is_setting(index)) {
    return error(CANELE_EINVAL, "canele_setting_read: no setting " + std::to_string(index) + "; expected: 0 to " +
                                    std::to_string(canele_setting_count() - 1));
  }
  if (text == nullptr && size != 0) return error(CANELE_EINVAL, "canele_setting_read: size is not 0 but text is NULL");
  const auto setting = static_cast<Setting>(index);
  const std::string value = engine != nullptr
                                ? engine_of(engine).lifecycle.settings->text(setting)
                                : Settings(canele::posix_platform(), {}, Settings::Warnings::later).text(setting);
  if (copy_text(value, text, size, needed)) return CANELE_OK;
  return error(CANELE_ENOMEM, "canele_setting_read: the value needs " + std::to_string(value.size() + 1) + " bytes, " +
                                  std::to_string(size) + " were given");
} catch (...) {
  return caught();
}
