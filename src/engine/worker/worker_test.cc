#include "engine/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "engine/worker/conformance/fake_engine.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;

class Outcomes : public OutcomeSink {
 public:
  void report(const Outcome& outcome) override { all.push_back(outcome); }
  std::vector<OutcomeStatus> statuses() const {
    std::vector<OutcomeStatus> result;
    for (const Outcome& outcome : all) result.push_back(outcome.status);
    return result;
  }
  std::vector<Outcome> all;
};

// One row of bytes for all requests.
class OneRow : public PayloadStore {
 public:
  OneRow(size_t input_bytes, size_t output_bytes) : input_(input_bytes), output_(output_bytes) {}
  std::span<const std::byte> input(PayloadHandle, uint32_t) override { return input_; }
  std::span<std::byte> output(PayloadHandle, uint32_t) override { return output_; }
  VisitReading finish(PayloadHandle payload) override {
    return {static_cast<ConditionSet>(payload.value()), static_cast<float>(payload.value()) / 2};
  }

 private:
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

class CountingWaker : public Waker {
 public:
  void wake() override { ++wakes; }
  int wakes = 0;
};

class WorkerTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kModel = 3;

  WorkerTest()
      : worker_({.page_count = 4,
                 .io_cache_bytes = 4096,
                 .models_max = 8,
                 .loads_in_flight_max = 4,
                 .infers_in_flight_max = 4},
                engine_, outcomes_, {waker_, waker_, waker_, waker_}) {
    add_model(kModel, 3, {1, 4}, 100, 50);
    add_model(kModel + 1, 2, {1}, 4000, 4000);
  }

  void add_model(uint32_t id, uint32_t pages, std::vector<uint32_t> batch_sizes, int64_t input, int64_t output) {
    auto info = std::make_shared<ModelInfo>();
    info->id = ModelId(id);
    info->only().pages = pages;
    info->only().batch_sizes = std::move(batch_sizes);
    info->inputs = {{"x", DataType::kUint8, {input}, {""}}};
    info->outputs = {{"y", DataType::kUint8, {output}, {""}}};
    info->buckets.resize(1);
    worker_.add_model(engine_.add({info}).value());
    for (size_t i = 0; i < info->only().batch_sizes.size(); ++i) EXPECT_TRUE(engine_.prepare(info->id, i).ok());
  }

  Action action(ActionType type, uint32_t model = kModel) {
    Action a{.id = ActionId(next_id_++), .type = type, .model = ModelId(model), .earliest = at(0), .latest = at(1000)};
    if (type == ActionType::kInfer) {
      a.batch_size = 1;
      a.rows.add({RequestId(1), PayloadHandle(1)});
    }
    return a;
  }

  // Polls every executor at `now`, doing what it says, until all are idle.
  void run(TimePoint now) {
    for (bool busy = true; busy;) {
      busy = false;
      for (Executor* executor : worker_.executors()) {
        if (!executor->poll(now).run) continue;
        executor->finish(now, now + Duration::milliseconds(1), executor->perform());
        busy = true;
      }
    }
  }

  OneRow payloads_{100, 50};
  FakeEngine engine_{payloads_, 4096};
  Outcomes outcomes_;
  CountingWaker waker_;
  Worker worker_;
  uint64_t next_id_ = 1;
};

TEST_F(WorkerTest, OutcomesHaveWhatIsReadOfEachRow) {
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  Action infer = action(ActionType::kInfer);
  infer.batch_size = 4;
  infer.rows.add({RequestId(2), PayloadHandle(6)});
  worker_.send(infer);
  run(at(5));
  EXPECT_EQ(outcomes_.all.back().conditions[0], 1);
  EXPECT_EQ(outcomes_.all.back().conditions[1], 6);
  EXPECT_EQ(outcomes_.all.back().conditions[2], 0);
  EXPECT_EQ(outcomes_.all.back().counts[0], 0.5f);
  EXPECT_EQ(outcomes_.all.back().counts[1], 3);
  // Another batch does not have those of the one before.
  worker_.send(action(ActionType::kInfer));
  run(at(10));
  EXPECT_EQ(outcomes_.all.back().conditions[0], 1);
  EXPECT_EQ(outcomes_.all.back().conditions[1], 0);
  EXPECT_EQ(outcomes_.all.back().counts[1], 0);
}

