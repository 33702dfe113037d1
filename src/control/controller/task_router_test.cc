#include "control/controller/task_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "control/controller/controller.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::HasSubstr;

// Keeps requests until the test says which of them run.
class HoldingPolicy : public Policy {
 public:
  void on_request(const Request& request, TimePoint) override { queued.push_back(request); }
  void on_withdrawn(const Request& request, TimePoint) override {
    std::erase_if(queued, [&](const Request& each) { return each.id == request.id; });
  }
  void on_outcome(const Action&, const Outcome&, TimePoint) override {}
  void on_device_changed(DeviceId, TimePoint) override {}
  void on_target_changed(ModelId, TimePoint) override {}
  void on_model_added(const ModelInfo&, TimePoint) override {}
  void on_model_removed(ModelId, TimePoint) override {}
  TimePoint plan(TimePoint, Dispatcher& dispatcher) override {
    if (script) std::exchange(script, nullptr)(dispatcher);
    return TimePoint::infinite_future();
  }
  std::function<void(Dispatcher&)> script;
  std::vector<Request> queued;
};

class TaskPorts : public ActionSink, public CompletionSink {
 public:
  void send(const Action& action) override { actions.push_back(action); }
  void complete(const Completion& completion) override {
    EXPECT_TRUE(completions.emplace(completion.id, completion).second) << "answered twice";
  }
  std::vector<Action> actions;
  std::map<RequestId, Completion> completions;
};

constexpr ModelId kThrifty{0};  // accuracy 0.7; 10 ms, and 16 ms for 8 rows: 500 rows per second
constexpr ModelId kQuick{1};    // accuracy 0.7; 4 ms: 250 rows per second
constexpr ModelId kExact{2};    // accuracy 0.9; 20 ms: 50 rows per second
constexpr ServedTaskId kTask{1};

// The controller's margin is zero, and its three models fit the one device.
class TaskRouterTest : public testing::Test {
 protected:
  TaskRouterTest() { make("predicted"); }

  void make(const std::string& policy) {
    ports_ = {};
    ControllerOptions options{.timing = {.margin_min = {}, .margin_fixed = Duration()}};
    options.tasks.policy = policy;
    controller_ = std::make_unique<Controller>(
        options,
        [this](const Cluster&) {
          auto made = std::make_unique<HoldingPolicy>();
          policy_ = made.get();
          return made;
        },
        ports_, ports_);
    controller_->add_device(8, at(0));
    add_model(kThrifty, "thrifty", {1, 8}, {ms(10), ms(16)});
    add_model(kQuick, "quick", {1}, {ms(4)});
    add_model(kExact, "exact", {1}, {ms(20)});
    auto task = std::make_shared<TaskInfo>();
    task->id = kTask;
    task->name = "photos";
    task->variants = {{model(kThrifty), 0.7}, {model(kQuick), 0.7}, {model(kExact), 0.9}};
    controller_->add_task(task);
  }
  void add_model(ModelId id, std::string name, std::vector<uint32_t> sizes, std::vector<Duration> execs) {
    auto info = std::make_shared<ModelInfo>();
    info->id = id;
    info->name = std::move(name);
    info->buckets.resize(1);
    info->only().batch_sizes = std::move(sizes);
    info->only().seed_load = ms(100);
    info->only().seed_exec = {std::move(execs)};
    controller_->add_model(info, at(0));
  }
  std::shared_ptr<const ModelInfo> model(ModelId id) const { return controller_->cluster().models[id.value()]; }

  void propose(const std::function<void(Dispatcher&)>& script, TimePoint now = at(0)) {
    policy_->script = script;
    controller_->turn(now);
  }
  void over(TimePoint end, Duration took) {
    const Action action = ports_.actions.back();
    controller_->on_outcome({.action = action.id,
                             .type = action.type,
                             .device = action.device,
                             .model = action.model,
                             .status = OutcomeStatus::kDone,
                             .start = end - took,
                             .end = end,
                             .duration = took,
                             .output_end = end},
                            end);
  }
  void load(ModelId id) {
    Verdict verdict{};
    propose([&](Dispatcher& d) { verdict = d.load(DeviceId(0), id, {at(0), at(10)}); });
    ASSERT_EQ(verdict, Verdict::kAccepted);
    over(at(0), Duration());
  }
  void load_all() {
    for (const ModelId id : {kThrifty, kQuick, kExact}) load(id);
  }
  // Which variant the request gets that has so long; infinite: best effort.
  ModelId asked(Duration slo, TaskRequirements requirements = {}, TimePoint now = at(0)) {
    Request request{.id = RequestId(++last_id_), .task = kTask, .requirements = requirements, .arrival = now};
    request.deadline = slo == Duration::max() ? TimePoint::infinite_future() : now + slo;
    request.call = request.id;
    controller_->on_request(request, now);
    return policy_->queued.empty() || policy_->queued.back().id != request.id ? ModelId(99)
                                                                              : policy_->queued.back().model;
  }
  const Completion& last_completion() { return ports_.completions.at(RequestId(last_id_)); }

