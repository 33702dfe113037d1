// Runs of pipelines at the controller, on bytes carried by hand: what they reserve on the workers.
#include <gtest/gtest.h>

#include <string>

#include "cluster/sessions/controller_service.h"
#include "cluster/sessions/pipeline_registry.h"
#include "cluster/sessions/test_peer.h"
#include "cluster/transport/client_ids.h"
#include "control/policies/registry.h"
#include "virtual/emulation/emulated_models.h"

namespace foliot {
namespace {

constexpr uint64_t kBytesOfAPage = uint64_t{16} << 20;

// Two stages of one model, the first of whose outputs a worker holds for the second.
class ControllerPipelineTest : public ::testing::Test {
 protected:
  static Registration registration(const std::string& name, uint64_t held_payloads) {
    ModelInfo model = parse_emulated_models("resnet18", kBytesOfAPage)->front();
    model.inputs = {{"x", DataType::kFloat32, {4}, {""}}};
    model.outputs = {{"y", DataType::kFloat32, {4}, {""}}};
    return {.worker = name,
            .kind = "cpu",
            .data_address = "peer:1",
            .page_counts = {10},
            .lane_counts = {1},
            .context_counts = {1},
            .models = {model},
            .residents = {{}},
            .held_bytes = 4096,
            .held_payloads = held_payloads};
  }
  void offer_from(TestPeer& worker) {
    EXPECT_TRUE(worker
                    .say(Pipelines{{{{}, "twice", lines_of(R"(
[[stage]]
name = "one"
model = "resnet18"
inputs = { x = "x" }
[[stage]]
name = "two"
model = "resnet18"
inputs = { x = "one.y" }
[[output]]
name = "y"
from = "two.y"
)")}}}).ok());
    service_.on_turn_end(at_ms(1));
    pipeline_ = client_.last<Pipelines>().pipelines.at(0).id;
  }
  // Whether a run is taken in, which then waits for the worker.
  bool takes(uint64_t id) {
    EXPECT_TRUE(client_
                    .say(Request{.id = RequestId(kRunIdBit | id),
                                 .model = {},
                                 .pipeline = pipeline_,
                                 .arrival = at_ms(1),
                                 .deadline = at_ms(1000)})
                    .ok());
    service_.on_turn_end(at_ms(1));
    const auto refused = client_.received<Completion>(MessageType::kCompletion);
    if (refused.empty()) return true;
    EXPECT_EQ(refused.back().refusal, Refusal::kOverload) << refused.back().detail;
    return false;
  }

  ControllerService service_{
      {}, find_policy("clockwork")->make, [] { return at_ms(1); }, [](Severity, const std::string&) {}};
  TestPeer client_{service_, Role::kClient};
  TestPeer first_{service_, Role::kWorker};
  PipelineId pipeline_;
};

TEST_F(ControllerPipelineTest, RunsNeedMemoryOnTheWorkers) {
  ASSERT_TRUE(first_.say(registration("first", 1)).ok());
  offer_from(first_);
  EXPECT_TRUE(takes(1));
  EXPECT_FALSE(takes(2)) << "there is room for what one run holds";
}

TEST_F(ControllerPipelineTest, TheWorkerWithTheLeastMemoryCounts) {
  ASSERT_TRUE(first_.say(registration("first", 100)).ok());
  TestPeer second(service_, Role::kWorker);
  ASSERT_TRUE(second.say(registration("second", 0)).ok());
  offer_from(first_);
  EXPECT_FALSE(takes(1));
  second.close();
  EXPECT_TRUE(takes(2));
}

}  // namespace
}  // namespace foliot
