// SPDX-License-Identifier: BSD-3-Clause
//
// Settings: sources and precedence, accepted values, the message for each mistake, with an environment of the test's
// own. One thread.
//
// Messages are checked for the variable, the value and the valid form: those three are the promise.
#include "comm/config/settings.hpp"

#include <gtest/gtest.h>

#include "comm/config/nearest.hpp"
#include "fake_platform.hpp"

namespace canele::comm {
namespace {

using test::FakePlatform;

Settings with_environment(std::map<std::string, std::string> environment) {
  FakePlatform platform;
  platform.environment = std::move(environment);
  Settings settings(platform, {});
  EXPECT_TRUE(platform.warnings.empty());
  return settings;
}

std::string error_of(const std::string& variable, const std::string& value) {
  return with_environment({{variable, value}}).error();
}

void expect_parts(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
  }
}

TEST(Settings, DefaultsAreValidAndNamedAsTheTableSays) {
  const Settings settings = with_environment({});
  EXPECT_EQ(settings.error(), "");
  for (int i = 0; i < static_cast<int>(Setting::count); ++i) {
    const auto setting = static_cast<Setting>(i);
    const SettingInfo& info = Settings::info(setting);
    EXPECT_EQ(settings.text(setting), info.fallback) << info.name;
    EXPECT_EQ(settings.source(setting), Source::fallback) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_FALSE(info.values.empty()) << info.name;
    if (info.fallback.empty()) continue;  // empty means unset
    EXPECT_EQ(error_of("CANELE_" + std::string(info.name), std::string(info.fallback)), "");
  }
}

TEST(Settings, EveryEnumeratorHasItsRowInTheTable) {
  const std::pair<Setting, std::string_view> rows[] = {
      {Setting::drivers, "DRIVERS"},
      {Setting::driver_path, "DRIVER_PATH"},
      {Setting::decorators, "EXPERT_DECORATORS"},
      {Setting::strategy, "STRATEGY"},
      {Setting::matcher, "EXPERT_MATCHER"},
      {Setting::cache_warmer, "EXPERT_CACHE_WARMER"},
      {Setting::worker, "WORKER"},
      {Setting::worker_interval, "EXPERT_WORKER_INTERVAL"},
      {Setting::worker_core, "WORKER_CORE"},
      {Setting::worker_place, "WORKER_PLACE"},
      {Setting::host_threads, "HOST_THREADS"},
      {Setting::rank_affinity, "RANK_AFFINITY"},
      {Setting::eager_limit, "EAGER_LIMIT"},
      {Setting::unexpected_memory, "UNEXPECTED_MEMORY"},
      {Setting::unexpected_per_peer, "EXPERT_UNEXPECTED_PER_PEER"},
      {Setting::multicast, "EXPERT_MULTICAST"},
      {Setting::multicast_memory, "MULTICAST_MEMORY"},
      {Setting::collectives, "COLLECTIVES"},
      {Setting::split_tree, "EXPERT_SPLIT_TREE"},
      {Setting::receiver_initiated, "EXPERT_RECEIVER_INITIATED"},
      {Setting::checksum, "CHECKSUM"},
      {Setting::spin, "SPIN"},
      {Setting::start_timeout, "START_TIMEOUT"},
      {Setting::finalize_timeout, "FINALIZE_TIMEOUT"},
      {Setting::counters, "COUNTERS"},
      {Setting::profile, "PROFILE"},
      {Setting::trace, "TRACE"},
      {Setting::trace_events, "EXPERT_TRACE_EVENTS"},
      {Setting::verbose, "VERBOSE"},
      {Setting::tcp_interface, "TCP_INTERFACE"},
      {Setting::tcp_port, "TCP_PORT"},
      {Setting::tcp_peer_timeout, "TCP_PEER_TIMEOUT"},
      {Setting::tcp_send_buffer, "EXPERT_TCP_SEND_BUFFER"},
      {Setting::shm_cma, "SHM_CMA"},
      {Setting::shm_cma_min, "EXPERT_SHM_CMA_MIN"},
      {Setting::shm_broadcast_segment, "EXPERT_SHM_BROADCAST_SEGMENT"},
      {Setting::shm_membarrier, "EXPERT_SHM_MEMBARRIER"},
      {Setting::ofi_provider, "OFI_PROVIDER"},
      {Setting::ofi_domain, "OFI_DOMAIN"},
      {Setting::ofi_multi_recv, "EXPERT_OFI_MULTI_RECV"},
      {Setting::ofi_peer_timeout, "OFI_PEER_TIMEOUT"},
      {Setting::gpu, "GPU"},
      {Setting::gpu_library, "EXPERT_GPU_LIBRARY"},
      {Setting::gpu_export_min, "EXPERT_GPU_EXPORT_MIN"},
      {Setting::gpu_fragment, "EXPERT_GPU_FRAGMENT"},
      {Setting::gpu_staging, "EXPERT_GPU_STAGING"},
      {Setting::samples, "SAMPLES"},
      {Setting::hang_report, "HANG_REPORT"},
      {Setting::fault, "EXPERT_FAULT"},
  };
  EXPECT_EQ(std::size(rows), static_cast<std::size_t>(Setting::count));
  for (const auto& [setting, name] : rows) EXPECT_EQ(Settings::info(setting).name, name);
}

TEST(Settings, AtMostThirtyArePublic) {
  int number = 0;
  for (int i = 0; i < static_cast<int>(Setting::count); ++i)
    number += Settings::info(static_cast<Setting>(i)).name.starts_with("EXPERT_") ? 0 : 1;
  EXPECT_LE(number, 30) << "a setting that no user needs is an expert setting";
}

TEST(Settings, OptionsWinOverEnvironmentAndEmptyMeansUnset) {
  FakePlatform platform;
  platform.environment = {{"CANELE_STRATEGY", "fifo"}, {"CANELE_TCP_PORT", "7000"}, {"CANELE_DRIVERS", ""}};
  const std::string overrides[] = {"CANELE_STRATEGY=priority"};
  const Settings settings(platform, overrides);
  EXPECT_EQ(settings.error(), "");
  EXPECT_EQ(settings.text(Setting::strategy), "priority");
  EXPECT_EQ(settings.source(Setting::strategy), Source::options);
  EXPECT_EQ(settings.number(Setting::tcp_port), 7000u);
  EXPECT_EQ(settings.source(Setting::tcp_port), Source::environment);
  EXPECT_EQ(settings.text(Setting::drivers), "shm,tcp");
  EXPECT_EQ(settings.source(Setting::drivers), Source::fallback);
}

TEST(Settings, SizesTakeSuffixes) {
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"0", 0},      {"1", 1},       {"512", 512},     {"8k", 8192},     {"8K", 8192},
      {"8kB", 8192}, {"8KiB", 8192}, {"3M", 3u << 20}, {"1G", 1u << 30}, {"100B", 100}};
  for (const auto& [text, bytes] : sizes) {
    const Settings settings = with_environment({{"CANELE_EAGER_LIMIT", text}});
    EXPECT_EQ(settings.error(), "") << text;
    EXPECT_EQ(settings.number(Setting::eager_limit, 77), bytes) << text;
  }
  EXPECT_EQ(with_environment({{"CANELE_EAGER_LIMIT", "auto"}}).number(Setting::eager_limit, 77), 77u);
}