  TaskPorts ports_;
  HoldingPolicy* policy_ = nullptr;
  std::unique_ptr<Controller> controller_;
  uint64_t last_id_ = 0;
};

TEST_F(TaskRouterTest, TheCheapestVariantThatIsInTimeAnswers) {
  load_all();
  EXPECT_EQ(asked(ms(90)), kThrifty);
  EXPECT_EQ(asked(Duration::max()), kThrifty);
  EXPECT_EQ(asked(ms(90), {.accuracy = 0.8}), kExact);
}

TEST_F(TaskRouterTest, WhatWaitsCounts) {
  load_all();
  EXPECT_EQ(asked(ms(15)), kThrifty);
  // 10 ms of work wait now: the quick variant would answer after 14 ms, and two rows of the thrifty
  // one share a batch of 16 ms.
  EXPECT_EQ(asked(ms(15)), kQuick);
  EXPECT_EQ(asked(ms(50)), kThrifty);
}

TEST_F(TaskRouterTest, RowsOfACallGetOneVariant) {
  load_all();
  for (uint64_t row = 1; row <= 3; ++row) {
    controller_->on_request({.id = RequestId(100 + row),
                             .task = kTask,
                             .call = RequestId(101),
                             .call_rows = 3,
                             .arrival = at(0),
                             .deadline = at(17)},
                            at(0));
    EXPECT_EQ(policy_->queued.back().model, kThrifty) << row;
    // Three full batches wait from now on: another variant would answer first.
    for (uint64_t id = 0; row == 2 && id < 22; ++id) {
      controller_->on_request({.id = RequestId(200 + id), .model = kThrifty, .arrival = at(0), .deadline = at(90)},
                              at(0));
    }
  }
}

TEST_F(TaskRouterTest, ACallThatEndsBeforeItsLastRowIsForgotten) {
  load_all();
  const auto ask_row = [&](uint64_t row, double accuracy) {
    controller_->on_request({.id = RequestId(100 + row),
                             .task = kTask,
                             .requirements = {.accuracy = accuracy},
                             .call = RequestId(101),
                             .call_rows = 3,
                             .arrival = at(0),
                             .deadline = at(90)},
                            at(0));
    return policy_->queued.back().model;
  };
  EXPECT_EQ(ask_row(1, 0), kThrifty);
  EXPECT_EQ(ask_row(2, 0.9), kThrifty) << "as the first";
  controller_->end_call(RequestId(101));
  EXPECT_EQ(ask_row(3, 0.9), kExact) << "a choice of its own";
}

TEST_F(TaskRouterTest, WhatIsNotLoadedAnswersIfThereIsTimeToLoad) {
  EXPECT_EQ(asked(ms(150)), kQuick) << "with its LOAD it answers first";
  load(kExact);
  EXPECT_EQ(asked(ms(60)), kExact) << "the only one that is loaded";
  EXPECT_EQ(asked(ms(3)), kExact) << "none is in time: the scheduling policy has the last word";
  load(kThrifty);
  EXPECT_EQ(asked(ms(90)), kThrifty);
}

// The cheapest one's LOAD is over at 100 ms.
TEST_F(TaskRouterTest, WhatIsBeingLoadedAnswersIfThereIsTimeForTheRest) {
  load(kQuick);
  propose([&](Dispatcher& d) { EXPECT_EQ(d.load(DeviceId(0), kThrifty, {at(0), at(10)}), Verdict::kAccepted); });
  EXPECT_EQ(asked(ms(90)), kQuick);
  EXPECT_EQ(asked(ms(130)), kThrifty);
}

TEST_F(TaskRouterTest, MeasuredDurationsCount) {
  load_all();
  EXPECT_EQ(asked(ms(12)), kThrifty);
  propose([&](Dispatcher& d) {
    const std::vector<RequestId> rows{RequestId(last_id_)};
    EXPECT_EQ(d.infer(DeviceId(0), kThrifty, BucketId(0), 1, {}, rows, {at(0), at(10)}), Verdict::kAccepted);
  });
  over(at(14), ms(14));
  EXPECT_EQ(last_completion().task, kTask);
  EXPECT_EQ(last_completion().model, kThrifty);
  EXPECT_EQ(asked(ms(12), {}, at(20)), kQuick);
}

