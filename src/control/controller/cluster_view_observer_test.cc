#include "control/controller/cluster_view_observer.h"

#include <gtest/gtest.h>

#include <memory>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

class Views : public ClusterViewSink {
 public:
  bool wants_view() override { return wanted; }
  void on_view(const ClusterView& view) override { all.push_back(view); }
  bool wanted = true;
  std::vector<ClusterView> all;
};

// Two devices of kind cpu, one of kind gpu; model 0 runs on both kinds, model 1 on cpu.
class ClusterViewObserverTest : public ::testing::Test {
 protected:
  ClusterViewObserverTest() {
    cluster_.add_device(cluster_.intern_kind("cpu"), 8);
    cluster_.add_device(cluster_.intern_kind("cpu"), 8);
    cluster_.add_device(cluster_.intern_kind("gpu"), 20);
    add_model(0, {"cpu", "gpu"});
    add_model(1, {"cpu"});
  }

  void add_model(uint32_t id, const std::vector<std::string>& kinds) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->buckets.resize(1);
    model->runnables.clear();
    for (const std::string& kind : kinds) {
      model->runnables.push_back(
          {.kind = kind, .batch_sizes = {1, 2}, .seed_load = ms(8), .seed_exec = {{ms(2), ms(3)}}});
    }
    cluster_.add_model(model);
    observer_.on_model(*model);
  }
  Request request(uint64_t id, uint32_t model, int64_t when, bool offline = false) {
    const Request request{.id = RequestId(id),
                          .model = ModelId(model),
                          .deadline = offline ? TimePoint::infinite_future() : at(when + 50),
                          .offline = offline};
    observer_.on_request(request, at(when));
    return request;
  }
  Action infer(uint64_t id, int64_t when) {
    Action action{.id = ActionId(id), .type = ActionType::kInfer, .device = DeviceId(0), .batch_size = 1};
    action.rows.add({RequestId(id), {}});
    observer_.on_action(action, at(when));
    return action;
  }
  void over(const Action& action, int64_t when, OutcomeStatus status = OutcomeStatus::kDone) {
    observer_.on_outcome(action, {.action = action.id, .status = status, .duration = ms(20)}, at(when));
  }
  void complete(uint64_t id, Refusal refusal, int64_t when) {
    observer_.on_completion({.id = RequestId(id), .refusal = refusal}, at(when));
  }
  uint32_t queued(uint32_t model, RequestClass request_class) {
    return views_.all.back().models[model].queued[static_cast<size_t>(request_class)];
  }

  Cluster cluster_;
  Views views_;
  ClusterViewObserver observer_{cluster_, views_, at(0), ms(100)};
};

TEST_F(ClusterViewObserverTest, CountsWhileViewsAreWanted) {
  request(1, 0, 50);
  views_.wanted = false;
  request(2, 0, 150);
  EXPECT_TRUE(views_.all.empty());
  views_.wanted = true;
  request(3, 0, 160);
  complete(1, Refusal::kNone, 170);
  complete(2, Refusal::kExpired, 170);
  observer_.on_time(at(259));
  EXPECT_TRUE(views_.all.empty()) << "an interval after they were wanted again";
  observer_.on_time(at(260));
  ASSERT_EQ(views_.all.size(), 1u);
  EXPECT_EQ(views_.all[0].interval, ms(100));
  const ModelView& model = views_.all[0].models[0];
  EXPECT_EQ(model.arrivals, 2u) << "1 and 3";
  EXPECT_EQ(model.in_time + model.refused, 0u);
  EXPECT_EQ(queued(0, RequestClass::kDeadline), 1u) << "3";
}