TEST_F(WorkerTest, RowsThatFailedAreNotFinished) {
  RowSet failed;
  failed.set(0);
  RowConditions conditions;
  InferWork work{.action = action(ActionType::kInfer), .failed_rows = &failed, .conditions = &conditions};
  work.action.rows.add({RequestId(2), PayloadHandle(6)});
  finish_rows(payloads_, work);
  EXPECT_EQ(conditions[0], 0);
  EXPECT_EQ(conditions[1], 6);
}

TEST_F(WorkerTest, LoadsInfersAndUnloads) {
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  const std::vector<PageIndex>& pages = engine_.pages(ModelId(kModel));
  EXPECT_EQ(std::set<PageIndex>(pages.begin(), pages.end()).size(), 3u);
  EXPECT_EQ(worker_.load().page_cache().free_pages(), 1u);
  worker_.send(action(ActionType::kInfer));
  run(at(5));
  worker_.send(action(ActionType::kUnload));
  run(at(9));
  EXPECT_THAT(outcomes_.statuses(), ElementsAre(OutcomeStatus::kDone, OutcomeStatus::kDone, OutcomeStatus::kDone));
  EXPECT_EQ(outcomes_.all[1].start, at(5));
  EXPECT_EQ(outcomes_.all[1].duration, Duration::milliseconds(1));
  EXPECT_EQ(engine_.outputs(), 1);
  EXPECT_EQ(engine_.unloads(), 1);
  EXPECT_EQ(worker_.load().page_cache().free_pages(), 4u);
}

class WorkerRangesTest : public WorkerTest {
 protected:
  WorkerRangesTest() {
    worker_.send(action(ActionType::kLoad));
    run(at(0));
    outcomes_.all.clear();
  }
  OutcomeStatus infer(OperatorRange range, uint64_t request = 1, ContextIndex context = 0) {
    Action infer = action(ActionType::kInfer);
    infer.range = range;
    infer.context = context;
    infer.rows = BatchRows();
    infer.rows.add({RequestId(request), PayloadHandle(1)});
    worker_.send(infer);
    run(at(1));
    return outcomes_.all.back().status;
  }
};

TEST_F(WorkerRangesTest, ABatchKeepsItsPlaceFromItsFirstRangeToItsLast) {
  const uint64_t free = worker_.input().io_bytes_free();
  EXPECT_EQ(infer({0, 2}), OutcomeStatus::kDone);
  EXPECT_LT(worker_.input().io_bytes_free(), free);
  EXPECT_EQ(engine_.outputs(), 0);
  EXPECT_EQ(infer({2, 3}), OutcomeStatus::kDone);
  EXPECT_EQ(engine_.outputs(), 0);
  EXPECT_EQ(infer({3, OperatorRange::kEnd}), OutcomeStatus::kDone);
  EXPECT_EQ(engine_.outputs(), 1);
  run(at(2));
  EXPECT_EQ(worker_.input().io_bytes_free(), free);
}

TEST_F(WorkerRangesTest, RefusesToGoOnWithWhatTheContextDoesNotHold) {
  EXPECT_EQ(infer({2, 3}), OutcomeStatus::kNoContext) << "it holds nothing";
  EXPECT_EQ(infer({0, 2}, 1, 1), OutcomeStatus::kNoContext) << "there is no such context";
  EXPECT_EQ(infer({2, 2}), OutcomeStatus::kNoContext) << "no operator";
  EXPECT_EQ(infer({0, 2}), OutcomeStatus::kDone);
  EXPECT_EQ(infer({3, 4}), OutcomeStatus::kNoContext) << "operator 2 was left out";
  EXPECT_EQ(infer({2, 3}, 7), OutcomeStatus::kNoContext) << "the batch of another request";
  EXPECT_EQ(infer({2, 3}), OutcomeStatus::kDone);
}

