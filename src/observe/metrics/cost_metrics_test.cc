#include "observe/metrics/cost_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/metrics/gone_models.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr TimePoint at(int64_t seconds) { return TimePoint() + Duration::seconds(seconds); }

// A device of 8 pages and two lanes that costs a dollar a second, and models of 1 and 4 pages.
class CostMetricsTest : public ::testing::Test {
 protected:
  CostMetricsTest() {
    for (const auto& [id, name, pages] : {std::tuple{1u, "small", 1u}, {2u, "large", 4u}}) {
      ModelInfo model{.id = ModelId(id), .name = name};
      model.only().pages = pages;
      metrics_.on_model(model);
    }
    join({});
  }
  void join(std::vector<ModelId> residents, int64_t now = 0) {
    metrics_.on_device({.device = DeviceId(0), .joined = true, .residents = residents, .kind = "cpu", .lane_count = 2},
                       at(now));
    metrics_.on_pages(DeviceId(0), 0, 8);
  }
  void come(uint64_t id, uint32_t tenant) {
    metrics_.on_request({.id = RequestId(id), .tenant = TenantId(tenant)}, TimePoint());
  }
  void act(ActionType type, uint32_t model, int64_t now, int64_t seconds = 0, std::vector<uint64_t> rows = {},
           uint32_t lanes = 2, OutcomeStatus status = OutcomeStatus::kDone) {
    Action action;
    action.type = type;
    action.model = ModelId(model);
    action.lanes = {0, lanes};
    for (const uint64_t row : rows) action.rows.add({RequestId(row), PayloadHandle()});
    Outcome outcome;
    outcome.type = type;
    outcome.status = status;
    outcome.duration = Duration::seconds(seconds);
    metrics_.on_outcome(action, outcome, at(now));
  }
  static std::string line(const std::string& model, const std::string& of, const std::string& tenant,
                          const std::string& dollars) {
    return "foliot_dollars_total{model=\"" + model + "\",of=\"" + of + "\",tenant_id=\"" + tenant + "\"} " + dollars +
           "\n";
  }

  CostMetrics metrics_{DevicePrices{{{"cpu", 3600.0}}, 36}};
};

TEST_F(CostMetricsTest, SeriesOfAModelLeaveAWhileAfterIt) {
  act(ActionType::kInfer, 1, 10, 10, {1});
  metrics_.on_model_removed(ModelId(1), at(20));
  metrics_.on_completion({}, at(21));
  EXPECT_THAT(metrics_.text(), HasSubstr("model=\"small\""));
  metrics_.on_completion({}, at(20) + GoneModels::kTime);
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("model=\"small\"")));
}

TEST_F(CostMetricsTest, AnExecBelongsToTheTenantsOfItsRows) {
  come(1, 0xabc);
  come(2, 0xdef);
  act(ActionType::kInfer, 1, 10, 10, {1, 2, 3, 4});
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "exec", "00000abc", "2.5")));
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "exec", "00000def", "2.5")));
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "exec", "", "5"))) << "two rows without a key";
}

TEST_F(CostMetricsTest, ALaneOfTwoCostsHalf) {
  act(ActionType::kInfer, 1, 10, 10, {1}, 1);
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "exec", "", "5")));
}

TEST_F(CostMetricsTest, PagesCostWhileNothingIsComputed) {
  act(ActionType::kLoad, 2, 100);
  come(1, 0xabc);
  act(ActionType::kInfer, 2, 130, 10, {1});
  // 30 s with 4 of 8 pages, in 10 of which the device computed.
  EXPECT_THAT(metrics_.text(), HasSubstr(line("large", "pages", "00000abc", "10")));
  act(ActionType::kInfer, 2, 150, 0, {1});
  EXPECT_THAT(metrics_.text(), HasSubstr(line("large", "pages", "00000abc", "20"))) << "once for each second";
}

TEST_F(CostMetricsTest, PagesThatWereKeptInVainBelongToNoTenant) {
  act(ActionType::kLoad, 2, 100);
  act(ActionType::kLoad, 1, 110);
  act(ActionType::kUnload, 2, 150);
  EXPECT_THAT(metrics_.text(), HasSubstr(line("large", "pages", "", "25")));
  metrics_.on_device({.device = DeviceId(0), .state = DeviceState::kLost}, at(210));
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "pages", "", "12.5")));
  act(ActionType::kInfer, 1, 300, 10, {1}, 2, OutcomeStatus::kLost);
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("exec"))) << "a device that is lost costs nothing";
}

TEST_F(CostMetricsTest, ADeviceJoinsWithItsModels) {
  join({ModelId(1)}, 1000);
  act(ActionType::kInfer, 1, 1020, 10, {1});
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "pages", "", "1.25")));
}

TEST_F(CostMetricsTest, RequestsThatAreOverAreForgotten) {
  come(1, 0xabc);
  metrics_.on_completion({.id = RequestId(1)}, at(1));
  act(ActionType::kInfer, 1, 10, 10, {1});
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "exec", "", "10")));
}

TEST_F(CostMetricsTest, AnIdThatIsUsedAgainIsAnotherModel) {
  act(ActionType::kInfer, 1, 10, 10, {1});
  metrics_.on_model({.id = ModelId(1), .name = "other"});
  act(ActionType::kInfer, 1, 20, 10, {1});
  EXPECT_THAT(metrics_.text(), HasSubstr(line("small", "exec", "", "10")));
  EXPECT_THAT(metrics_.text(), HasSubstr(line("other", "exec", "", "10")));
}

}  // namespace
}  // namespace foliot