TEST(Settings, WrongValuesNameVariableValueAndTheRightForm) {
  expect_parts(error_of("CANELE_EAGER_LIMIT", "8q"), {"CANELE_EAGER_LIMIT", "\"8q\"", "not a size", "16k", "bytes"});
  expect_parts(error_of("CANELE_EAGER_LIMIT", "2G"), {"\"2G\"", "more than 1073741824"});
  expect_parts(error_of("CANELE_EAGER_LIMIT", "99999999999999999999"), {"not a size"});
  expect_parts(error_of("CANELE_EAGER_LIMIT", "17179869184G"), {"not a size"});  // would overflow 64 bits
  expect_parts(error_of("CANELE_EAGER_LIMIT", "k"), {"not a size"});
  expect_parts(error_of("CANELE_EAGER_LIMIT", "-1"), {"not a size"});
  expect_parts(error_of("CANELE_TCP_PORT", "65536"), {"CANELE_TCP_PORT", "\"65536\"", "0 to 65535"});
  expect_parts(error_of("CANELE_TCP_PORT", "auto"), {"not a whole number"});
  expect_parts(error_of("CANELE_START_TIMEOUT", "0"), {"less than 1", "in s", "default 60"});
  expect_parts(error_of("CANELE_START_TIMEOUT", "1.5"), {"not a whole number"});
  expect_parts(error_of("CANELE_STRATEGY", "agregate"),
               {"\"agregate\"", "fifo | aggregate | priority", "did you mean aggregate?"});
  expect_parts(error_of("CANELE_EXPERT_MATCHER", "tabel"), {"\"tabel\"", "table | list | bins", "did you mean table?"});
  expect_parts(error_of("CANELE_WORKER", "Bound"), {"none | auto | bound", "did you mean bound?"});
  expect_parts(error_of("CANELE_VERBOSE", "4"), {"more than 3"});
  expect_parts(error_of("CANELE_SHM_CMA", "on"), {"auto | off"});
  expect_parts(error_of("CANELE_EXPERT_SHM_MEMBARRIER", "on"), {"auto | off"});
  EXPECT_EQ(error_of("CANELE_CHECKSUM", "on").find("did you mean"), std::string::npos) << "not its opposite";
  expect_parts(error_of("CANELE_EXPERT_TCP_SEND_BUFFER", "4k"), {"not a whole number", "in bytes"});
  expect_parts(error_of("CANELE_EXPERT_TCP_SEND_BUFFER", "1073741825"), {"more than 1073741824"});
}

