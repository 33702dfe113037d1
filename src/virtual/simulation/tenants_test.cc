// Under overload each tenant keeps its share, and nothing is left unused: under every
// policy, for any models of the tenants.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>

#include "control/policies/clockwork/clockwork_policy.h"
#include "control/policies/edf/edf_policy.h"
#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/test_time.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

struct RegisteredPolicy {
  const char* name;
  Controller::PolicyFactory make;
};
void PrintTo(const RegisteredPolicy& policy, std::ostream* out) { *out << policy.name; }

const RegisteredPolicy kClockwork{"clockwork", [](const Cluster& c) { return clockwork::make_clockwork_policy(c); }};
const RegisteredPolicy kEdf{"edf", [](const Cluster& c) { return edf::make_edf_policy(c); }};
const RegisteredPolicy kFoliot{"foliot", [](const Cluster& c) { return foliot_policy::make_foliot_policy(c); }};

Stream stream(std::string tenant, double rate, uint32_t weight = 1, std::vector<std::string> models = {}) {
  Stream stream{.name = tenant, .models = std::move(models), .arrivals = {.rate = rate}};
  stream.tenant = std::move(tenant);
  stream.weight = weight;
  return stream;
}

// Two ResNet-50 (V100), "one" and "two", on one device: it serves 1,021/s of one of them
// in full batches.
SimulationReport run(const RegisteredPolicy& policy, std::vector<Stream> streams, bool tenants = true,
                     uint32_t devices = 1) {
  for (Stream& stream : streams) {
    if (!tenants) stream.tenant.clear();
  }
  const Workload workload{.groups = {{.name = "one", .profile = "resnet50", .slo = ms(100)},
                                     {.name = "two", .profile = "resnet50", .slo = ms(100)}},
                          .streams = std::move(streams)};
  auto report = simulate({.policy = policy.name,
                          .make_policy = policy.make,
                          .controller = {},
                          .devices = devices,
                          .duration = Duration::seconds(10),
                          .warm_up = Duration::seconds(2),
                          .preload = true},
                         workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->proposals_rejected, 0u);
  for (const RequestTally& tenant : report->tenants) {
    std::printf("%s, %s: %.3f %% of %.0f/s\n", policy.name, tenant.name.c_str(), 100 * tenant.attainment(),
                static_cast<double>(tenant.offered) / report->measured.to_seconds());
  }
  return *std::move(report);
}

double goodput(const SimulationReport& report, size_t tenant) {
  return static_cast<double>(report.tenants[tenant].good) / report.measured.to_seconds();
}

class TenantsTest : public ::testing::TestWithParam<RegisteredPolicy> {};

TEST_P(TenantsTest, AModestTenantKeepsItsShare) {
  const double all = run(GetParam(), {stream("greedy", 5000)}).goodput();
  const SimulationReport report = run(GetParam(), {stream("greedy", 5000), stream("modest", 150)});
  EXPECT_GE(report.tenants[1].attainment(), 0.99);
  EXPECT_GE(report.goodput(), 0.85 * all);
  EXPECT_GT(report.tenants[0].missed.at(Refusal::kOverShare), 0u);
}

TEST_P(TenantsTest, ATenantAloneHasEverything) {
  const std::vector<Stream> streams{stream("greedy", 5000)};
  const SimulationReport report = run(GetParam(), streams);
  EXPECT_FALSE(report.tenants[0].missed.contains(Refusal::kOverShare));
  EXPECT_EQ(report.event_hash, run(GetParam(), streams, false).event_hash);
}

TEST_P(TenantsTest, ModelsOfTheirOwnAreNoWayAround) {
  const SimulationReport report =
      run(GetParam(), {stream("greedy", 5000, 1, {"one"}), stream("modest", 150, 1, {"two"})});
  EXPECT_GE(report.tenants[1].attainment(), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Policies, TenantsTest, ::testing::Values(kFoliot, kClockwork, kEdf),
                         [](const auto& policy) { return policy.param.name; });

TEST(TenantsWeightTest, SharesFollowWeights) {
  const SimulationReport report = run(kFoliot, {stream("three", 3000, 3), stream("one", 3000, 1)});
  EXPECT_NEAR(goodput(report, 0) / goodput(report, 1), 3, 0.6);
}

TEST(TenantsWeightTest, ALargerWeightKeepsALargerShare) {
  const SimulationReport report = run(kFoliot, {stream("greedy", 5000, 1), stream("modest", 500, 3)});
  EXPECT_GE(report.tenants[1].attainment(), 0.99);
}

// Two devices that have time run small batches, and are busy all the time; in full ones
// the urgent tenant takes 0.55 of them, and both 0.64.
TEST(TenantsWeightTest, RowsCountAsInTheBatchesThatTheyCouldRunIn) {
  Stream urgent = stream("urgent", 1100, 1, {"two"});
  urgent.slo = ms(50);
  const SimulationReport report = run(kFoliot, {stream("other", 180, 1, {"one"}), urgent}, true, 2);
  EXPECT_FALSE(report.all.missed.contains(Refusal::kOverShare));
  EXPECT_GE(report.tenants[1].attainment(), 0.999);
}

TEST(TenantsWeightTest, NoTenantIsRefusedWithoutOverload) {
  const SimulationReport report = run(kFoliot, {stream("large", 450), stream("small", 50)});
  EXPECT_FALSE(report.all.missed.contains(Refusal::kOverShare));
}

}  // namespace
}  // namespace foliot
