// SPDX-License-Identifier: BSD-3-Clause
//
// docs/settings.md and settings-expert.md say what the table of settings says: default, values, unit, old name and help
// of each. One thread.
//
// ctest names the source tree in CANELE_TEST_SOURCE. White space is not compared, so the page may be wrapped in any
// way.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "comm/config/settings.hpp"

namespace canele::comm {
namespace {

/// Returns `text` with every run of white space as one blank.
std::string normalised(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string all, word;
  while (words >> word) all.append(all.empty() ? "" : " ").append(word);
  return all;
}

/// Returns the section of the page from its heading to the next one.
std::string section(const std::string& page, const std::string& heading) {
  const auto start = page.find("### " + heading + "\n");
  if (start == std::string::npos) return {};
  return page.substr(start, page.find("\n### ", start + 1) - start);
}

std::string read_page(const std::string& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << "no " << file;
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(SettingsPage, SaysWhatTheTableSays) {
  const char* source = std::getenv("CANELE_TEST_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "CANELE_TEST_SOURCE is not set: run by ctest";
  const std::string page = read_page(std::string(source) + "/docs/settings.md");
  const std::string expert_page = read_page(std::string(source) + "/docs/settings-expert.md");
  for (int i = 0; i < static_cast<int>(Setting::count); ++i) {
    const SettingInfo& info = Settings::info(static_cast<Setting>(i));
    const std::string name = "CANELE_" + std::string(info.name);
    const bool expert = info.name.starts_with("EXPERT_");
    EXPECT_EQ(section(expert ? page : expert_page, name), "") << name << " is on the wrong page";
    const std::string found = normalised(section(expert ? expert_page : page, name));
    const std::string fallback = info.fallback.empty() ? "empty" : "`" + std::string(info.fallback) + "`";
    const std::string alias = info.alias.empty() ? "" : "`CANELE_" + std::string(info.alias) + "`.";
    EXPECT_NE(found.find("Values: " + normalised(info.values) + "."), std::string::npos) << name;
    EXPECT_EQ(found.find("Old name: " + alias) != std::string::npos, !alias.empty()) << name;
    EXPECT_NE(found.find("Default: " + fallback + "."), std::string::npos) << name;
    EXPECT_EQ(found.find("Unit: " + std::string(info.unit) + ".") != std::string::npos, !info.unit.empty()) << name;
    EXPECT_NE(found.find(normalised(info.help)), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace canele::comm
