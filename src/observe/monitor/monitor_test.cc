#include "observe/monitor/monitor.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

// A controller's events in a few words. Device 0 has two lanes, and model 3 is called "m".
class MonitorTest : public testing::Test {
 protected:
  MonitorTest() {
    join({});
    model(ModelId(3), "m");
  }

  void join(std::vector<ModelId> residents) {
    monitor_.on_device({.device = DeviceId(0), .joined = true, .residents = residents, .kind = "cpu", .lane_count = 2},
                       at(1));
  }
  void model(ModelId id, const std::string& name) {
    ModelInfo info;
    info.id = id;
    info.name = name;
    info.runnables.front().pages = 7;
    monitor_.on_model(info);
  }
  void request(uint64_t id) { monitor_.on_request({.id = RequestId(id), .model = ModelId(3)}, at(0)); }
  Action send(uint64_t id, ActionType type, int64_t now, std::vector<uint64_t> rows = {}, LaneInterval lanes = {}) {
    Action action{.id = ActionId(id), .type = type, .model = ModelId(3), .earliest = at(now), .expected = ms(10)};
    action.batch_size = 4;
    action.lanes = lanes;
    for (const uint64_t row : rows) action.rows.add({RequestId(row), PayloadHandle()});
    monitor_.on_action(action, at(now));
    return action;
  }
  void over(const Action& action, int64_t begin, int64_t end, OutcomeStatus status = OutcomeStatus::kDone) {
    monitor_.on_outcome(action, {.action = action.id, .status = status, .start = at(begin), .end = at(end)}, at(end));
  }
  void complete(Completion completion) {
    completion.model = ModelId(3);
    monitor_.on_completion(completion, completion.finished);
  }
  MonitorModel only() const {
    const std::vector<MonitorModel> models = monitor_.models();
    EXPECT_EQ(models.size(), 1u);
    return models.empty() ? MonitorModel() : models.front();
  }
  MonitorAction action_at(uint64_t sequence) const {
    return std::get<MonitorAction>(monitor_.events().read(sequence).value());
  }

  Monitor monitor_{64};
};

TEST_F(MonitorTest, AModelWithoutRequestsAndCopiesIsNotListed) { EXPECT_TRUE(monitor_.models().empty()); }

TEST_F(MonitorTest, RequestsWaitAreSentAndEnd) {
  for (uint64_t id = 1; id <= 3; ++id) request(id);
  EXPECT_EQ(only().waiting, 3u);
  const Action action = send(1, ActionType::kInfer, 5, {1, 2});
  EXPECT_EQ(only().waiting, 1u);
  EXPECT_EQ(only().sent, 2u);
  EXPECT_EQ(monitor_.devices()[0].actions, 1u);
  over(action, 6, 15);
  complete({.id = RequestId(1), .finished = at(16)});
  complete({.id = RequestId(2), .refusal = Refusal::kLate, .finished = at(16)});
  EXPECT_EQ(only().sent, 0u);
  EXPECT_EQ(only().waiting, 1u);
  complete({.id = RequestId(3), .refusal = Refusal::kExpired, .finished = at(20)});
  EXPECT_EQ(only().waiting, 0u);
  EXPECT_EQ(only().arrivals, 3u);
  for (const Refusal refusal : {Refusal::kNone, Refusal::kLate, Refusal::kExpired}) {
    EXPECT_EQ(only().outcomes[static_cast<size_t>(refusal)], 1u);
    EXPECT_EQ(monitor_.outcomes()[static_cast<size_t>(refusal)], 1u);
  }
  EXPECT_EQ(monitor_.devices()[0].actions, 0u);
}

TEST_F(MonitorTest, RowsOfARefusedActionWaitAgain) {
  request(1);
  over(send(1, ActionType::kInfer, 5, {1}), 7, 7, OutcomeStatus::kTooLate);
  EXPECT_EQ(only().waiting, 1u);
  EXPECT_EQ(only().sent, 0u);
}

TEST_F(MonitorTest, ActionsHaveWhatWasExpectedAndWhatWasMeasured) {
  const Action first = send(1, ActionType::kInfer, 5, {1, 2}, {1, 1});
  const Action second = send(2, ActionType::kInfer, 6, {3}, {1, 1});
  over(first, 6, 17);
  over(second, 17, 26, OutcomeStatus::kFailed);
  const MonitorAction sent = action_at(1), done = action_at(2), failed = action_at(3);
  EXPECT_FALSE(sent.over);
  EXPECT_EQ(sent.sent, at(6));
  EXPECT_EQ(sent.expected_begin, at(15));  // behind the first
  EXPECT_EQ(sent.expected, ms(10));
  EXPECT_TRUE(sent.begin.is_infinite());
  EXPECT_TRUE(done.over);
  EXPECT_STREQ(done.model, "m");
  EXPECT_EQ(done.expected_begin, at(5));
  EXPECT_EQ(done.begin, at(6));
  EXPECT_EQ(done.end, at(17));
  EXPECT_EQ(done.lane, 1u);
  EXPECT_EQ(done.lanes, 1u);
  EXPECT_EQ(done.batch_size, 4u);
  EXPECT_EQ(done.rows, 2u);
  EXPECT_EQ(failed.status, OutcomeStatus::kFailed);
  EXPECT_EQ(failed.expected_begin, at(15));
}

