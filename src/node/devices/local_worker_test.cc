// A real device's batches in parts: lanes, ranges and contexts through executors and threads.
#include "node/devices/local_worker.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "engine/device/conformance/bump_planner.h"
#include "engine/device/conformance/case_graph_builder.h"
#include "engine/device/conformance/session.h"
#include "foundation/base/random.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

constexpr uint64_t kLocalPageBytes = 1 << 16;
constexpr int64_t kSide = 12, kChannels = 32;
constexpr uint32_t kLocalContexts = 3;
constexpr ContextIndex kFreeContext = 1;  // that whole plans name
constexpr LaneInterval kFirstLane{0, 1}, kSecondLane{1, 1};

// Two convolutions, a product and a softmax.
Graph small_network() {
  Random random(11);
  CaseGraphBuilder builder(1);
  const auto constant = [&](const Shape& shape) {
    return builder.constant(random_array(DataType::kFloat32, shape, random, {-0.3, 0.3}));
  };
  const ValueIndex x = builder.input({1, 3, kSide, kSide});
  const ValueIndex w1 = constant({kChannels, 3, 3, 3}), w2 = constant({kChannels, kChannels, 3, 3}),
                   w3 = constant({10, kChannels * kSide * kSide}), b3 = constant({10});
  const AttributeList same{{"strides", std::vector<int64_t>{1, 1}},
                           {"dilations", std::vector<int64_t>{1, 1}},
                           {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                           {"groups", int64_t{1}}};
  const Shape image{1, kChannels, kSide, kSide};
  const ValueIndex a =
      builder.node(OperatorKind::kConvolution, {x, w1}, image, same, DataType::kFloat32, {activation("relu")});
  const ValueIndex b =
      builder.node(OperatorKind::kConvolution, {a, w2}, image, same, DataType::kFloat32, {activation("relu")});
  const ValueIndex flat = builder.node(OperatorKind::kReshape, {b}, {1, kChannels * kSide * kSide});
  const ValueIndex y = builder.node(OperatorKind::kMatMul, {flat, w3, b3}, {1, 10},
                                    {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}, {"alpha", 1.0}});
  builder.output(builder.node(OperatorKind::kSoftmax, {y}, {1, 10}, {{"axis", int64_t{1}}, {"log", int64_t{0}}}));
  return builder.graph();
}

// Inputs of their own for each request, drawn from its id.
class DrawnPayloads : public PayloadStore {
 public:
  explicit DrawnPayloads(uint64_t requests) {
    for (uint64_t id = 0; id < requests; ++id) {
      Random random(id);
      std::vector<float>& input = inputs_.emplace_back(3 * kSide * kSide);
      for (float& value : input) value = static_cast<float>(random.uniform()) - 0.5F;
    }
    outputs_.resize(requests);
  }
  std::span<const std::byte> input(PayloadHandle payload, uint32_t) override {
    return std::as_bytes(std::span(inputs_.at(payload.value())));
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t) override {
    return std::as_writable_bytes(std::span(outputs_.at(payload.value())));
  }
  std::array<float, 10> take(uint64_t request) { return std::exchange(outputs_.at(request), {}); }

 private:
  std::vector<std::vector<float>> inputs_;
  std::vector<std::array<float, 10>> outputs_;
};

class AwaitedOutcomes : public OutcomeSink {
 public:
  void report(const Outcome& outcome) override {
    const std::lock_guard lock(mutex_);
    statuses_[outcome.action] = outcome.status;
    changed_.notify_all();
  }
  OutcomeStatus wait(ActionId action) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return statuses_.contains(action); });
    return statuses_[action];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ActionId, OutcomeStatus> statuses_;
};

class LocalWorkerTest : public testing::Test {
 protected:
  LocalWorkerTest() : worker_(options(), DevicePlace{.threads = 2, .lanes = 2}, {}, {}) {
    EXPECT_TRUE(worker_.start(payloads_, outcomes_).ok());
    const std::unique_ptr<CpuDevice> compiler = make_cpu_device({.threads = 2, .lanes = 2});
    PlannedProgram planned = lower_and_plan(*compiler, std::vector<Graph>{small_network()}).value();
    auto program = std::make_shared<Program>();
    program->batch_sizes = {1};
    program->plans = std::move(planned.plans);
    program->weights_bytes = planned.weights.size();
    operators_ = static_cast<uint32_t>(program->plans[0].operators.size());
    auto info = std::make_shared<ModelInfo>();
    info->id = ModelId(0);
    info->only().pages = program->pages(kLocalPageBytes);
    EXPECT_TRUE(worker_.make_room(*program).ok());
    Result<WorkerModel> model = worker_.engine().add({info, {program, memory_weights(std::move(planned.weights))}});
    EXPECT_TRUE(model.ok() && worker_.engine().prepare(ModelId(0), 0).ok());
    worker_.worker().add_model(std::move(model).value());
    const Action load{.id = ActionId(0), .type = ActionType::kLoad, .model = ModelId(0), .latest = kEver};
    worker_.worker().send(load);
    EXPECT_EQ(outcomes_.wait(load.id), OutcomeStatus::kDone);
  }

  static LocalWorkerOptions options() {
    LocalWorkerOptions options;
    options.page_bytes = kLocalPageBytes;
    options.page_cache_bytes = 64 * kLocalPageBytes;
    options.contexts = kLocalContexts;
    return options;
  }