TEST_F(WorkerRangesTest, ABatchThatBeginsTakesThePlaceOfOneThatWasGivenUp) {
  const uint64_t free = worker_.input().io_bytes_free();
  EXPECT_EQ(infer({0, 2}, 1), OutcomeStatus::kDone);
  EXPECT_EQ(infer({0, 2}, 2), OutcomeStatus::kDone);
  EXPECT_EQ(infer({2, 3}, 1), OutcomeStatus::kNoContext);
  EXPECT_EQ(infer({2, OperatorRange::kEnd}, 2), OutcomeStatus::kDone);
  run(at(2));
  EXPECT_EQ(worker_.input().io_bytes_free(), free);
}

TEST_F(WorkerRangesTest, ARangeThatIsRefusedEndsItsBatch) {
  const uint64_t free = worker_.input().io_bytes_free();
  EXPECT_EQ(infer({0, 2}), OutcomeStatus::kDone);
  Action late = action(ActionType::kInfer);
  late.range = {2, 3};
  late.latest = at(0);
  worker_.send(late);
  run(at(3));
  EXPECT_EQ(outcomes_.all.back().status, OutcomeStatus::kTooLate);
  EXPECT_EQ(infer({2, 3}), OutcomeStatus::kNoContext);
  EXPECT_EQ(worker_.input().io_bytes_free(), free);
}

TEST_F(WorkerRangesTest, RefusesToCutWhereTheProgramHasNoOperator) {
  auto info = std::make_shared<ModelInfo>();
  info->id = ModelId(0);
  info->inputs = {{"x", DataType::kUint8, {100}, {""}}};
  info->outputs = {{"y", DataType::kUint8, {50}, {""}}};
  info->buckets.resize(1);
  WorkerModel model = engine_.add({info}).value();
  model.operator_counts = {3};
  worker_.add_model(model);
  const auto cut = [this](OperatorRange range) {
    Action infer = action(ActionType::kInfer, 0);
    infer.range = range;
    worker_.send(infer);
    run(at(1));
    return outcomes_.all.back().status;
  };
  EXPECT_EQ(cut({0, 3}), OutcomeStatus::kNoContext) << "a whole batch that says that it is none";
  EXPECT_EQ(cut({0, 2}), OutcomeStatus::kNotLoaded) << "it came as far as EXEC";
}

// Which context of the device each EXEC has.
class ContextEngine : public FakeEngine {
 public:
  using FakeEngine::FakeEngine;
  Status run(const InferWork& work) override {
    contexts.push_back(work.part.context);
    return FakeEngine::run(work);
  }
  std::vector<ContextIndex> contexts;
};

// Between the ranges of a batch whole plans run, in whichever context their actions name.
TEST(WorkerContextsTest, UnfinishedBatchesHaveContextsOfTheirOwn) {
  OneRow payloads(100, 50);
  ContextEngine engine(payloads, 4096);
  Outcomes outcomes;
  CountingWaker waker;
  const WorkerOptions options{
      .page_count = 4, .io_cache_bytes = 4096, .models_max = 1, .lane_count = 2, .context_count = 3};
  EXPECT_EQ(device_contexts(options.lane_count, options.context_count), 5u);
  EXPECT_EQ(device_contexts(2, 1), 2u);
  Worker worker(options, engine, outcomes, {waker, waker, waker, waker, {&waker}});
  auto info = std::make_shared<ModelInfo>();
  info->id = ModelId(0);
  info->inputs = {{"x", DataType::kUint8, {100}, {""}}};
  info->outputs = {{"y", DataType::kUint8, {50}, {""}}};
  info->buckets.resize(1);
  worker.add_model(engine.add({info}).value());
  EXPECT_TRUE(engine.prepare(ModelId(0), 0).ok());
  EXPECT_TRUE(worker.load_now(ModelId(0)).ok());
  uint64_t actions = 0;
  const auto infer = [&](OperatorRange range, ContextIndex context, LaneInterval lanes) {
    Action action{.id = ActionId(++actions), .model = ModelId(0), .latest = at(1000), .batch_size = 1};
    action.range = range;
    action.context = context;
    action.lanes = lanes;
    action.rows.add({RequestId(context + 1), PayloadHandle(1)});
    worker.send(action);
    for (bool busy = true; busy;) {
      busy = false;
      for (Executor* executor : worker.executors()) {
        if (!executor->poll(at(0)).run) continue;
        executor->finish(at(0), at(1), executor->perform());
        busy = true;
      }
    }
    EXPECT_EQ(outcomes.all.back().status, OutcomeStatus::kDone);
  };
  infer({0, 2}, 0, {0, 1});
  infer({0, 1}, 2, {1, 1});
  infer({}, 1, {0, 1});
  infer({}, 1, {1, 1});
  infer({2, OperatorRange::kEnd}, 0, {1, 1});
  infer({1, OperatorRange::kEnd}, 2, {0, 1});
  EXPECT_THAT(engine.contexts, ElementsAre(2, 4, 0, 1, 2, 4));
}