TEST_F(TaskRouterTest, AShorterMeasuredDurationMakesAVariantEligible) {
  load_all();
  EXPECT_EQ(asked(ms(5)), kQuick);
  EXPECT_EQ(asked(ms(50)), kThrifty);
  propose([&](Dispatcher& d) {
    const std::vector<RequestId> rows{RequestId(last_id_)};
    EXPECT_EQ(d.infer(DeviceId(0), kThrifty, BucketId(0), 1, {}, rows, {at(0), at(10)}), Verdict::kAccepted);
  });
  over(at(2), ms(2));
  controller_->on_cancel(RequestId(1), Refusal::kCancelled, at(2));
  EXPECT_EQ(asked(ms(5), {}, at(20)), kThrifty);
}

TEST_F(TaskRouterTest, InfaasAvoidsInstancesThatAreSlowerThanProfiled) {
  make("infaas");
  load_all();
  EXPECT_EQ(asked(ms(50)), kThrifty);
  propose([&](Dispatcher& d) {
    const std::vector<RequestId> rows{RequestId(last_id_)};
    EXPECT_EQ(d.infer(DeviceId(0), kThrifty, BucketId(0), 1, {}, rows, {at(0), at(10)}), Verdict::kAccepted);
  });
  over(at(14), ms(14));
  EXPECT_EQ(asked(ms(50), {}, at(20)), kQuick);
}

TEST_F(TaskRouterTest, AnImpossibleCostNamesTheNearest) {
  load_all();
  EXPECT_EQ(asked(ms(90), {.accuracy = 0.8, .cost_nanodollars_most = 10}), ModelId(99));
  EXPECT_EQ(last_completion().refusal, Refusal::kUnmeetable);
  EXPECT_EQ(last_completion().model, kExact);
  EXPECT_EQ(last_completion().unmet, UnmetRequirement::kCost);
  EXPECT_THAT(last_completion().detail, HasSubstr("the nearest is 'exact': accuracy 0.9, $5.56e-06"));
}

TEST_F(TaskRouterTest, AnUnmeetableRequestNamesItsVariant) {
  load_all();
  asked(ms(3));
  propose([&](Dispatcher& d) { d.refuse(RequestId(last_id_), Refusal::kUnmeetable, at(4)); });
  EXPECT_THAT(last_completion().detail,
              HasSubstr("of task 'photos', variant 'quick' comes nearest: accuracy 0.7, 4 ms"));
  EXPECT_EQ(last_completion().unmet, UnmetRequirement::kNone);
}

TEST_F(TaskRouterTest, ATaskThatIsGoneIsRefused) {
  load_all();
  controller_->remove_task(kTask);
  asked(ms(90));
  EXPECT_EQ(last_completion().refusal, Refusal::kUnloaded);
}

TEST_F(TaskRouterTest, AModelThatLeavesIsNotChosen) {
  load_all();
  controller_->remove_model(kThrifty, at(0));
  EXPECT_EQ(asked(ms(90)), kQuick);
  controller_->lose_device(DeviceId(0), DeviceTrouble::kLink, at(1));
  asked(ms(90));
  EXPECT_EQ(last_completion().refusal, Refusal::kWorkerLost);
}

TEST_F(TaskRouterTest, RequestsThatWaitedBeforeTheFirstTaskCount) {
  load_all();
  // As many as fill 3 batches of the thrifty one, which are 48 ms.
  controller_->remove_task(kTask);
  for (uint64_t id = 200; id < 224; ++id) {
    controller_->on_request({.id = RequestId(id), .model = kThrifty, .arrival = at(0), .deadline = at(90)}, at(0));
  }
  auto task = std::make_shared<TaskInfo>();
  task->id = kTask;
  task->name = "photos";
  task->variants = {{model(kThrifty), 0.7}, {model(kQuick), 0.7}};
  controller_->add_task(task);
  EXPECT_EQ(asked(ms(55)), kQuick) << "after 52 ms, and not after 58 ms";
}

TEST_F(TaskRouterTest, UnderOverloadScaledGivesUpAccuracy) {
  make("scaled");
  load_all();
  EXPECT_EQ(asked(ms(60)), kExact) << "in half of the time";
  EXPECT_NE(asked(ms(60)), kExact) << "20 ms wait already";
}

}  // namespace
}  // namespace foliot