  ActionId send(uint64_t request, OperatorRange range, LaneInterval lanes, ContextIndex context = 0) {
    Action action{.id = ActionId(++actions_), .model = ModelId(0), .latest = kEver, .batch_size = 1, .lanes = lanes};
    action.range = range;
    action.context = context;
    action.rows.add({RequestId(request), PayloadHandle(request)});
    worker_.worker().send(action);
    return action.id;
  }
  void run(uint64_t request, OperatorRange range, LaneInterval lanes, ContextIndex context = 0) {
    ASSERT_EQ(outcomes_.wait(send(request, range, lanes, context)), OutcomeStatus::kDone);
  }
  std::array<float, 10> whole(uint64_t request, LaneInterval lanes) {
    run(request, {}, lanes, kFreeContext);
    return payloads_.take(request);
  }

  static constexpr TimePoint kEver = TimePoint::infinite_future();
  DrawnPayloads payloads_{4};
  AwaitedOutcomes outcomes_;
  LocalWorker worker_;
  uint32_t operators_ = 0;
  uint64_t actions_ = 0;
};

// For models whose files have so many bytes, and which are not compiled yet.
DeviceMemory memory_for(const std::vector<uint64_t>& models) { return LocalWorker({}, {}, {}, models).memory(); }

TEST(LocalWorkerMemoryTest, PagesAreAsLargeAsLittleOfThemIsEmpty) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(memory_for({}).page_bytes, 2 * kMiB);
  EXPECT_EQ(memory_for({1000}).page_bytes, 2 * kMiB);
  EXPECT_EQ(memory_for({78 * kMiB}).page_bytes, 8 * kMiB);  // 97.5 MiB of weights
  EXPECT_EQ(memory_for({400 * kMiB}).page_bytes, 16 * kMiB);
  EXPECT_EQ(memory_for(std::vector<uint64_t>(1000, 1000)).page_bytes, 2 * kMiB);
}

TEST(LocalWorkerMemoryTest, WhatNoModelNeedsIsSpare) {
  const DeviceMemory one = memory_for({1000});
  EXPECT_EQ(one.page_count, 128u);
  EXPECT_EQ(one.spare_pages, 127u);
  EXPECT_EQ(memory_for(std::vector<uint64_t>(1000, 1000)).spare_pages, 0u);
}

TEST_F(LocalWorkerTest, HasContextsBesideThoseOfLanes) { EXPECT_EQ(worker_.memory().contexts, 2 + kLocalContexts); }

// Two batches in two contexts, cut at every operator, one going on where the other began, with
// whole plans between and beside their parts, on the lanes whose numbers these contexts have.
TEST_F(LocalWorkerTest, BatchesInPartsComputeTheSameBits) {
  ASSERT_GT(operators_, 3u);
  std::array<std::array<float, 10>, 4> alone;
  for (uint64_t request = 0; request < alone.size(); ++request) {
    alone[request] = whole(request, kFirstLane);
    EXPECT_EQ(whole(request, kSecondLane), alone[request]);
    EXPECT_NE(alone[request], alone[(request + 1) % alone.size()]);
  }
  for (uint32_t cut = 1; cut < operators_; ++cut) {
    const uint32_t other_cut = operators_ - cut;
    const ActionId left = send(0, {0, cut}, kFirstLane, 0), right = send(1, {0, other_cut}, kSecondLane, 2);
    EXPECT_EQ(outcomes_.wait(left), OutcomeStatus::kDone);
    EXPECT_EQ(outcomes_.wait(right), OutcomeStatus::kDone);
    EXPECT_EQ(whole(2, kFirstLane), alone[2]) << "between parts, cut at " << cut;
    const ActionId beside = send(3, {}, kFirstLane, kFreeContext),
                   last = send(0, {cut, OperatorRange::kEnd}, kSecondLane, 0);
    EXPECT_EQ(outcomes_.wait(beside), OutcomeStatus::kDone);
    EXPECT_EQ(outcomes_.wait(last), OutcomeStatus::kDone);
    run(1, {other_cut, OperatorRange::kEnd}, kFirstLane, 2);
    EXPECT_EQ(payloads_.take(0), alone[0]) << "cut at " << cut;
    EXPECT_EQ(payloads_.take(1), alone[1]) << "cut at " << other_cut;
    EXPECT_EQ(payloads_.take(3), alone[3]);
  }
}

// What a batch that was given up has left does not reach the one that takes its context.
TEST_F(LocalWorkerTest, ABatchTakesTheContextOfOneThatWasGivenUp) {
  const auto alone = whole(1, kFirstLane);
  run(0, {0, 2}, kFirstLane, 1);
  run(1, {0, 1}, kSecondLane, 1);
  EXPECT_EQ(outcomes_.wait(send(0, {2, OperatorRange::kEnd}, kFirstLane, 1)), OutcomeStatus::kNoContext);
  run(1, {1, OperatorRange::kEnd}, kFirstLane, 1);
  EXPECT_EQ(payloads_.take(1), alone);
}

TEST_F(LocalWorkerTest, RefusesContextsThatThereAreNot) {
  EXPECT_EQ(outcomes_.wait(send(0, {0, 1}, kFirstLane, kLocalContexts)), OutcomeStatus::kNoContext);
}

}  // namespace
}  // namespace foliot