TEST_F(WorkerTest, WaitsForTheWindowAndRefusesAfterIt) {
  Action early = action(ActionType::kLoad);
  early.earliest = at(10);
  worker_.send(early);
  Executor* load = worker_.executors()[0];
  const Executor::Step step = load->poll(at(3));
  EXPECT_FALSE(step.run);
  EXPECT_EQ(step.wake, at(10));
  EXPECT_TRUE(outcomes_.all.empty());

  Action late = action(ActionType::kInfer);
  late.latest = at(2);
  worker_.send(late);
  run(at(3));
  EXPECT_THAT(outcomes_.statuses(), ElementsAre(OutcomeStatus::kTooLate));
  EXPECT_EQ(engine_.outputs(), 0);
}

TEST_F(WorkerTest, RefusesWhatCannotBeDone) {
  worker_.send(action(ActionType::kInfer));  // not loaded
  run(at(0));
  worker_.send(action(ActionType::kUnload));   // not loaded
  worker_.send(action(ActionType::kLoad, 7));  // unknown
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  worker_.send(action(ActionType::kLoad));               // loaded already
  worker_.send(action(ActionType::kLoad, kModel + 1));   // one page is left of two
  worker_.send(action(ActionType::kInfer, kModel + 1));  // 8,000 bytes do not fit in the io cache
  Action odd = action(ActionType::kInfer);
  odd.batch_size = 3;  // not compiled
  worker_.send(odd);
  run(at(1));
  EXPECT_THAT(outcomes_.statuses(),
              ElementsAre(OutcomeStatus::kNotLoaded, OutcomeStatus::kNotLoaded, OutcomeStatus::kUnknownModel,
                          OutcomeStatus::kDone, OutcomeStatus::kBusy, OutcomeStatus::kNoPages,
                          OutcomeStatus::kNoIoMemory, OutcomeStatus::kUnknownModel));
}

TEST_F(WorkerTest, AFailedLoadGivesItsPagesBack) {
  engine_.set_load_status(Status::internal("disk"));
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  EXPECT_THAT(outcomes_.statuses(), ElementsAre(OutcomeStatus::kFailed));
  EXPECT_EQ(worker_.load().page_cache().free_pages(), 4u);
  EXPECT_FALSE(worker_.resident(ModelId(kModel)));
}

TEST_F(WorkerTest, AFailedExecIsReportedAndGivesItsMemoryBack) {
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  engine_.set_run_status(Status::internal("kernel"));
  worker_.send(action(ActionType::kInfer));
  run(at(1));
  EXPECT_EQ(outcomes_.all.back().status, OutcomeStatus::kFailed);
  EXPECT_EQ(engine_.outputs(), 0);
  run(at(2));
  EXPECT_EQ(worker_.input().io_bytes_free(), 4096u);
}

TEST_F(WorkerTest, AnUnloadUnderAnExecIsRefused) {
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  worker_.send(action(ActionType::kInfer));
  Executor* input = worker_.executors()[1];
  ASSERT_TRUE(input->poll(at(1)).run);
  input->finish(at(1), at(1), input->perform());
  Executor* exec = worker_.executors()[2];
  ASSERT_TRUE(exec->poll(at(1)).run);
  worker_.send(action(ActionType::kUnload));
  worker_.executors()[0]->poll(at(1));
  EXPECT_EQ(outcomes_.all.back().status, OutcomeStatus::kBusy);
  EXPECT_TRUE(worker_.resident(ModelId(kModel)));
  exec->finish(at(1), at(2), exec->perform());
}

