#include "control/policies/foliot/foliot_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "control/controller/rolling_duration_model.h"
#include "control/policies/common/policy_stage.h"

namespace foliot::foliot_policy {
namespace {

PolicyStage make_stage(uint32_t devices = 1, uint32_t pages_per_device = 8) {
  return PolicyStage([](const Cluster& cluster) { return make_foliot_policy(cluster); }, devices, pages_per_device);
}

std::vector<Action> of_type(const std::vector<Action>& actions, ActionType type) {
  std::vector<Action> found;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(found),
               [&](const Action& action) { return action.type == type; });
  return found;
}

// Counts how often it is asked.
class CountingDurationModel final : public DurationModel {
 public:
  explicit CountingDurationModel(uint64_t& asked) : asked_(asked) {}
  void add_device(KindId kind) override { durations_.add_device(kind); }
  void set_lane_count(DeviceId device, uint32_t lane_count) override { durations_.set_lane_count(device, lane_count); }
  void forget_device(DeviceId device) override { durations_.forget_device(device); }
  void add_model(const ModelInfo& model, std::span<const KindId> kinds) override { durations_.add_model(model, kinds); }
  void extend_model(const ModelInfo& model, std::span<const KindId> kinds) override {
    durations_.extend_model(model, kinds);
  }
  Duration load(DeviceId device, ModelId model) const override { return ++asked_, durations_.load(device, model); }
  Duration exec(const ExecShape& shape) const override { return ++asked_, durations_.exec(shape); }
  std::span<const Duration> execs(DeviceId device, ModelId model, BucketId bucket,
                                  uint32_t width_index) const override {
    return ++asked_, durations_.execs(device, model, bucket, width_index);
  }
  uint64_t revision() const override { return durations_.revision(); }
  uint64_t revision(ModelId model) const override { return durations_.revision(model); }
  void record_load(DeviceId device, ModelId model, Duration measured) override {
    durations_.record_load(device, model, measured);
  }
  void record_exec(const ExecShape& shape, Duration measured) override { durations_.record_exec(shape, measured); }
  void doubt(ModelId model, BucketId bucket, TimePoint now) override { durations_.doubt(model, bucket, now); }

 private:
  RollingDurationModel durations_;
  uint64_t& asked_;
};

// ---- What one turn costs ----

// The most that one of the turns after the first asks for durations, while so many models wait, some of
// them loaded on a few devices each and the others nowhere.
uint64_t most_asked_in_a_turn(uint32_t models) {
  constexpr uint32_t kDevices = 20;
  uint64_t asked = 0;
  PolicyStage stage([](const Cluster& cluster) { return make_foliot_policy(cluster); }, kDevices, models / 20,
                    std::make_unique<CountingDurationModel>(asked));
  for (uint32_t i = 0; i < models; ++i) {
    const ModelId model = i % 2 == 0 ? stage.add_model({}) : stage.add_model({i % kDevices, (i + 7) % kDevices});
    stage.request(model, 0, 100);
  }
  stage.plan(0);  // all that waits on a device is looked at once
  uint64_t most = 0;
  for (int turn = 1; turn < 200; ++turn) {
    asked = 0;
    stage.plan(turn * 0.1);
    most = std::max(most, asked);
  }
  return most;
}

TEST(FoliotPolicyTest, ATurnLooksAtSoManyModelsAtMostHoweverManyWait) {
  EXPECT_LT(most_asked_in_a_turn(12'000), 2 * most_asked_in_a_turn(3000));
}

// ---- Batches ----

TEST(FoliotPolicyTest, TheEarliestDeadlineGoesFirstWhenAllCanBeMet) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  stage.request(a, 0, 60);
  stage.request(a, 0, 60);
  const RequestId urgent = stage.request(b, 0, 30);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{urgent});
}

// One row takes 2 ms, four take 5: after either the other would be late.
TEST(FoliotPolicyTest, WhenNotAllCanBeMetTimeGoesToTheLargestBatch) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  stage.request(a, 0, 3);
  for (int i = 0; i < 4; ++i) stage.request(b, 0, 6);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, b);
  EXPECT_EQ(sent[0].rows.size(), 4u);
}

// Four rows take 5 ms, one takes 2.
TEST(FoliotPolicyTest, ManyThatCanWaitDoNotHideOneThatCannot) {
  PolicyStage stage = make_stage();
  const ModelId model = stage.add_model();
  for (int i = 0; i < 500; ++i) stage.request(model, 0, 3'600'000);
  const RequestId urgent = stage.request(model, 0, 4);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{urgent});
}

// The first device is too far away for any of them, or for those that have waited.
TEST(FoliotPolicyTest, ADeviceThatIsTooFarAwayDoesNotHideOneThatIsNear) {
  for (const double delivery : {95.0, 60.0}) {
    PolicyStage stage = make_stage(2);
    const ModelId model = stage.add_model({0, 1});
    stage.set_delivery(0, delivery);
    const RequestId waited = stage.request(model, 0, 50);
    stage.request(model, 0, 90);
    const auto sent = stage.plan(0);
    ASSERT_FALSE(sent.empty()) << delivery;
    EXPECT_EQ(sent[0].device, DeviceId(1)) << delivery;
    EXPECT_EQ(PolicyStage::rows(sent[0])[0], waited) << delivery;
  }
}

