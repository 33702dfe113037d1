#include "virtual/world/simulated_device.h"

#include <gtest/gtest.h>

#include <memory>
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

void add(SimulatedDevice& device, const std::string& name, uint32_t id) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(id);
  model->name = name;
  model->buckets.resize(1);
  model->only().seed_exec = {{Duration::milliseconds(10)}};
  ASSERT_TRUE(device.add({model}).ok());
}

TEST(SimulatedDevice, AnExecTakesTheFactorOfItsModelsNearestThatWasSeen) {
  const std::vector<SeenExec> seen{{Duration::seconds(1), 0.5}, {Duration::seconds(2), 4}, {Duration::seconds(4), 3}};
  SimulatedDevice device({.exec_deviation = 0, .seen_execs = {{"seen", seen}}}, 1);
  add(device, "seen", 0);
  add(device, "other", 1);
  const auto milliseconds = [&](uint32_t id, double seconds) {
    const Action action{.type = ActionType::kInfer, .model = ModelId(id), .batch_size = 1};
    return device.duration("exec", action, TimePoint() + Duration::from_seconds(seconds)).to_milliseconds();
  };
  EXPECT_EQ(milliseconds(0, 0), 5);
  EXPECT_EQ(milliseconds(0, 1.4), 5);
  EXPECT_EQ(milliseconds(0, 1.6), 40);
  EXPECT_EQ(milliseconds(0, 2), 40);
  EXPECT_EQ(milliseconds(0, 2.9), 40);
  EXPECT_EQ(milliseconds(0, 3.1), 30);
  EXPECT_EQ(milliseconds(0, 1000), 30);
  EXPECT_EQ(milliseconds(1, 2), 10);
}

}  // namespace
}  // namespace foliot