// The large one is being copied when the small one is there.
TEST(WorkerOutputsTest, ALargeResultKeepsNoSmallOneWaiting) {
  OneRow payloads(100, 50);
  FakeEngine engine(payloads, 1 << 20);
  Outcomes outcomes;
  CountingWaker waker;
  CountingWaker large_waker;
  Worker worker({.page_count = 2, .io_cache_bytes = 1 << 20, .models_max = 2}, engine, outcomes,
                {waker, waker, waker, waker, {}, &large_waker});
  for (uint32_t id = 0; id < 2; ++id) {
    auto info = std::make_shared<ModelInfo>();
    info->id = ModelId(id);
    info->inputs = {{"x", DataType::kUint8, {100}, {""}}};
    info->outputs = {{"y", DataType::kUint8, {50}, {""}}};
    info->buckets.resize(1);
    WorkerModel model = engine.add({info}).value();
    if (id == 0) model.io_bytes = {{100, kSmallBytes + 1}};
    worker.add_model(model);
    EXPECT_TRUE(engine.prepare(ModelId(id), 0).ok());
    EXPECT_TRUE(worker.load_now(ModelId(id)).ok());
  }
  const std::vector<Executor*> executors = worker.executors();
  ASSERT_EQ(executors.size(), 5u);
  const auto run = [&](std::initializer_list<size_t> which) {
    for (const size_t i : which) {
      while (executors[i]->poll(at(0)).run) executors[i]->finish(at(0), at(0), executors[i]->perform());
    }
  };
  const auto infer = [&](uint32_t model) {
    Action action{.id = ActionId(model + 1), .model = ModelId(model), .latest = at(1000), .batch_size = 1};
    action.rows.add({RequestId(model + 1), PayloadHandle(1)});
    worker.send(action);
    run({1, 2});
  };
  infer(0);
  EXPECT_EQ(large_waker.wakes, 1);
  Executor* large = executors[4];
  EXPECT_EQ(std::string(large->name()), "large_output");
  ASSERT_TRUE(large->poll(at(0)).run);
  infer(1);
  run({3});
  ASSERT_EQ(outcomes.all.size(), 1u);
  EXPECT_EQ(outcomes.all[0].action, ActionId(2));
  large->finish(at(0), at(5), large->perform());
  ASSERT_EQ(outcomes.all.size(), 2u);
  EXPECT_EQ(outcomes.all[1].action, ActionId(1));
  EXPECT_EQ(outcomes.all[1].output_end, at(5));
  run({1});
  EXPECT_EQ(worker.input().io_bytes_free(), uint64_t{1} << 20) << "both gave back what they had";
}

// Three results wait for OUTPUT: those of best effort have windows that never close.
TEST_F(WorkerTest, OutputTakesTheResultWhoseWindowClosesFirst) {
  worker_.send(action(ActionType::kLoad));
  run(at(0));
  outcomes_.all.clear();
  const auto send = [&](TimePoint latest) {
    Action infer = action(ActionType::kInfer);
    infer.latest = latest;
    worker_.send(infer);
    return infer.id;
  };
  const ActionId first = send(TimePoint::infinite_future());
  const ActionId second = send(TimePoint::infinite_future());
  const ActionId urgent = send(at(20));
  const std::vector<Executor*> executors = worker_.executors();
  for (Executor* executor : {executors[1], executors[2]}) {
    while (executor->poll(at(1)).run) executor->finish(at(1), at(1), executor->perform());
  }
  run(at(2));
  ASSERT_EQ(outcomes_.all.size(), 3u);
  EXPECT_EQ(outcomes_.all[0].action, urgent);
  EXPECT_EQ(outcomes_.all[1].action, first);
  EXPECT_EQ(outcomes_.all[2].action, second);
}

TEST_F(WorkerTest, AFullQueueIsSaidAtOnce) {
  for (int i = 0; i < 5; ++i) worker_.send(action(ActionType::kLoad));
  ASSERT_EQ(outcomes_.all.size(), 1u);
  EXPECT_EQ(outcomes_.all[0].status, OutcomeStatus::kQueueFull);
}

}  // namespace
}  // namespace foliot