// Four rows take 5 ms, and one without a deadline 2: those wait for it while they have twice
// their time, since what is predicted of many may be wrong by much.
TEST(FoliotPolicyTest, RequestsWaitForOneWithoutADeadlineWhileTheyHaveTimeToSpare) {
  for (const double due : {14.0, 40.0}) {
    PolicyStage stage = make_stage();
    const ModelId urgent = stage.add_model();
    const ModelId patient = stage.add_model();
    for (int i = 0; i < 4; ++i) stage.request(urgent, 0, due);
    stage.request(patient, 0, -1);
    const auto sent = stage.plan(0);
    ASSERT_FALSE(sent.empty()) << due;
    EXPECT_EQ(sent[0].model, due < 20 ? urgent : patient) << due;
  }
}

TEST(FoliotPolicyTest, WeightDecidesWhatIsRefused) {
  TestDispatcher dispatcher(1, 8);
  // A heavier model of the same kind wins against four rows of the other.
  ModelInfo heavy = dispatcher.add_model(0, 1);
  heavy.weight = 10;
  const ModelInfo& light = dispatcher.add_model(1, 1);
  const auto policy = make_foliot_policy(dispatcher.cluster());
  policy->on_model_added(heavy, TimePoint());
  policy->on_model_added(light, TimePoint());
  for (const ModelId model : {heavy.id, light.id}) {
    dispatcher.load(DeviceId(0), model, {});
    const Action action = dispatcher.finish();
    policy->on_outcome(action, {.action = action.id, .type = action.type, .device = action.device, .model = model},
                       TimePoint());
  }
  dispatcher.actions.clear();
  const auto request = [&](uint64_t id, ModelId model, double deadline) {
    policy->on_request({.id = RequestId(id), .model = model, .deadline = PolicyStage::at(deadline)}, TimePoint());
  };
  request(1, heavy.id, 3);
  for (uint64_t id = 2; id <= 5; ++id) request(id, light.id, 6);
  policy->plan(TimePoint(), dispatcher);
  ASSERT_EQ(dispatcher.actions.size(), 1u);
  EXPECT_EQ(dispatcher.actions[0].model, heavy.id);
}

// Four rows take 5 ms. Those of 31 models fit before 200 ms, and those of 63 do not, of which only
// some are weighed against each other.
TEST(FoliotPolicyTest, WhatIsNotWeighedTakesItsTimeToo) {
  for (const int models : {31, 63}) {
    PolicyStage stage = make_stage(1, 64);
    const ModelId single = stage.add_model();
    stage.request(single, 0, 190);
    for (int i = 0; i < models; ++i) {
      const ModelId model = stage.add_model();
      for (int row = 0; row < 4; ++row) stage.request(model, 0, 200);
    }
    const auto sent = of_type(stage.plan(0), ActionType::kInfer);
    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(sent[0].model == single, models == 31) << models << " full batches";
  }
}

// Twelve rows of as many models do not all fit before 20 ms. More of the busy model will come.
TEST(FoliotPolicyTest, WhenNotAllCanBeMetWhatMayGrowWaits) {
  PolicyStage stage = make_stage(1, 16);
  const ModelId busy = stage.add_model();
  double now = 0;
  for (; now < 2000; now += 10) {
    stage.request(busy, now, now + 20);
    for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
  }
  for (int i = 0; i < 2; ++i) stage.request(busy, now - 1, now + 19);
  for (int i = 0; i < 12; ++i) stage.request(stage.add_model(), now, now + 20);
  const auto sent = of_type(stage.plan(now), ActionType::kInfer);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_NE(sent[0].model, busy);
}

// The head has no time for a batch of four; the four behind it have.
TEST(FoliotPolicyTest, ALateHeadDoesNotKeepABatchSmall) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const RequestId head = stage.request(a, 0, 3);
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 6);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rows.size(), 4u);
  const std::vector<RequestId> rows = PolicyStage::rows(sent[0]);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), head), 0);
}

// There is time for one batch of four, or of two where that is the denser.
TEST(FoliotPolicyTest, OfEqualDeadlinesTheFirstToArriveAreServed) {
  for (const int requests : {5, 6, 8, 20}) {
    for (const bool denser_by_two : {false, true}) {
      PolicyStage stage = make_stage();
      const ModelId a = stage.add_model();
      if (denser_by_two) stage.set_exec(a, Duration::from_milliseconds(2.2), 1);
      std::vector<RequestId> waiting;
      for (int i = 0; i < requests; ++i) waiting.push_back(stage.request(a, 0.01 * i, 6));
      const auto sent = stage.plan(0.3);
      ASSERT_EQ(sent.size(), 1u);
      waiting.resize(sent[0].rows.size());
      EXPECT_EQ(PolicyStage::rows(sent[0]), waiting) << requests << ' ' << denser_by_two;
    }
  }
}

TEST(FoliotPolicyTest, ABatchIsNotFilledWhereThatServesThemFaster) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  stage.set_exec(a, Duration::milliseconds(4), 1);  // of two rows; four take 5 ms
  for (int i = 0; i < 3; ++i) stage.request(a, 0, 50);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].batch_size, 4u);
  EXPECT_EQ(sent[0].rows.size(), 3u);
}

// One row takes 2 ms, two take 4.5 and four take 10.
TEST(FoliotPolicyTest, NoBatchIsCutWhoseRowsWouldBeServedFasterInSmallerOnes) {
  PolicyStage stage = make_stage();
  const ModelId model = stage.add_model();
  stage.set_exec(model, Duration::microseconds(4500), 1);
  stage.set_exec(model, Duration::milliseconds(10), 2);
  const RequestId first = stage.request(model, 0, 100);
  for (int i = 1; i < 8; ++i) stage.request(model, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent[0].batch_size, 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{first});
}

