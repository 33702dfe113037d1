// Whatever goes wrong with a device: every request gets one answer, none that is late
// counts as good, what a fenced device does has no effect, and almost all that could
// still be met is. The checkers see to the former in every run.
#include <gtest/gtest.h>

#include <cstdio>

#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/test_time.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

// Eight ResNet-50 (V100) on four devices that hold four each.
SimulationReport run(std::vector<Fault> faults, RandomFaults random = {}, uint64_t seed = 1,
                     Duration duration = Duration::seconds(5), double rate = 600) {
  const Workload workload{.groups = {{.name = "resnet50", .profile = "resnet50", .count = 8, .slo = ms(100)}},
                          .streams = {{.name = "users", .models = {}, .arrivals = {.rate = rate}}}};
  SimulationOptions options{.policy = "foliot",
                            .make_policy = [](const Cluster& c) { return foliot_policy::make_foliot_policy(c); },
                            .controller = {},
                            .devices = 4,
                            .page_cache_bytes = uint64_t{32} * (16 << 20),
                            .seed = seed,
                            .duration = duration,
                            .warm_up = ms(500),
                            .preload = true};
  options.faults = std::move(faults);
  options.random_faults = std::move(random);
  auto report = simulate(options, workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->proposals_rejected, 0u);
  return *std::move(report);
}

struct Case {
  Fault fault;
  double attainment_min;
  Duration recovery_max;
};
void PrintTo(const Case& value, std::ostream* out) {
  *out << to_string(value.fault.kind) << " for " << value.fault.length.to_milliseconds() << " ms";
}

class FaultsTest : public ::testing::TestWithParam<Case> {};

TEST_P(FaultsTest, AlmostAllThatCouldBeMetIs) {
  Fault fault = GetParam().fault;
  fault.device = 1;
  fault.at = ms(1500);
  const FaultReport report = *run({fault}).faults;
  std::printf("%s: %.3f %% of what could be met, recovered in %.1f s\n", std::string(to_string(fault.kind)).c_str(),
              100 * report.attainment(), report.recovery_max().to_seconds());
  EXPECT_GT(report.meetable.attainment(), 0.999);
  EXPECT_GE(report.attainment(), GetParam().attainment_min);
  EXPECT_LE(report.recovery_max(), GetParam().recovery_max);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FaultsTest,
    ::testing::Values(Case{{.kind = FaultKind::kKill, .length = ms(1500)}, 0.99, ms(300)},
                      Case{{.kind = FaultKind::kFreeze, .length = ms(60)}, 0.99, ms(300)},
                      Case{{.kind = FaultKind::kFreeze, .length = ms(1500)}, 0.97, ms(700)},
                      Case{{.kind = FaultKind::kSlow, .length = ms(1900)}, 0.97, ms(1000)},
                      Case{{.kind = FaultKind::kDelay, .length = ms(1500)}, 0.9, ms(1600)},
                      Case{{.kind = FaultKind::kPartition, .length = ms(300)}, 0.97, ms(500)},
                      Case{{.kind = FaultKind::kPartition, .length = ms(1500)}, 0.97, ms(700)},
                      Case{{.kind = FaultKind::kDrain, .length = ms(1500)}, 0.999, ms(100)},
                      Case{{.kind = FaultKind::kFail, .length = ms(1500)}, 0.99, ms(300)},
                      Case{{.kind = FaultKind::kFail, .length = ms(1500), .loads_fail = false}, 0.99, ms(300)},
                      Case{{.kind = FaultKind::kFail, .length = ms(1500), .execs_fail = false}, 0.99, ms(300)}),
    [](const auto& parameter) {
      return std::string(to_string(parameter.param.fault.kind)) + std::to_string(parameter.index);
    });

TEST(FaultSchedulesTest, AHundredSchedulesDrawnAtRandom) {
  uint64_t met = 0;
  uint64_t meetable = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const FaultReport report = *run({}, {.count = 2}, seed, Duration::seconds(7), 300).faults;
    met += report.met.good;
    meetable += report.meetable.good;
  }
  const double attainment = static_cast<double>(met) / static_cast<double>(meetable);
  std::printf("%.3f %% of what could be met\n", 100 * attainment);
  EXPECT_GT(attainment, 0.97);
}

TEST(FaultSchedulesTest, EqualSeedsGiveEqualRuns) {
  const auto hash = [](uint64_t seed) { return run({}, {.count = 2}, seed).event_hash; };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7), hash(8));
}

TEST(FaultSchedulesTest, ReportsWhatIsWrongWithASchedule) {
  const auto message = [](std::vector<Fault> faults) {
    return check_faults(faults, 4, Duration::seconds(5)).message();
  };
  EXPECT_EQ(message({{.device = 4, .length = ms(1)}}), "fault 1 (kill): there is no device 4; there are 4");
  EXPECT_EQ(message({{.device = 3}}), "fault 1 (kill): length must be above 0");
  EXPECT_EQ(message({{.at = ms(4000), .length = ms(1001)}}), "fault 1 (kill): it must lie within the duration");
  EXPECT_EQ(message({{.kind = FaultKind::kSlow, .length = ms(1), .factor = 1}}),
            "fault 1 (slow): factor must be above 1");
  EXPECT_EQ(message({{.kind = FaultKind::kFail, .length = ms(1), .loads_fail = false, .execs_fail = false}}),
            "fault 1 (fail): LOADs, EXECs or both must fail");
  EXPECT_EQ(message({{.length = ms(10)}, {.kind = FaultKind::kDrain, .at = ms(9), .length = ms(1)}}),
            "fault 2 (drain): fault 1 of the same device is not over");
}

}  // namespace
}  // namespace foliot