TEST(Settings, DriverListsAreChecked) {
  EXPECT_EQ(error_of("CANELE_DRIVERS", "tcp"), "");
  EXPECT_EQ(error_of("CANELE_DRIVERS", "psm2,ofi,tcp,shm,self"), "");
  EXPECT_EQ(error_of("CANELE_DRIVERS", "shm+tcp:eth0+tcp:eth1,ofi:tcp;ofi_rxm,mine"), "");
  expect_parts(error_of("CANELE_DRIVERS", "shm+,tcp"), {"empty name"});
  expect_parts(error_of("CANELE_DRIVERS", "tcp:eth0+tcp:eth0"), {"\"tcp:eth0\" twice"});
  expect_parts(error_of("CANELE_DRIVERS", "../evil"), {"\"../evil\"", "cannot be the name of a driver"});
  expect_parts(error_of("CANELE_DRIVERS", "shm,,tcp"), {"empty name"});
  expect_parts(error_of("CANELE_DRIVERS", "shm,"), {"empty name"});
  expect_parts(error_of("CANELE_DRIVERS", "tcp,shm,tcp"), {"\"tcp\" twice"});
  expect_parts(error_of("CANELE_DRIVERS", "shm tcp"), {"\"shm tcp\""});
}

TEST(Settings, AModuleMayHaveSettingsOfItsOwn) {
  FakePlatform platform;
  platform.environment = {{"CANELE_DRIVERS", "shm,mine:x"}, {"CANELE_MINE_DEPTH", "7"}, {"CANELE_SHM_DEPTH", "8"}};
  const Settings settings(platform, {});
  EXPECT_EQ(settings.by_name("MINE_DEPTH", "1"), "7");
  EXPECT_EQ(settings.by_name("SHM_DEPTH", "1"), "1") << "the table knows all of shm's settings";
  ASSERT_EQ(platform.warnings.size(), 1u);
  expect_parts(platform.warnings[0], {"CANELE_SHM_DEPTH"});
}

TEST(Settings, SettingsOfAModuleInTheOptions) {
  FakePlatform platform;
  platform.environment = {{"CANELE_MINE_DEPTH", "7"}, {"CANELE_MY_NET_RATE", "3"}};
  const std::vector<std::string> options = {"CANELE_MINE_DEPTH=9",
                                            "CANELE_MINE_NAME=", "CANELE_DRIVERS=my_net+tcp,mine"};
  const Settings settings(platform, options);
  EXPECT_EQ(settings.error(), "");
  EXPECT_EQ(settings.by_name("MINE_DEPTH", "1"), "9") << "options win over the environment";
  EXPECT_EQ(settings.by_name("MINE_NAME", "1"), "1") << "an empty value is none";
  EXPECT_EQ(settings.by_name("MY_NET_RATE", "1"), "3");
  EXPECT_TRUE(platform.warnings.empty());
  for (const char* wrong : {"CANELE_OTHER_DEPTH=1", "CANELE_MINE_DEPTH", "CANELE_MINE=1", "CANELE_MINE_=1",
                            "CANELE_TCP_DEPTH=1", "MINE_DEPTH=1", "CANELE_mine_DEPTH=1", "CANELE_MY_DEPTH=1"}) {
    const std::vector<std::string> with = {"CANELE_DRIVERS=my_net,tcp,mine", wrong};
    expect_parts(Settings(platform, with).error(), {"unknown setting", wrong});
  }
}