// One row takes 2 ms, two take 5 and four take 7: three rows take 6 ms one by one.
TEST(FoliotPolicyTest, ABatchThatIsNotFullIsComparedWithSizesThatAreOfUse) {
  PolicyStage stage = make_stage();
  const ModelId model = stage.add_model();
  stage.set_exec(model, Duration::milliseconds(5), 1);
  stage.set_exec(model, Duration::milliseconds(7), 2);
  for (int i = 0; i < 3; ++i) stage.request(model, 0, 100);
  const auto three = stage.plan(0);
  ASSERT_FALSE(three.empty());
  EXPECT_EQ(three[0].batch_size, 1u);
  stage.finish(three[0], 2, Duration::milliseconds(2));
  for (int i = 0; i < 2; ++i) stage.request(model, 2, 100);
  const auto four = stage.plan(2);
  ASSERT_FALSE(four.empty());
  EXPECT_EQ(four[0].batch_size, 4u);
}

TEST(FoliotPolicyTest, BestEffortFillsWhatWouldBePadding) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  stage.set_exec(a, Duration::milliseconds(4), 1);
  for (int i = 0; i < 3; ++i) stage.request(a, 0, 6);
  const RequestId filler = stage.request(a, 0, -1);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]).back(), filler);
}

// That the larger size was measured to be faster may be noise, and its kernels may round otherwise.
TEST(FoliotPolicyTest, BestEffortTakesNoLargerSizeForPaddingAlone) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  for (uint32_t size = 0; size < 3; ++size) stage.set_exec(a, Duration::milliseconds(4 - size), size);
  stage.request(a, 0, -1);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].batch_size, 1u);
}

// A row takes 10 us, its way 50 us: a second one that is sent ahead is one that a third cannot join.
TEST(FoliotPolicyTest, BestEffortOfShortExecsIsNotSentAhead) {
  for (const bool is_short : {true, false}) {
    PolicyStage stage = make_stage();
    stage.measure_ways();
    const ModelId a = stage.add_model();
    for (uint32_t size = 0; size < 3; ++size) stage.set_exec(a, Duration::microseconds(is_short ? 10 : 100), size);
    stage.request(a, 0, -1);
    const auto first = stage.plan(0);
    ASSERT_EQ(first.size(), 1u);
    stage.request(a, 0.01, -1);
    ASSERT_EQ(stage.plan(0.01).size(), is_short ? 0u : 1u);
    if (!is_short) continue;
    stage.request(a, 0.02, -1);
    EXPECT_TRUE(stage.plan(0.02).empty());
    stage.finish(first[0], 0.1, Duration::microseconds(10));
    const auto joined = stage.plan(0.1);
    ASSERT_FALSE(joined.empty());
    EXPECT_EQ(joined[0].batch_size, 2u);
  }
}

// Its model has requests with deadlines outstanding all the time, or another one runs for long: it does not wait for
// them.
TEST(FoliotPolicyTest, BestEffortOfShortExecsWaitsForAFewWaysAtMost) {
  PolicyStage stage = make_stage();
  stage.measure_ways();
  const ModelId a = stage.add_model();
  for (uint32_t size = 0; size < 3; ++size) stage.set_exec(a, Duration::microseconds(10), size);
  stage.request(a, 0, 20);
  ASSERT_EQ(stage.plan(0).size(), 1u);
  stage.request(a, 0.01, -1);
  EXPECT_TRUE(stage.plan(0.01).empty());
  ASSERT_LE(stage.wake(), 3);
  EXPECT_EQ(stage.plan(3).size(), 1u) << "no outcome has come";
}

TEST(FoliotPolicyTest, AFullBatchOfBestEffortIsSentAhead) {
  PolicyStage stage = make_stage();
  stage.measure_ways();
  const ModelId a = stage.add_model();
  for (uint32_t size = 0; size < 3; ++size) stage.set_exec(a, Duration::microseconds(10), size);
  stage.request(a, 0, -1);
  ASSERT_EQ(stage.plan(0).size(), 1u);
  for (int i = 0; i < 4; ++i) stage.request(a, 0.01, -1);
  const auto full = stage.plan(0.01);
  ASSERT_EQ(full.size(), 1u);
  EXPECT_EQ(full[0].batch_size, 4u);
}

TEST(FoliotPolicyTest, BestEffortRunsOnlyWhereNothingHasToWaitForIt) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  stage.request(b, 0, -1);
  stage.request(a, 0, 3.5);  // 2 ms of EXEC: best effort would take its time
  auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, a);
  stage.finish(sent[0], 2, Duration::milliseconds(2));
  sent = stage.plan(2);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, b);
}

// Four rows without a deadline take 5 ms, which leaves none of the 6 ms that a request
// with one has; but of four devices the others have time for it.
TEST(FoliotPolicyTest, BestEffortRunsInFullBatchesWhereOtherDevicesStayQuick) {
  for (const uint32_t devices : {1u, 4u}) {
    PolicyStage stage = make_stage(devices);
    const std::vector<uint32_t> all = devices == 1 ? std::vector{0u} : std::vector{0u, 1u, 2u, 3u};
    const ModelId sensitive = stage.add_model(all);
    const ModelId batch = stage.add_model(all);
    for (double now = 0; now < 500; now += 10) {
      stage.request(sensitive, now, now + 6);
      for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
    }
    for (int i = 0; i < 32; ++i) stage.request(batch, 500, -1);
    size_t full = 0;
    for (const Action& action : stage.plan(500)) full += action.batch_size == 4 ? 1 : 0;
    if (devices == 1) {
      EXPECT_EQ(full, 0u);
    } else {
      EXPECT_GE(full, 1u);
      EXPECT_LT(full, devices);
    }
  }
}