TEST_F(ClusterViewObserverTest, CountsWhatComesWaitsAndEnds) {
  for (uint64_t id = 1; id <= 5; ++id) request(id, 0, 10);
  request(6, 1, 10, true);
  over(infer(1, 20), 40);
  complete(1, Refusal::kNone, 40);
  over(infer(2, 40), 60);
  complete(2, Refusal::kLate, 60);
  complete(3, Refusal::kExpired, 70);
  infer(4, 80);
  EXPECT_TRUE(views_.all.empty());
  observer_.on_time(at(100));
  ASSERT_EQ(views_.all.size(), 1u);
  const ModelView& model = views_.all[0].models[0];
  EXPECT_EQ(model.arrivals, 5u);
  EXPECT_DOUBLE_EQ(model.rate, 50);
  EXPECT_EQ(model.in_time, 1u);
  EXPECT_EQ(model.late, 1u);
  EXPECT_EQ(model.refused, 1u);
  EXPECT_EQ(queued(0, RequestClass::kDeadline), 1u) << "4 runs";
  EXPECT_EQ(queued(1, RequestClass::kOffline), 1u);

  observer_.on_time(at(199));
  EXPECT_EQ(views_.all.size(), 1u);
  observer_.on_time(at(300));
  ASSERT_EQ(views_.all.size(), 2u);
  EXPECT_EQ(views_.all[1].interval, ms(200));
  EXPECT_DOUBLE_EQ(views_.all[1].models[0].rate, 0);
  EXPECT_EQ(views_.all[1].models[0].arrivals, 5u);
}

TEST_F(ClusterViewObserverTest, WhatAWorkerRefusedWaitsAgain) {
  request(1, 0, 10);
  over(infer(1, 20), 30, OutcomeStatus::kTooLate);
  observer_.on_time(at(100));
  EXPECT_EQ(queued(0, RequestClass::kDeadline), 1u);
  complete(1, Refusal::kExpired, 110);
  observer_.on_time(at(200));
  EXPECT_EQ(queued(0, RequestClass::kDeadline), 0u);
  EXPECT_EQ(views_.all.back().models[0].refused, 1u);
}

TEST_F(ClusterViewObserverTest, ShowsDevicesByKind) {
  cluster_.devices[1].set_state(DeviceState::kSuspected);
  cluster_.devices[0].sent_load(ActionId(9), ModelId(0), 1, at(0), ms(8), at(0));
  request(1, 0, 10);
  over(infer(1, 20), 40);
  observer_.on_time(at(100));
  const std::vector<KindView>& kinds = views_.all[0].kinds;
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].name, "cpu");
  EXPECT_EQ(kinds[0].devices_up, 1u);
  EXPECT_EQ(kinds[0].pages, 8u);
  EXPECT_EQ(kinds[0].free_pages, 7u);
  EXPECT_DOUBLE_EQ(kinds[0].busy, 0.2);
  EXPECT_EQ(kinds[1].free_pages, 20u);
  EXPECT_DOUBLE_EQ(kinds[1].busy, 0);
}

TEST_F(ClusterViewObserverTest, ShowsCopiesAndDurationsAsTheControllerExpectsThem) {
  observer_.on_time(at(100));
  ASSERT_EQ(views_.all[0].models[0].kinds.size(), 2u);
  ASSERT_EQ(views_.all[0].models[1].kinds.size(), 1u);
  EXPECT_EQ(views_.all[0].models[0].kinds[1].execs, (std::vector{ms(2), ms(3)}));
  EXPECT_EQ(views_.all[0].models[0].kinds[1].load, ms(8));

  cluster_.copies[0] = 2;
  for (int i = 0; i < 100; ++i) cluster_.durations().record_exec({DeviceId(0), ModelId(0), BucketId(0), 1}, ms(6));
  over({.id = ActionId(1), .type = ActionType::kInfer, .device = DeviceId(0), .model = ModelId(0)}, 150);
  observer_.on_time(at(200));
  EXPECT_EQ(views_.all[1].models[0].copies, 2u);
  const Duration expected = cluster_.durations().exec({DeviceId(0), ModelId(0), BucketId(0), 1});
  EXPECT_GT(expected, ms(3));
  EXPECT_EQ(views_.all[1].models[0].kinds[0].execs[1], expected);
}

TEST_F(ClusterViewObserverTest, NothingIsExpectedOfAKindWithoutDevices) {
  add_model(2, {"gpu", "npu"});
  observer_.on_time(at(100));
  ASSERT_EQ(views_.all[0].models[2].kinds.size(), 1u);
  EXPECT_EQ(views_.all[0].kinds[views_.all[0].models[2].kinds[0].kind.value()].name, "gpu");
}

TEST_F(ClusterViewObserverTest, AModelThatIsGoneIsNotServed) {
  cluster_.remove_model(ModelId(1));
  observer_.on_time(at(100));
  EXPECT_TRUE(views_.all[0].models[0].served);
  EXPECT_FALSE(views_.all[0].models[1].served);
  request(1, 7, 110);  // never known
  complete(1, Refusal::kUnloaded, 110);
}

}  // namespace
}  // namespace foliot
