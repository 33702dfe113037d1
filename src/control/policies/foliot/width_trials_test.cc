// WidthTrials in virtual time, on emulated devices whose widths have durations that the policy does not know.
#include "control/policies/foliot/width_trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/controller/rolling_duration_model.h"
#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/random.h"
#include "foundation/base/test_seed.h"

namespace foliot::foliot_policy {
namespace {

// One model on a device of several lanes. An EXEC of one row takes the part of its work that is divided over the lanes,
// the part that is not, and on several lanes the way to their threads. The first time on each width it is cold, and may
// be later.
class Emulated {
 public:
  Emulated(uint32_t lanes, Random& random) : lanes_(lanes), random_(random) {
    stage_.set_lane_count(0, lanes, /*context_count=*/2);
    model_ = stage_.add_model();
    was_run_.resize(width_count(lanes));
  }
  void set_truth(double work_ms, double divided, double meet_ms) {
    truth_.clear();
    for (uint32_t i = 0; i < width_count(lanes_); ++i) {
      const uint32_t width = width_at(i, lanes_);
      truth_.push_back(work_ms * (1 - divided + divided / width) + (width > 1 ? meet_ms : 0));
    }
  }
  void set_cold_share(double share) { cold_share_ = share; }
  void set_time(double slo_ms) { slo_ms_ = slo_ms; }
  // A request on the device while it is idle. Returns how many lanes its EXEC took; nullopt if it was refused.
  std::optional<uint32_t> ask() {
    now_ms_ += 50;
    stage_.request(model_, now_ms_, now_ms_ + slo_ms_);
    const std::vector<Action> sent = stage_.plan(now_ms_);
    if (sent.empty()) return std::nullopt;
    const uint32_t index = width_index(sent[0].lanes.count, lanes_);
    const bool cold = !was_run_[index] || random_.uniform() < cold_share_;
    was_run_[index] = true;
    const double ms = truth_[index] * (1 + 0.02 * random_.uniform()) + (cold ? 2 + 28 * random_.uniform() : 0);
    if (ms > slo_ms_) ++late_;
    durations_->record_exec({DeviceId(0), model_, BucketId(0), 0, index}, Duration::from_milliseconds(ms));
    stage_.finish(sent[0], now_ms_ + ms, Duration::from_milliseconds(ms));
    return sent[0].lanes.count;
  }
  // How many lanes most of 20 further EXECs take.
  uint32_t usual() {
    std::map<uint32_t, int> times;
    for (int i = 0; i < 20; ++i) ++times[ask().value_or(0)];
    return std::ranges::max_element(times, {}, &std::pair<const uint32_t, int>::second)->first;
  }
  double truth(uint32_t width) const { return truth_[width_index(width, lanes_)]; }
  double best() const { return *std::ranges::min_element(truth_); }
  int late() const { return late_; }

 private:
  const uint32_t lanes_;
  Random& random_;
  RollingDurationModel* durations_ = new RollingDurationModel();  // stage_ owns it
  PolicyStage stage_{[](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8,
                     std::unique_ptr<DurationModel>(durations_)};
  ModelId model_;
  std::vector<double> truth_;  // ms, by width_index
  std::vector<bool> was_run_;
  double slo_ms_ = 100;
  double cold_share_ = 0;
  double now_ms_ = 0;
  int late_ = 0;
};

// What waits alone takes the lanes on which it is over first; lanes that take less than a twentieth off are left. What
// took long by accident, several times in a row, too, is tried again.
TEST(WidthTrialsTest, TheWidthConvergesToTheBest) {
  Random random(fresh_seed());
  for (int turn = 0; turn < 60; ++turn) {
    Emulated device(uint32_t{1} << (1 + random.below(4)), random);
    device.set_cold_share(0.01);
    device.set_truth(0.005 * std::pow(60, random.uniform()), random.uniform(), 0.2 * random.uniform());
    for (int i = 0; i < 1000; ++i) device.ask();
    device.set_cold_share(0);
    for (int i = 0; i < 1000; ++i) device.ask();
    int best = 0;
    for (int i = 0; i < 200; ++i) {
      const std::optional<uint32_t> width = device.ask();
      if (width && device.truth(*width) <= device.best() * 1.05 * 1.05) ++best;
    }
    EXPECT_GE(best, 190) << "turn " << turn << ": one lane takes " << device.truth(1) << " ms, the best "
                         << device.best();
  }
}

// Later all lanes are the best ones: the way to their threads has become short.
TEST(WidthTrialsTest, AChangeIsFound) {
  Random random(fresh_seed());
  Emulated device(4, random);
  device.set_truth(0.3, 1, 0.5);
  for (int i = 0; i < 500; ++i) device.ask();
  EXPECT_EQ(device.usual(), 1u);
  device.set_truth(0.3, 1, 0);
  for (int i = 0; i < 20'000; ++i) device.ask();
  EXPECT_GT(device.usual(), 1u);
}

// Of 20 ms; what is cold takes up to 30 more.
TEST(WidthTrialsTest, WhatIsColdMakesFewLateAndNoneIsRefusedForIt) {
  Random random(fresh_seed());
  Emulated device(2, random);
  device.set_time(20);
  device.set_truth(0.006, 0, 0.07);
  int refused = 0;
  for (int i = 0; i < 500; ++i) refused += device.ask() ? 0 : 1;
  EXPECT_EQ(refused, 0);
  EXPECT_LE(device.late(), 2);
  EXPECT_EQ(device.usual(), 1u);
}

// On one lane an EXEC would be over in time, with less than half of the time left.
TEST(WidthTrialsTest, NoWidthIsTriedWhereLittleTimeWouldBeLeft) {
  Random random(fresh_seed());
  Emulated device(2, random);
  device.set_truth(0.3, 0.5, 0);
  device.ask();
  device.ask();
  device.set_time(0.8);
  int answered = 0;
  for (int i = 0; i < 100; ++i) {
    const std::optional<uint32_t> width = device.ask();
    if (!width) continue;
    ++answered;
    EXPECT_EQ(*width, 2u) << i;
  }
  EXPECT_GE(answered, 95);
}

}  // namespace
}  // namespace foliot::foliot_policy