// A request that finds this device busy with four rows, for 5 ms, is met by the other, if that is free.
TEST(FoliotPolicyTest, BestEffortRunsInSmallBatchesWhileTheOtherDevicesAreBusy) {
  for (const bool busy : {false, true}) {
    PolicyStage stage = make_stage(2);
    const ModelId sensitive = stage.add_model({0, 1});
    const ModelId batch = stage.add_model({0});
    const ModelId slow = stage.add_model({1});
    for (uint32_t size = 0; size < 3; ++size) stage.set_exec(slow, Duration::milliseconds(40), size);
    for (double now = 0; now < 500; now += 10) {
      stage.request(sensitive, now, now + 6);
      for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
    }
    if (busy) {
      stage.request(slow, 500, -1);
      ASSERT_EQ(stage.plan(500).size(), 1u);
    }
    for (int i = 0; i < 8; ++i) stage.request(batch, 500, -1);
    const auto sent = stage.plan(500);
    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(sent[0].model, batch);
    EXPECT_EQ(sent[0].batch_size, busy ? 2u : 4u);
  }
}

// The request could not wait for the 5 ms of best effort here; another device is free.
TEST(FoliotPolicyTest, BestEffortGoesFirstWhereAnotherDeviceCanServeWhatWaits) {
  PolicyStage stage = make_stage(2);
  const ModelId a = stage.add_model({0, 1});
  const ModelId b = stage.add_model({0});
  const RequestId urgent = stage.request(a, 0, 7);
  for (int i = 0; i < 4; ++i) stage.request(b, 0, -1);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].model, b);
  EXPECT_EQ(sent[1].device, DeviceId(1));
  EXPECT_EQ(PolicyStage::rows(sent[1]), std::vector{urgent});
}

TEST(FoliotPolicyTest, ADeviceIsNotCommittedFurtherThanItsLookahead) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  for (int i = 0; i < 8; ++i) stage.request(a, 0, 50);
  ASSERT_EQ(stage.plan(0).size(), 1u);
  EXPECT_DOUBLE_EQ(stage.wake(), 4);  // four rows take 5 ms, and 1 ms is looked ahead
  EXPECT_TRUE(stage.plan(3.9).empty());
  EXPECT_EQ(stage.plan(4).size(), 1u);
}

TEST(FoliotPolicyTest, WhatFewDevicesCanDoLeavesTheOthersFree) {
  PolicyStage stage = make_stage(3);
  const ModelId a = stage.add_model({0, 1, 2});
  for (double t = 0; t < 40; t += 10) {
    stage.request(a, t, t + 50);
    const auto sent = stage.plan(t);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].device, DeviceId(0));
    stage.finish(sent[0], t + 2, Duration::milliseconds(2));
  }
}

TEST(FoliotPolicyTest, ConsolidatingLeavesADeviceIdleUntilARequestWouldBeLate) {
  PolicyStage stage([](const Cluster& cluster) { return make_foliot_policy(cluster, {.consolidate = true}); }, 2);
  const ModelId a = stage.add_model({0, 1});
  const ModelId b = stage.add_model({0, 1});
  stage.request(a, 0, 50);
  ASSERT_EQ(stage.plan(0).size(), 1u);  // on the one device of the pool; the other could take more
  stage.set_exec(a, Duration::milliseconds(40));
  stage.request(a, 0, 100);
  ASSERT_TRUE(stage.plan(0).empty());
  const RequestId urgent = stage.request(b, 0, 5);
  EXPECT_TRUE(stage.plan(0).empty());
  const auto sent = stage.plan(stage.wake());
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{urgent});
}

// ---- What is held back ----

// Requests with 6 ms every 5 ms beside a model whose EXEC takes 16 to 20 ms, which has got
// `long_every` ms apart one with 1 s.
class LongBesideTight {
 public:
  explicit LongBesideTight(double long_every) {
    for (uint32_t i = 0; i < 3; ++i) stage.set_exec(slow, Duration::milliseconds(16 + 2 * i), i);
    double next_slow = 0;
    for (; now < 2000; now += 5) {
      stage.request(tight, now, now + 6);
      finish(stage.plan(now));
      if (now < next_slow) continue;
      next_slow += long_every;
      stage.request(slow, now + 2.5, now + 1002.5);
      finish(stage.plan(now + 2.5));
    }
  }
  // The sizes of batches of the slow model.
  std::vector<uint32_t> batches;

 private:
  void finish(const std::vector<Action>& sent) {
    for (const Action& action : sent) {
      if (action.model == slow) batches.push_back(action.batch_size);
      stage.finish(action, now + 2, action.model == slow ? Duration::milliseconds(20) : Duration::milliseconds(2));
    }
  }
  PolicyStage stage = make_stage();
  ModelId slow = stage.add_model();
  ModelId tight = stage.add_model();
  double now = 0;
};

// Each EXEC of the slow model makes three or four requests late, so it should serve four.
TEST(FoliotPolicyTest, ALongBatchIsHeldBackUntilItIsFull) {
  const LongBesideTight run(50);
  ASSERT_GT(run.batches.size(), 5u);
  // The first three are sent before rates are known.
  EXPECT_TRUE(std::all_of(run.batches.begin() + 3, run.batches.end(), [](uint32_t size) { return size == 4; }));
}