TEST(Settings, FaultsHaveANameAndANumber) {
  EXPECT_EQ(error_of("CANELE_EXPERT_FAULT", "flip-byte:1000"), "");
  EXPECT_EQ(error_of("CANELE_EXPERT_FAULT", "flip-byte:1,shuffle-tasks:2"), "");
  expect_parts(error_of("CANELE_EXPERT_FAULT", "flip-byte:1,drop:2"),
               {"CANELE_EXPERT_FAULT", "\"drop\"", "shuffle-tasks"});
  for (const char* wrong : {"flip-byte", "flip-byte:", ":3", "flip byte:3", "flip-byte:x", "flip-byte:1,"}) {
    expect_parts(error_of("CANELE_EXPERT_FAULT", wrong), {"CANELE_EXPERT_FAULT", "name:number"});
  }
}

TEST(Settings, UnknownVariableIsAWarningWithTheNearestName) {
  FakePlatform platform;
  platform.environment = {{"CANELE_DRIVER", "tcp"}, {"CANELE_XYZZY_PLUGH", "1"}};
  const Settings settings(platform, {});
  EXPECT_EQ(settings.error(), "");
  ASSERT_EQ(platform.warnings.size(), 2u);
  EXPECT_EQ(platform.warnings[0], "unknown variable CANELE_DRIVER ignored; did you mean CANELE_DRIVERS?");
  EXPECT_EQ(platform.warnings[1], "unknown variable CANELE_XYZZY_PLUGH ignored; canele-info lists the known ones");
}

TEST(Settings, ToolVariablesAndQuietRunsGiveNoWarning) {
  EXPECT_EQ(error_of("CANELE_CC", "gcc"), "");
  EXPECT_EQ(error_of("CANELE_DRIVER_PATH", "/opt"), "");
  EXPECT_EQ(error_of("CANELE_TEST_SEED", "3"), "");
  EXPECT_EQ(error_of("CANELE_X_MINE", "3"), "");
  FakePlatform platform;
  platform.environment = {{"CANELE_DRIVER", "tcp"}, {"CANELE_VERBOSE", "0"}};
  const Settings settings(platform, {});
  EXPECT_TRUE(platform.warnings.empty());
}

TEST(Settings, UnknownOptionIsAnError) {
  FakePlatform platform;
  for (const char* wrong : {"CANELE_DRIVER=tcp", "DRIVERS=tcp", "CANELE_", ""}) {
    const std::string overrides[] = {wrong};
    expect_parts(Settings(platform, overrides).error(), {"unknown setting", wrong, "options of canele_init"});
  }
  const std::string overrides[] = {"CANELE_TCP_PORT=x"};
  expect_parts(Settings(platform, overrides).error(), {"CANELE_TCP_PORT=\"x\"", "options of canele_init"});
}

TEST(Settings, AnOptionWithoutValueIsAnError) {
  FakePlatform platform;
  const std::string overrides[] = {"CANELE_VERBOSE"};
  expect_parts(Settings(platform, overrides).error(), {"\"CANELE_VERBOSE\"", "no \"=\"", "0", "default 1"});
  const std::string empty[] = {"CANELE_VERBOSE="};
  EXPECT_EQ(Settings(platform, empty).error(), "") << "that is: unset";
}

TEST(Settings, WarningsMayBeKeptForOneRankToSay) {
  FakePlatform platform;
  platform.environment = {{"CANELE_DRIVER", "tcp"}};
  const Settings settings(platform, {}, Settings::Warnings::later);
  EXPECT_TRUE(platform.warnings.empty());
  ASSERT_EQ(settings.warnings().size(), 1u);
  expect_parts(settings.warnings()[0], {"CANELE_DRIVER", "did you mean CANELE_DRIVERS?"});
}

TEST(Settings, TheFirstMistakeIsKept) {
  const Settings settings = with_environment({{"CANELE_DRIVERS", "x y"}, {"CANELE_TCP_PORT", "y"}});
  expect_parts(settings.error(), {"CANELE_DRIVERS"});
  EXPECT_EQ(settings.text(Setting::drivers), "shm,tcp");
}

TEST(Settings, AnOldNameWorksAndGivesOneLineAtVerbose2) {
  FakePlatform platform;
  platform.environment = {{"CANELE_SPREAD", "off"}, {"CANELE_VERBOSE", "2"}};
  const Settings settings(platform, {});
  EXPECT_EQ(settings.error(), "");
  EXPECT_EQ(settings.text(Setting::rank_affinity), "off");
  EXPECT_EQ(settings.source(Setting::rank_affinity), Source::environment);
  EXPECT_TRUE(platform.warnings.empty());
  EXPECT_EQ(platform.notes, std::vector<std::string>{"CANELE_SPREAD is an old name; expected: CANELE_RANK_AFFINITY"});
  const Settings later(platform, {}, Settings::Warnings::later);
  EXPECT_EQ(later.notes(), platform.notes);
  EXPECT_EQ(platform.notes.size(), 1u);
}

