#include "sim/simulated_device.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace foliot {
namespace {

// How long an EXEC of 10 ms takes that begins `start` ms after the start of time.
Duration exec_at(std::vector<DeviceSpeed> speeds, int64_t start) {
  SimulatedDevice device({.exec_deviation = 0, .exec_speeds = std::move(speeds)}, 1);
  auto model = std::make_shared<ModelInfo>();
  model->buckets.resize(1);
  model->only().seed_exec = {{Duration::milliseconds(10)}};
  EXPECT_TRUE(device.add({model}).ok());
  return device.duration("exec", Action{.type = ActionType::kInfer, .batch_size = 1},
                         TimePoint() + Duration::milliseconds(start));
}

std::vector<DeviceSpeed> stall() {
  return {{Duration::milliseconds(100), 1}, {Duration::milliseconds(105), 0.25}, {Duration::milliseconds(125), 2}};
}

TEST(SimulatedDevice, WithoutMeasuredSpeedsTakesWhatTheProfileSays) {
  EXPECT_EQ(exec_at({}, 50), Duration::milliseconds(10));
}

TEST(SimulatedDevice, ExecutesAtTheSpeedThatWasMeasuredThen) {
  EXPECT_EQ(exec_at(stall(), 90), Duration::milliseconds(10));         // all before the stall
  EXPECT_EQ(exec_at(stall(), 100), Duration::milliseconds(25));        // 5 at once, 5 within the stall
  EXPECT_EQ(exec_at(stall(), 121), Duration::from_milliseconds(8.5));  // 1 within it, 9 at twice the speed
  EXPECT_EQ(exec_at(stall(), 200), Duration::milliseconds(5));
}

// As often as it is among them; other models as their profiles say.
TEST(SimulatedDevice, DrawsFromWhatWasSeenOfAModel) {
  SimulatedDevice device({.exec_deviation = 0, .seen_execs = {{"seen", {{{}, 0.5}, {{}, 1}, {{}, 1}, {{}, 3}}}}}, 1);
  const auto mean = [&](const std::string& name, uint32_t id) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->name = name;
    model->buckets.resize(1);
    model->only().seed_exec = {{Duration::milliseconds(10)}};
    EXPECT_TRUE(device.add({model}).ok());
    Duration sum;
    std::map<Duration, uint32_t> seen;
    for (uint32_t i = 0; i < 4000; ++i) {
      const Duration each =
          device.duration("exec", Action{.type = ActionType::kInfer, .model = model->id, .batch_size = 1}, TimePoint());
      sum += each;
      ++seen[each];
    }
    return std::pair(sum / 4000, seen.size());
  };
  const auto [seen, distinct] = mean("seen", 0);
  EXPECT_NEAR(seen.to_milliseconds(), 13.75, 0.4);
  EXPECT_EQ(distinct, 3u);
  EXPECT_EQ(mean("other", 1), std::pair(Duration::milliseconds(10), size_t{1}));
}

TEST(SimulatedDevice, DrawsFromWhatWasSeenAboutThen) {
  // By the second: 1 to 20 times as long.
  std::vector<SeenExec> seen;
  for (int i = 0; i < 20; ++i) seen.push_back({Duration::seconds(i), 1.0 + i});
  SimulatedDevice device({.exec_deviation = 0, .seen_execs = {{"seen", seen}}}, 1);
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(0);
  model->name = "seen";
  model->buckets.resize(1);
  model->only().seed_exec = {{Duration::milliseconds(10)}};
  ASSERT_TRUE(device.add({model}).ok());
  const auto range_at = [&](double seconds) {
    std::set<double> drawn;
    for (uint32_t i = 0; i < 1000; ++i) {
      const Action action{.type = ActionType::kInfer, .model = model->id, .batch_size = 1};
      drawn.insert(device.duration("exec", action, TimePoint() + Duration::from_seconds(seconds)).to_milliseconds());
    }
    EXPECT_EQ(drawn.size(), NoiseOptions::kSeenNear);
    return std::pair(*drawn.begin(), *drawn.rbegin());
  };
  EXPECT_EQ(range_at(0), std::pair(10.0, 80.0));
  EXPECT_EQ(range_at(3.5), std::pair(10.0, 80.0));
  EXPECT_EQ(range_at(9.5), std::pair(70.0, 140.0));
  EXPECT_EQ(range_at(19), std::pair(130.0, 200.0));
  EXPECT_EQ(range_at(1000), std::pair(130.0, 200.0));
}

}  // namespace
}  // namespace foliot