// A model of 20 ms with 50 ms, from 500 ms on, beside requests with 6 ms every 4 ms, of which it makes some late;
// whether it is run after 1 s.
bool runs_slow(double slow_every) {
  PolicyStage stage = make_stage();
  const ModelId slow = stage.add_model();
  const ModelId tight = stage.add_model();
  for (uint32_t i = 0; i < 3; ++i) stage.set_exec(slow, Duration::milliseconds(20 * (i + 1)), i);
  double next_slow = 500;
  bool runs = false;
  const auto plan = [&](double now) {
    for (const Action& action : stage.plan(now)) {
      runs |= action.model == slow && now > 1000;
      stage.finish(action, now + 1.9, Duration::milliseconds(action.model == slow ? 20 : 2));
    }
  };
  for (double now = 0; now < 2000; now += 4) {
    stage.request(tight, now, now + 6);
    for (; next_slow <= now; next_slow += slow_every) stage.request(slow, now, now + 50);
    plan(now);
    plan(now + 2);
  }
  return runs;
}

TEST(FoliotPolicyTest, ABatchOfAModelWithinItsShareIsRunThoughItMakesMoreLateThanItServes) {
  EXPECT_TRUE(runs_slow(200));
}

TEST(FoliotPolicyTest, ABatchOfAModelBeyondItsShareIsNotRunIfItMakesMoreLateThanItServes) {
  EXPECT_FALSE(runs_slow(10));
}

// One row takes hardly longer than tight requests can wait, and makes fewer late than a quarter
// of four; but where rows have waited for long, the device has to serve more of them.
TEST(FoliotPolicyTest, RowsThatMakeFewLateAloneShareABatchOnlyWhenTheyHaveWaited) {
  for (const double waited : {0.0, 300.0}) {
    PolicyStage stage = make_stage();
    const ModelId slow = stage.add_model();
    const ModelId tight = stage.add_model();
    const double execs[] = {5, 7, 10};
    for (uint32_t i = 0; i < 3; ++i) stage.set_exec(slow, Duration::from_milliseconds(execs[i]), i);
    double now = 0;
    for (; now < 2000; now += 20) {
      stage.request(tight, now, now + 6);
      for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
    }
    for (int i = 0; i < 4; ++i) stage.request(slow, now - waited, now - waited + 500);
    const std::vector<Action> sent = of_type(stage.plan(now), ActionType::kInfer);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].batch_size, waited > 0 ? 4u : 1u);
  }
}

TEST(FoliotPolicyTest, NothingIsHeldBackWhereDeadlinesAreLongerThanEveryExec) {
  PolicyStage stage = make_stage();
  const ModelId slow = stage.add_model();
  const ModelId other = stage.add_model();
  stage.set_exec(slow, Duration::milliseconds(20));
  double now = 0;
  for (; now < 500; now += 5) {
    stage.request(other, now, now + 100);
    for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
  }
  stage.request(slow, now, now + 1000);
  EXPECT_EQ(of_type(stage.plan(now), ActionType::kInfer).size(), 1u);
}

// Others of its kind came every 20 ms, and would make fewer late in one batch with it; none
// comes.
TEST(FoliotPolicyTest, WhatIsHeldBackIsRunInTime) {
  PolicyStage stage = make_stage();
  const ModelId slow = stage.add_model();
  const ModelId tight = stage.add_model();
  for (uint32_t i = 0; i < 3; ++i) stage.set_exec(slow, Duration::milliseconds(16 + 2 * i), i);
  double now = 0;
  for (; now < 2200; now += 20) {
    stage.request(tight, now, now + 6);
    if (now < 2000) stage.request(slow, now, now + 100);
    for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
  }
  stage.request(slow, now, now + 100);
  std::vector<Action> sent = stage.plan(now);
  EXPECT_TRUE(sent.empty());
  for (int turns = 0; sent.empty() && turns < 100; ++turns) {
    now = stage.wake();
    ASSERT_LT(now, 2300);
    sent = of_type(stage.plan(now), ActionType::kInfer);
  }
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(stage.refused().empty());
}

// ---- LOADs ----

TEST(FoliotPolicyTest, LoadsWhatSavesTheMostRequests) {
  PolicyStage stage = make_stage();
  const ModelId busy = stage.add_model({});
  const ModelId few = stage.add_model({});
  const ModelId many = stage.add_model({});
  stage.request(busy, 0, 100);
  ASSERT_EQ(of_type(stage.plan(0), ActionType::kLoad).size(), 1u);  // the executor is busy for 8 ms
  stage.request(few, 1, 101);
  for (int i = 0; i < 4; ++i) stage.request(many, 1, 101);
  EXPECT_TRUE(stage.plan(1).empty());
  const auto sent = of_type(stage.plan(6.5), ActionType::kLoad);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, many);
}

// One device is left for both, so it loads the one that more requests wait for.
TEST(FoliotPolicyTest, ADeviceThatIsDownIsNotCountedAsFreeForALoad) {
  PolicyStage stage = make_stage(2);
  stage.plan(0);
  stage.suspect(1, 1);
  const ModelId few = stage.add_model({});
  const ModelId many = stage.add_model({});
  stage.request(few, 1, 101);
  for (int i = 0; i < 4; ++i) stage.request(many, 1, 101);
  const auto sent = of_type(stage.plan(1), ActionType::kLoad);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, many);
  EXPECT_EQ(sent[0].device, DeviceId(0));
}

