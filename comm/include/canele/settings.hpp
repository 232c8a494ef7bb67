// SPDX-License-Identifier: BSD-3-Clause
//
// settings.hpp - the settings of an engine, in C++. Over settings.h, which has the reference.
#pragma once

#include <canele/settings.h>

#include <canele/canele.hpp>
#include <string>

namespace canele {

/// Returns the value of setting `index`, as the engine has it. Any thread. Throws canele::error if there is none.
inline std::string setting(const engine& owner, int index) {
  return detail::text_of("canele_setting_read", [&owner, index](char* text, std::size_t size, std::size_t* needed) {
    return canele_setting_read(owner.native(), index, text, size, needed);
  });
}

}  // namespace canele
