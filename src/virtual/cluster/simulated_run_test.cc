// What a run must have computed, against answers that are right but for one thing.
#include "virtual/cluster/simulated_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "virtual/world/computing_device.h"

namespace foliot {
namespace {

std::shared_ptr<const ModelInfo> model(const std::string& name) {
  return simulated_version({.name = name}, 1, ModelId(0), true);
}

TensorSource call(uint32_t tensor) { return {.stage = {}, .tensor = tensor}; }
TensorSource of(uint32_t stage, uint32_t tensor) { return {.stage = stage, .tensor = tensor}; }
TensorSource each(uint32_t stage, uint32_t tensor) { return {.stage = stage, .tensor = tensor, .each = true}; }

// A stage that counts, one for each element, and one that takes what was made for all of them.
ModelInfo pipeline() {
  auto info = std::make_shared<PipelineInfo>();
  PipelineStage detect{
      .name = "detect", .model = model("detect"), .bucket = {}, .inputs = {{call(0)}, {call(1)}, {call(2)}}};
  PipelineStage crop{
      .name = "crop", .model = model("crop"), .bucket = {}, .inputs = {{each(0, 1)}, {of(0, 1)}, {of(0, 2)}}};
  crop.for_each = {.stage = 0, .at_most = kSimulatedElements};
  PipelineStage join{
      .name = "join", .model = model("join"), .bucket = {}, .inputs = {{of(0, 0)}, {of(1, 0)}, {call(2)}}};
  info->stages = {detect, crop, join};
  for (uint32_t stage = 0; stage < 3; ++stage) info->outputs.push_back({.sources = {of(stage, 0)}});
  ModelInfo result;
  for (uint32_t tensor = 0; tensor < kSimulatedTensors; ++tensor) {
    result.inputs.push_back(simulated_tensor(kSimulatedInputs[tensor], tensor));
  }
  result.pipeline = std::move(info);
  return result;
}

// The first inputs of which so many elements are counted.
SimulatedRow inputs_with(uint32_t elements) {
  SimulatedRow inputs;
  while (simulated_output(0, inputs.hash(kSimulatedTensors), 0).count().value_or(kSimulatedElements + 1) != elements) {
    ++inputs.words[0];
  }
  return inputs;
}

void put(std::span<const std::byte> from, std::span<std::byte> to) { std::ranges::copy(from, to.begin()); }

// Answered as it must be: the visits have actions 1, 2, ...
class SimulatedRunTest : public testing::Test {
 protected:
  void answer(uint32_t elements) {
    inputs_ = inputs_with(elements);
    received_.visits.assign(2 + kSimulatedElements, {});
    received_.empty_stages.clear();
    if (elements == 0) received_.empty_stages.push_back(1);
    const SimulatedRow detect = visit(0, "detect", inputs_);
    SimulatedRow joined;
    put(detect.bytes(0), joined.bytes(0));
    put(std::as_const(inputs_).bytes(2), joined.bytes(2));
    for (uint32_t element = 0; element < elements; ++element) {
      SimulatedRow own;
      put(detect.bytes(1).subspan(element * 24, 24), own.bytes(0));
      put(detect.bytes(1), own.bytes(1));
      put(detect.bytes(2), own.bytes(2));
      const SimulatedRow crop = visit(1 + element, "crop", own);
      put(crop.bytes(0), joined.bytes(1).subspan(element * 24, 24));
    }
    visit(1 + kSimulatedElements, "join", joined);
  }
  SimulatedRow visit(uint32_t slot, const std::string& name, const SimulatedRow& inputs) {
    actions_[slot] = ActionId(1 + slot);
    const SimulatedRow made = simulated_output(content_hash(*model(name)), inputs.hash(kSimulatedTensors), 1 + slot);
    received_.visits[slot] = {made, 1};
    return made;
  }
  std::string check() const { return check_simulated_run(info_, inputs_, actions_, received_); }
  void forget(uint32_t slot) {
    received_.visits[slot] = {};
    actions_.erase(slot);
  }

  const ModelInfo info_ = pipeline();
  SimulatedRow inputs_;
  std::map<uint32_t, ActionId> actions_;
  ReceivedRun received_;
};

TEST_F(SimulatedRunTest, AcceptsWhatMustBe) {
  for (uint32_t elements = 0; elements <= kSimulatedElements; ++elements) {
    answer(elements);
    EXPECT_EQ(check(), "") << elements << " elements";
    EXPECT_FALSE(counts_too_many(info_, inputs_));
  }
}

TEST_F(SimulatedRunTest, NoticesALostAndAnAddedVisit) {
  answer(3);
  forget(2);
  EXPECT_THAT(check(), testing::HasSubstr("visit 1 of stage 'crop' had to be made 1 times; it ended 0 times"));
  answer(3);
  visit(4, "crop", inputs_);
  EXPECT_THAT(check(), testing::HasSubstr("visit 3 of stage 'crop' had to be made 0 times"));
}

TEST_F(SimulatedRunTest, NoticesAVisitThatEndsTwice) {
  answer(2);
  received_.visits[2].ends = 2;
  EXPECT_THAT(check(), testing::HasSubstr("it ended 2 times"));
}

TEST_F(SimulatedRunTest, NoticesElementsThatAreSwapped) {
  answer(3);
  std::swap(received_.visits[1], received_.visits[2]);
  EXPECT_THAT(check(), testing::HasSubstr("another action's outputs"));
  answer(3);
  std::swap(received_.visits[1], received_.visits[2]);
  std::swap(actions_[1], actions_[2]);
  EXPECT_THAT(check(), testing::HasSubstr("visit 0 of stage 'crop' was computed on other inputs"));
}

TEST_F(SimulatedRunTest, NoticesAnElementThatIsNotGathered) {
  answer(2);
  SimulatedRow joined;
  put(std::as_const(received_.visits[0].outputs).bytes(0), joined.bytes(0));
  put(std::as_const(received_.visits[1].outputs).bytes(0), joined.bytes(1).first(24));
  put(std::as_const(inputs_).bytes(2), joined.bytes(2));
  visit(1 + kSimulatedElements, "join", joined);
  EXPECT_EQ(check(), "visit 0 of stage 'join' was computed on other inputs");
}

TEST_F(SimulatedRunTest, NoticesAStageThatIsSaidToHaveNoElements) {
  answer(1);
  received_.empty_stages = {1};
  EXPECT_THAT(check(), testing::HasSubstr("stage 'crop' had 1 elements, and was said 1 times to have none"));
  answer(0);
  received_.empty_stages.clear();
  EXPECT_THAT(check(), testing::HasSubstr("stage 'crop' had 0 elements, and was said 0 times to have none"));
}

TEST_F(SimulatedRunTest, NoticesARunThatCountsTooMany) {
  answer(1);
  inputs_ = inputs_with(kSimulatedElements + 1);
  EXPECT_TRUE(counts_too_many(info_, inputs_));
  EXPECT_THAT(check(), testing::HasSubstr("more elements than there may be"));
}

}  // namespace
}  // namespace foliot