TEST(FoliotPolicyTest, EvictsWhatIsAskedForTheLeast) {
  PolicyStage stage = make_stage(1, 2);
  const ModelId rare = stage.add_model();
  const ModelId often = stage.add_model();
  const ModelId cold = stage.add_model({});
  double now = 0;
  for (; now < 2000; now += 20) {
    stage.request(now == 0 ? rare : often, now, now + 30);
    for (const Action& action : of_type(stage.plan(now), ActionType::kInfer)) {
      stage.finish(action, now + 2, Duration::milliseconds(2));
    }
  }
  stage.request(cold, now, now + 30);
  const auto sent = stage.plan(now);
  const auto unloads = of_type(sent, ActionType::kUnload);
  ASSERT_EQ(unloads.size(), 1u);
  EXPECT_EQ(unloads[0].model, rare);
  ASSERT_EQ(of_type(sent, ActionType::kLoad).size(), 1u);
}

// Of models that are asked for alike, the one whose requests can wait for a LOAD goes.
TEST(FoliotPolicyTest, EvictsWhatCanBeLoadedAgainInTime) {
  for (const bool patient_first : {true, false}) {
    PolicyStage stage = make_stage(1, 2);
    const ModelId first = stage.add_model();
    const ModelId second = stage.add_model();
    const ModelId cold = stage.add_model({});
    double now = 0;
    for (; now < 2000; now += 20) {
      stage.request(first, now, now + (patient_first ? 500 : 30));
      stage.request(second, now, now + (patient_first ? 30 : 500));
      for (int batch = 0; batch < 2; ++batch) {
        for (const Action& action : of_type(stage.plan(now + 2 * batch), ActionType::kInfer)) {
          stage.finish(action, now + 2 * batch + 2, Duration::milliseconds(2));
        }
      }
    }
    stage.request(cold, now, now + 30);
    const auto unloads = of_type(stage.plan(now), ActionType::kUnload);
    ASSERT_EQ(unloads.size(), 1u);
    EXPECT_EQ(unloads[0].model, patient_first ? first : second);
  }
}

// The copy of a model that another device can serve goes before the only one of a model that is asked for less often.
TEST(FoliotPolicyTest, EvictsASpareCopyFirst) {
  PolicyStage stage = make_stage(2, 2);
  const ModelId twice = stage.add_model({0, 1});
  const ModelId first = stage.add_model({0});
  const ModelId second = stage.add_model({1});
  const ModelId cold = stage.add_model({});
  double now = 0;
  for (; now < 2000; now += 20) {
    stage.request(twice, now, now + 30);
    if (static_cast<int>(now) % 60 == 0) {
      stage.request(first, now, now + 30);
      stage.request(second, now, now + 30);
    }
    for (const Action& action : of_type(stage.plan(now), ActionType::kInfer)) {
      stage.finish(action, now + 2, Duration::milliseconds(2));
    }
  }
  now -= 10;  // the others are next asked for 10 and 50 ms from here
  stage.request(cold, now, now + 30);
  const auto unloads = of_type(stage.plan(now), ActionType::kUnload);
  ASSERT_EQ(unloads.size(), 1u);
  EXPECT_EQ(unloads[0].model, twice);
}