// 8192 actions later, its place has another one.
TEST_F(MonitorTest, OfTooManyActionsTheOldestHaveNoExpectation) {
  const Action first = send(1, ActionType::kInfer, 5, {1});
  send(8193, ActionType::kInfer, 6, {2});
  over(first, 6, 16);
  EXPECT_TRUE(action_at(2).expected_begin.is_infinite());
  EXPECT_TRUE(action_at(2).sent.is_infinite());
  EXPECT_EQ(action_at(2).begin, at(6));
}

TEST_F(MonitorTest, ARequestHasItsReasonAndItsTimes) {
  complete({.id = RequestId(9),
            .refusal = Refusal::kUnmeetable,
            .arrival = at(1),
            .deadline = at(3),
            .finished = at(2),
            .earliest_completion = at(8)});
  complete({.id = RequestId(10),
            .arrival = at(1),
            .deadline = TimePoint::infinite_future(),
            .finished = at(20),
            .batch_size = 4,
            .exec_start = at(5),
            .exec_duration = ms(10),
            .action = ActionId(77)});
  const auto refused = std::get<MonitorRequest>(monitor_.events().read(0).value());
  EXPECT_EQ(refused.id, RequestId(9));
  EXPECT_EQ(refused.refusal, Refusal::kUnmeetable);
  EXPECT_EQ(refused.deadline, at(3));
  EXPECT_EQ(refused.earliest_completion, at(8));
  EXPECT_EQ(refused.batch_size, 0u);
  const auto served = std::get<MonitorRequest>(monitor_.events().read(1).value());
  EXPECT_EQ(served.exec_begin, at(5));
  EXPECT_EQ(served.exec, ms(10));
  EXPECT_EQ(served.action, ActionId(77));
  EXPECT_TRUE(served.earliest_completion.is_infinite());
}

TEST_F(MonitorTest, CopiesComeAndGo) {
  over(send(1, ActionType::kLoad, 1), 1, 5);
  EXPECT_EQ(only().copies, 1u);
  EXPECT_EQ(only().holders, 1u) << "bit 0";
  EXPECT_EQ(only().pages, 7u);
  EXPECT_EQ(monitor_.devices()[0].residents, 1u);
  over(send(2, ActionType::kUnload, 6), 6, 6, OutcomeStatus::kBusy);
  EXPECT_EQ(only().copies, 1u);
  over(send(3, ActionType::kUnload, 7), 7, 7);
  EXPECT_EQ(monitor_.devices()[0].residents, 0u);
  EXPECT_TRUE(monitor_.models().empty());
}

TEST_F(MonitorTest, ALostDeviceHoldsNothingAndALeftOneIsNotListed) {
  join({ModelId(3)});
  EXPECT_EQ(only().copies, 1u);
  monitor_.on_device({.device = DeviceId(0), .state = DeviceState::kLost, .trouble = DeviceTrouble::kLink}, at(30));
  EXPECT_TRUE(monitor_.models().empty());
  ASSERT_EQ(monitor_.devices().size(), 1u);
  EXPECT_EQ(monitor_.devices()[0].state, DeviceState::kLost);
  EXPECT_EQ(monitor_.devices()[0].trouble, DeviceTrouble::kLink);
  EXPECT_EQ(monitor_.devices()[0].since, at(30));
  monitor_.on_device({.device = DeviceId(0), .state = DeviceState::kLost, .trouble = DeviceTrouble::kLeft}, at(31));
  EXPECT_TRUE(monitor_.devices().empty());
}

TEST_F(MonitorTest, VersionsOfOneNameAreOneModel) {
  model(ModelId(4), "m");
  request(1);
  monitor_.on_request({.id = RequestId(2), .model = ModelId(4)}, at(0));
  EXPECT_EQ(only().arrivals, 2u);
}

// As a client may name any.
TEST_F(MonitorTest, ModelsBeyondTheTableCountInTheTotals) {
  const ModelId far(PublishedTable<int>::kSizeMax);
  model(far, "far");
  monitor_.on_request({.id = RequestId(1), .model = far}, at(0));
  monitor_.on_completion({.id = RequestId(1), .model = far, .refusal = Refusal::kUnloaded}, at(1));
  EXPECT_TRUE(monitor_.models().empty());
  EXPECT_EQ(monitor_.outcomes()[static_cast<size_t>(Refusal::kUnloaded)], 1u);
}

}  // namespace
}  // namespace foliot
