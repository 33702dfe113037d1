// ControllerTest: a controller under test, with a device of four pages and two models of three, whose
// policy makes the test's proposals.
#ifndef FOLIOT_CONTROL_CONTROLLER_TEST_CONTROLLER_H_
#define FOLIOT_CONTROL_CONTROLLER_TEST_CONTROLLER_H_

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "control/controller/controller.h"
#include "foundation/base/test_time.h"

namespace foliot {

// A policy with the proposals of the test.
class ScriptedPolicy : public Policy {
 public:
  using Script = std::function<void(Dispatcher&)>;
  void on_request(const Request& request, TimePoint) override {
    queued.push_back(request.id);
    last = request;
  }
  void on_withdrawn(const Request& request, TimePoint) override { std::erase(queued, request.id); }
  void on_outcome(const Action&, const Outcome&, TimePoint) override {}
  void on_device_changed(DeviceId, TimePoint) override { ++device_changes; }
  void on_target_changed(ModelId, TimePoint) override { ++target_changes; }
  void on_model_added(const ModelInfo&, TimePoint) override {}
  void on_model_removed(ModelId, TimePoint) override {}
  TimePoint plan(TimePoint, Dispatcher& dispatcher) override {
    if (script) std::exchange(script, nullptr)(dispatcher);
    return TimePoint::infinite_future();
  }
  Script script;
  std::deque<RequestId> queued;
  Request last;  // that was queued
  int device_changes = 0;
  int target_changes = 0;
};

class Sink : public ActionSink, public CompletionSink {
 public:
  void send(const Action& action) override { actions.push_back(action); }
  void complete(const Completion& completion) override {
    EXPECT_TRUE(completions.emplace(completion.id, completion).second) << "answered twice";
    answered.push_back(completion.id);
  }
  std::vector<Action> actions;
  std::map<RequestId, Completion> completions;
  std::vector<RequestId> answered;  // in this order
};

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() { make({.timing = {.margin_min = {}, .margin_fixed = ms(3)}}); }

  void make(const ControllerOptions& options) {
    sink_ = {};
    controller_ = std::make_unique<Controller>(
        options,
        [this](const Cluster&) {
          auto policy = std::make_unique<ScriptedPolicy>();
          policy_ = policy.get();
          return policy;
        },
        sink_, sink_);
    controller_->add_device(4, at(0));
    for (uint32_t id = 0; id < 2; ++id) {
      auto model = std::make_shared<ModelInfo>();
      model->id = ModelId(id);
      model->only().batch_sizes = {1, 2};
      model->only().pages = 3;
      model->only().seed_load = ms(5);
      model->buckets.resize(1);
      model->only().seed_exec = {{ms(2), ms(3)}};
      controller_->add_model(model, at(0));
    }
  }

  void propose(const ScriptedPolicy::Script& script, TimePoint now = at(0)) {
    policy_->script = script;
    controller_->turn(now);
  }
  Verdict load(uint32_t model, uint32_t device = 0, TimePoint now = at(0)) {
    Verdict verdict{};
    propose([&](Dispatcher& d) { verdict = d.load(DeviceId(device), ModelId(model), {now, now + ms(100)}); }, now);
    return verdict;
  }
  Verdict unload(uint32_t model) {
    Verdict verdict{};
    propose([&](Dispatcher& d) { verdict = d.unload(DeviceId(0), ModelId(model)); });
    return verdict;
  }
  Verdict infer(std::vector<RequestId> requests, uint32_t model = 0, uint32_t batch_size = 1, uint32_t device = 0,
                LaneInterval lanes = {}) {
    Verdict verdict{};
    propose([&](Dispatcher& d) {
      verdict = d.infer(DeviceId(device), ModelId(model), BucketId(0), batch_size, lanes, requests, {at(0), at(100)});
    });
    return verdict;
  }
  void request(uint64_t id, uint32_t model = 0, TimePoint deadline = at(90)) {
    controller_->on_request({.id = RequestId(id), .model = ModelId(model), .deadline = deadline}, at(0));
  }
  void outcome(OutcomeStatus status = OutcomeStatus::kDone, TimePoint end = at(10)) {
    outcome_of(Action(sink_.actions.back()), status, end);
  }
  void outcome_of(const Action& action, OutcomeStatus status, TimePoint end) {
    controller_->on_outcome({.action = action.id,
                             .type = action.type,
                             .device = action.device,
                             .model = action.model,
                             .status = status,
                             .start = end - ms(2),
                             .end = end,
                             .duration = ms(2),
                             .output_end = end},
                            end);
  }
  void lose() { controller_->lose_device(DeviceId(0), DeviceTrouble::kLink, at(20)); }
  void join(const std::vector<ModelId>& residents) { controller_->join_device(DeviceId(0), 4, residents, at(30)); }
  void load_model(uint32_t model = 0, uint32_t device = 0) {
    ASSERT_EQ(load(model, device), Verdict::kAccepted);
    outcome();
  }
  const Completion& completion(uint64_t id) { return sink_.completions.at(RequestId(id)); }

  Sink sink_;
  ScriptedPolicy* policy_ = nullptr;
  std::unique_ptr<Controller> controller_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_TEST_CONTROLLER_H_