// Fifty requests without a deadline would hold the only page for longer than the other model's requests can wait; one
// would not, nor fifty once the other model is not asked for any more. None waits for ever.
TEST(FoliotPolicyTest, WhatWaitsWithoutADeadlineEvictsNothingThatWouldMissOne) {
  struct Case {
    int requests;
    double pause;
    size_t unloads;
  };
  for (const Case& each : {Case{50, 0, 0}, Case{1, 0, 1}, Case{50, 1'000'000, 1}}) {
    PolicyStage stage = make_stage(1, 1);
    const ModelId urgent = stage.add_model();
    const ModelId patient = stage.add_model({});
    double now = 0;
    for (; now < 2000; now += 20) {
      stage.request(urgent, now, now + 40);
      for (const Action& action : of_type(stage.plan(now), ActionType::kInfer)) {
        stage.finish(action, now + 2, Duration::milliseconds(2));
      }
    }
    now += each.pause;
    for (int i = 0; i < each.requests; ++i) stage.request(patient, now, -1);
    EXPECT_EQ(of_type(stage.plan(now), ActionType::kUnload).size(), each.unloads) << each.requests << " " << each.pause;
    if (each.unloads > 0) continue;
    const double asked = now;
    for (bool evicted = false; !evicted && now < asked + 20'000;) {
      now += 20;
      stage.request(urgent, now, now + 40);
      for (const Action& action : of_type(stage.plan(now), ActionType::kInfer)) {
        stage.finish(action, now + 2, Duration::milliseconds(2));
      }
      evicted = !of_type(stage.plan(now + 3), ActionType::kUnload).empty();
    }
    EXPECT_NEAR(now - asked, 10'000, 200);
  }
}

TEST(FoliotPolicyTest, RefusesAtOnceWhatCannotBeLoadedInTime) {
  PolicyStage stage = make_stage(1, 1);
  stage.add_model();
  const ModelId cold = stage.add_model({});
  const RequestId hopeless = stage.request(cold, 0, 9);  // LOAD 8 ms, EXEC 2 ms
  stage.plan(0);
  EXPECT_EQ(stage.refused(), std::vector{hopeless});
}

// A model that can never be served cold is fetched once it is asked for.
TEST(FoliotPolicyTest, FetchesBeforehandWhatCannotBeServedCold) {
  PolicyStage stage = make_stage(1, 1);
  stage.add_model();  // never asked for
  const ModelId cold = stage.add_model({});
  for (double now = 0; now < 20; now += 4) {
    stage.request(cold, now, now + 9);
    if (!of_type(stage.plan(now), ActionType::kLoad).empty()) return;
  }
  FAIL() << "it was never loaded";
}

// Four models asked for in turns, once each second, of which three fit: what was asked for
// last is asked for again last, and what comes next is there before its request.
TEST(FoliotPolicyTest, WhatIsPeriodicIsLoadedAheadAndTheLastInTurnIsEvicted) {
  PolicyStage stage = make_stage(1, 3);
  std::vector<ModelId> models;
  for (int i = 0; i < 4; ++i) models.push_back(stage.add_model({}));
  BitSet loaded;
  size_t cold = 0;
  const auto run = [&](double now) {
    for (const Action& action : stage.plan(now)) {
      if (action.type == ActionType::kUnload) loaded.erase(action.model.value());
      if (action.type == ActionType::kLoad) loaded.insert(action.model.value());
      if (action.type != ActionType::kUnload) stage.finish(action, now + 8, Duration::milliseconds(8));
    }
  };
  for (int tick = 0; tick < 80; ++tick) {
    const double now = tick * 250;
    const ModelId asked = models[static_cast<size_t>(tick % 4)];
    if (tick >= 40 && !loaded.contains(asked.value())) ++cold;
    stage.request(asked, now, now + 100);
    for (double t = now; t < now + 250; t += 10) run(t);
  }
  EXPECT_EQ(cold, 0u);
}

// Looked at in time though no request comes.
TEST(FoliotPolicyTest, ATimerAwakensThePlannerBeforeItsRequest) {
  PolicyStage stage = make_stage(1, 1);
  const ModelId timer = stage.add_model({0});
  const ModelId other = stage.add_model({});
  double now = 0;
  for (int tick = 0; tick < 5; ++tick) {
    now = tick * 10'000;
    stage.request(timer, now, now + 100);
    for (const Action& action : stage.plan(now)) stage.finish(action, now + 2, Duration::milliseconds(2));
  }
  stage.request(other, now + 100, now + 200);
  for (const Action& action : of_type(stage.plan(now + 100), ActionType::kLoad)) {
    stage.finish(action, now + 108, Duration::milliseconds(8));
  }
  for (const Action& action : stage.plan(now + 108)) stage.finish(action, now + 110, Duration::milliseconds(2));
  now += 110;
  std::vector<Action> loads;
  for (int turns = 0; loads.empty() && turns < 5000; ++turns) {
    loads = of_type(stage.plan(now), ActionType::kLoad);
    now = std::max(now, stage.wake());
    ASSERT_LT(now, 50'000);
  }
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].model, timer);
}

TEST(FoliotPolicyTest, FillsFreePagesWhenThereIsNothingElseToLoad) {
  PolicyStage stage = make_stage();
  stage.add_model({});
  EXPECT_EQ(of_type(stage.plan(0), ActionType::kLoad).size(), 1u);
}

TEST(FoliotPolicyTest, FillsThePagesOfADeviceThatComesBackEmpty) {
  PolicyStage stage = make_stage(1, 1);
  const ModelId first = stage.add_model({});
  const auto loads = of_type(stage.plan(0), ActionType::kLoad);
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].model, first);
  stage.finish(loads[0], 8, Duration::milliseconds(8));
  const ModelId second = stage.add_model({});
  EXPECT_TRUE(stage.plan(10).empty()) << "no page is free";
  stage.restart(0, 20);
  const auto again = of_type(stage.plan(20), ActionType::kLoad);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].model, second) << "which was never loaded";
}

TEST(FoliotPolicyTest, LoadsASecondCopyWhenTheHolderIsBusy) {
  PolicyStage stage = make_stage(2, 1);
  const ModelId a = stage.add_model({0});
  for (int i = 0; i < 60; ++i) stage.request(a, 0, 100);  // 75 ms of EXEC
  const auto loads = of_type(stage.plan(0), ActionType::kLoad);
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].device, DeviceId(1));
}

// The other device has no free page, and a model that no request asks for.
TEST(FoliotPolicyTest, EvictsForASecondCopyOfAModelWhoseHolderIsBusy) {
  PolicyStage stage = make_stage(2, 1);
  const ModelId busy = stage.add_model({0});
  const ModelId idle = stage.add_model({1});
  for (int i = 0; i < 60; ++i) stage.request(busy, 0, 100);  // 75 ms of EXEC
  const auto sent = stage.plan(0);
  const auto unloads = of_type(sent, ActionType::kUnload);
  ASSERT_EQ(unloads.size(), 1u);
  EXPECT_EQ(unloads[0].model, idle);
  const auto loads = of_type(sent, ActionType::kLoad);
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].model, busy);
  EXPECT_EQ(loads[0].device, DeviceId(1));
}

// ---- Turns ----

// With batches for many devices, some are sent at once and the rest in turns that
// follow at once, so that no turn takes long.
TEST(FoliotPolicyTest, LeavesToTheNextTurnWhatWouldMakeThisOneLong) {
  constexpr uint32_t kDevices = 16;
  PolicyStage stage = make_stage(kDevices, 1);
  for (uint32_t device = 0; device < kDevices; ++device) stage.request(stage.add_model({device}), 0, 50);
  size_t sent = stage.plan(0).size();
  EXPECT_GT(sent, 0u);
  EXPECT_LT(sent, kDevices / 2);
  while (sent < kDevices) {
    ASSERT_LT(stage.wake(), 0.1);
    sent += stage.plan(stage.wake()).size();
  }
  EXPECT_EQ(sent, kDevices);
}