TEST(Settings, AnOldNameIsQuietBelowVerbose2) {
  FakePlatform platform;
  platform.environment = {{"CANELE_SPREAD", "off"}};
  const std::string overrides[] = {"CANELE_HEATER=7"};
  const Settings settings(platform, overrides, Settings::Warnings::later);
  EXPECT_EQ(settings.number(Setting::cache_warmer), 7u);
  EXPECT_EQ(settings.source(Setting::cache_warmer), Source::options);
  EXPECT_TRUE(settings.notes().empty());
  EXPECT_TRUE(settings.warnings().empty());
}

TEST(Settings, EveryOldNameSetsItsSetting) {
  const Settings defaults = with_environment({});
  for (int i = 0; i < static_cast<int>(Setting::count); ++i) {
    const SettingInfo& info = Settings::info(static_cast<Setting>(i));
    if (info.alias.empty()) continue;
    EXPECT_EQ(error_of("CANELE_" + std::string(info.alias), std::string(info.fallback)), "");
    EXPECT_EQ(defaults.by_name(info.alias, "none"), info.fallback) << "a driver built before the change asks for it";
    for (int other = 0; other < static_cast<int>(Setting::count); ++other)
      EXPECT_NE(Settings::info(static_cast<Setting>(other)).name, info.alias);
  }
}

TEST(Settings, OldAndNewNameTogetherAreAnError) {
  const auto error = [](std::map<std::string, std::string> environment, const std::vector<std::string>& overrides) {
    FakePlatform platform;
    platform.environment = std::move(environment);
    return Settings(platform, overrides).error();
  };
  EXPECT_EQ(error({{"CANELE_SPREAD", "off"}, {"CANELE_RANK_AFFINITY", "off"}}, {}),
            "CANELE_SPREAD and CANELE_RANK_AFFINITY are the old and the new name of one setting; expected: "
            "CANELE_RANK_AFFINITY alone");
  const std::vector<std::string> both = {"CANELE_RANK_AFFINITY=off", "CANELE_SPREAD=auto"};
  expect_parts(error({}, both), {"CANELE_SPREAD and CANELE_RANK_AFFINITY", "options of canele_init"});
  EXPECT_EQ(error({{"CANELE_SPREAD", "off"}, {"CANELE_RANK_AFFINITY", ""}}, {}), "") << "empty means unset";
  EXPECT_EQ(error({{"CANELE_SPREAD", "off"}}, {"CANELE_RANK_AFFINITY=auto"}), "") << "options win";
  EXPECT_EQ(error({{"CANELE_RANK_AFFINITY", "off"}}, {"CANELE_SPREAD=auto"}), "") << "options win";
}

TEST(Settings, ANameNearAnOldOneLeadsToTheNewOne) {
  FakePlatform platform;
  platform.environment = {{"CANELE_SPRAED", "off"}};
  const Settings settings(platform, {});
  ASSERT_EQ(platform.warnings.size(), 1u);
  EXPECT_EQ(platform.warnings[0], "unknown variable CANELE_SPRAED ignored; did you mean CANELE_RANK_AFFINITY?");
}

TEST(Settings, ByNameServesDrivers) {
  const Settings settings = with_environment({{"CANELE_TCP_PORT", "9000"},
                                              {"CANELE_EXPERT_TCP_SEND_BUFFER", "4096"},
                                              {"CANELE_EXPERT_SHM_MEMBARRIER", "off"}});
  EXPECT_EQ(settings.by_name("TCP_PORT", "1"), "9000");
  EXPECT_EQ(settings.by_name("EXPERT_TCP_SEND_BUFFER", "0"), "4096");
  EXPECT_EQ(settings.by_name("EXPERT_SHM_MEMBARRIER", "auto"), "off");
  EXPECT_EQ(settings.by_name("TCP_INTERFACE", "x"), "auto");
  EXPECT_EQ(settings.by_name("NO_SUCH", "fallback"), "fallback");
}

TEST(Nearest, DistanceIsLevenshteins) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("DRIVER", "DRIVERS"), 1u);
}

TEST(Nearest, FarNamesGetNoSuggestion) {
  const std::string_view known[] = {"fifo", "aggregate"};
  EXPECT_EQ(nearest_name("fif", known), "fifo");
  EXPECT_EQ(nearest_name("agregate", known), "aggregate");
  EXPECT_EQ(nearest_name("quite-else", known), "");
}

}  // namespace
}  // namespace canele::comm