// ---- Refusals ----

TEST(FoliotPolicyTest, RefusesWhatHasNoTimeLeft) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const RequestId late = stage.request(a, 0, 1.5);
  stage.plan(0);
  EXPECT_EQ(stage.refused(), std::vector{late});
}

// Once a request has waited in vain, those that would are refused on arrival.
TEST(FoliotPolicyTest, UnderOverloadRefusesOnArrival) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 50);
  ASSERT_EQ(stage.plan(0).size(), 1u);  // until 5 ms
  stage.request(a, 0, 3);
  stage.plan(1.5);
  ASSERT_EQ(stage.refused().size(), 1u);
  for (int i = 0; i < 40; ++i) stage.request(a, 2, 22);  // time for 12 rows
  size_t refused = 0;
  for (double now = 2; now < 2.02; now = stage.wake()) {  // some in each turn
    stage.plan(now);
    refused += stage.refused().size();
  }
  EXPECT_GT(refused, 15u);
  EXPECT_LT(refused, 28u);
}

// A device with a model of SLO 50 ms whose four rows take 5 ms, asked `rate` times per ms for 3 s. How many of the
// requests of the last two seconds were refused as they came, and how many later.
struct Refusals {
  uint32_t at_once = 0;
  uint32_t later = 0;
  uint32_t served = 0;
};
Refusals refusals_under_load(uint32_t rate, uint32_t models) {
  PolicyStage stage = make_stage(1, models);
  std::vector<ModelId> asked;
  for (uint32_t i = 0; i < models; ++i) asked.push_back(stage.add_model());
  std::map<RequestId, double> arrivals;
  std::deque<std::pair<double, Action>> running;
  double free_at = 0;
  Refusals refusals;
  for (uint32_t i = 0; i < 3000 * rate; ++i) {
    const double now = static_cast<double>(i) / rate;
    for (; !running.empty() && running.front().first <= now; running.pop_front()) {
      const Action& over = running.front().second;
      stage.finish(over, now, Duration::milliseconds(over.batch_size + 1));
      if (now > 1000) refusals.served += static_cast<uint32_t>(over.rows.size());
    }
    arrivals[stage.request(asked[i * 7 % models], now, now + 50)] = now;
    for (const Action& action : stage.plan(now)) {
      free_at = std::max(free_at, now) + action.batch_size + 1;
      running.emplace_back(free_at, action);
    }
    for (const RequestId id : stage.refused()) {
      if (now > 1000) ++(now - arrivals[id] < 5 ? refusals.at_once : refusals.later);
    }
  }
  return refusals;
}

TEST(FoliotPolicyTest, UnderOverloadNewestRequestsAreRefusedAndOlderOnesServed) {
  for (const uint32_t models : {1u, 3u}) {
    const Refusals refusals = refusals_under_load(2, models);
    EXPECT_GT(refusals.at_once, 2000u) << models << ", of 4,000, of which 1,600 can be served";
    EXPECT_LE(refusals.later, 16u) << models;
    EXPECT_GE(refusals.served, 1560u) << models;
  }
}

// Forty models have fewer requests than fill batches: which have enough is known only later.
TEST(FoliotPolicyTest, UnderOverloadRequestsOfModelsWithSmallBatchesWait) {
  const Refusals refusals = refusals_under_load(2, 40);
  EXPECT_GE(refusals.served, 1300u);
  EXPECT_GT(refusals.later, refusals.at_once);
}

// However much waits for others, a model may have what fills its batches.
TEST(FoliotPolicyTest, UnderOverloadFullBatchesMayStillForm) {
  PolicyStage stage = make_stage(1, 16);
  std::vector<ModelId> models;
  for (int i = 0; i < 16; ++i) models.push_back(stage.add_model());
  for (int i = 0; i < 4; ++i) stage.request(models[0], 0, 50);
  ASSERT_EQ(stage.plan(0).size(), 1u);  // until 5 ms
  stage.request(models[0], 0, 3);
  stage.plan(1.5);
  ASSERT_EQ(stage.refused().size(), 1u);
  for (int i = 0; i < 4; ++i) {
    for (const ModelId model : models) stage.request(model, 2, 12);  // 80 ms of EXEC in 10
  }
  stage.plan(2);
  EXPECT_TRUE(stage.refused().empty());
}

TEST(FoliotPolicyTest, LoadsAModelThatFailedOnAnotherDeviceAndLaterThereAgain) {
  PolicyStage stage([](const Cluster& cluster) { return make_foliot_policy(cluster); }, 2);
  const ModelId a = stage.add_model({});
  stage.request(a, 0, 1000);
  const auto first = stage.plan(0);
  ASSERT_EQ(first.size(), 1u);
  stage.fail(first[0], 1);
  const auto second = stage.plan(1);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].type, ActionType::kLoad);
  EXPECT_NE(second[0].device, first[0].device);
  stage.fail(second[0], 11);
  for (double now = 11; now < 101; now += 10) EXPECT_TRUE(stage.plan(now).empty()) << now;
  const auto third = stage.plan(101);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(third[0].device, first[0].device) << "where the back-off is over";
  EXPECT_EQ(stage.backing_off(), 0u);
}

}  // namespace
}  // namespace foliot::foliot_policy
