// The parts of a cluster together: over loopback TCP as they run, and on bytes
// carried by hand where a peer misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/sessions/controller_service.h"
#include "cluster/sessions/pipeline_registry.h"
#include "cluster/sessions/test_peer.h"
#include "cluster/transport/client_ids.h"
#include "control/policies/registry.h"
#include "foundation/platform/clock.h"
#include "virtual/emulation/emulated_models.h"
#include "virtual/emulation/request_load.h"
#include "virtual/emulation/worker_service.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint64_t kPageBytes = uint64_t{16} << 20;

// Threads of one process, on a machine that may be busy: no wait for a message ends by itself.
constexpr Duration kNever = Duration::seconds(3600);
constexpr LinkTimeouts kNoTimeouts{.greeting = kNever, .silence = kNever, .pong = kNever};

WorkerServiceOptions workers(const std::string& models) {
  return {.page_count = 100, .models = *parse_emulated_models(models, kPageBytes), .pong_timeout = kNever};
}

// Why workers with these models are not taken in.
Status refusal_of(const std::string& address, const std::string& models) {
  Status refusal;
  std::function<void()> stop;
  WorkerService service(workers(models), {.on_ready = [](size_t) { ADD_FAILURE(); },
                                          .on_lost =
                                              [&](const Status& status) {
                                                refusal = status;
                                                stop();
                                              }});
  LinkLoop loop({.connection = {.role = Role::kWorker}}, service);
  stop = [&] { loop.stop(); };
  EXPECT_TRUE(loop.connect(address).ok());
  loop.run();
  return refusal;
}

// Counts the outcomes of INFERs on the controller's thread.
class InferCount : public Observer {
 public:
  void on_outcome(const Action& action, const Outcome&, TimePoint) override {
    if (action.type != ActionType::kInfer) return;
    ++count_;
    count_.notify_all();
  }
  void await(uint32_t count) const {
    for (uint32_t seen = count_; seen < count; seen = count_) count_.wait(seen);
  }

 private:
  std::atomic<uint32_t> count_{0};
};

// A controller on a thread of its own.
class RunningController {
 public:
  RunningController()
      : service_({}, find_policy("clockwork")->make, monotonic_now,
                 [this](Severity, const std::string& line) { log.push_back(line); }),
        loop_({.timeouts = kNoTimeouts}, service_) {
    service_.controller().add_observer(infers);
    port_ = loop_.listen("127.0.0.1:0").value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~RunningController() { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  std::vector<std::string> log;  // to be read after stop()
  InferCount infers;

 private:
  ControllerService service_;
  LinkLoop loop_;
  uint16_t port_ = 0;
  std::thread thread_;
};

// Workers on a thread of their own, taken in when the constructor returns.
class RunningWorkers {
 public:
  RunningWorkers(const std::string& address, uint32_t count, const std::string& models)
      : service_(workers(models), {.on_ready = [this](size_t now) { ready_ = now; },
                                   .on_lost = [this](const Status& status) { lost = status; }}),
        loop_({.connection = {.role = Role::kWorker}, .timeouts = kNoTimeouts}, service_) {
    for (uint32_t i = 0; i < count; ++i) EXPECT_TRUE(loop_.connect(address).ok());
    thread_ = std::thread([this] { loop_.run(); });
    while (ready_ < count) std::this_thread::yield();
  }
  ~RunningWorkers() { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
  }

  Status lost;  // to be read after stop()

 private:
  std::atomic<size_t> ready_{0};
  WorkerService service_;
  LinkLoop loop_;
  std::thread thread_;
};

Result<RequestLoadResult> load(const std::string& address, const RequestLoadOptions& options) {
  std::function<void()> stop;
  RequestLoad load(options, [&] { stop(); });
  LinkLoop loop({.connection = {.role = Role::kClient}, .timeouts = kNoTimeouts}, load);
  stop = [&] { loop.stop(); };
  FOLIOT_RETURN_IF_ERROR(loop.connect(address));
  loop.run();
  return load.result();
}

RequestLoadOptions short_load(double rate) {
  return {.rate = rate,
          .deadline = kNever,
          .warm_up = Duration::milliseconds(50),
          .duration = Duration::milliseconds(200),
          .pong_timeout = kNever};
}

TEST(LinksTest, EveryRequestIsAnsweredOverTcp) {
  RunningController controller;
  RunningWorkers workers(controller.address(), 3, "resnet18:4");
  const auto result = load(controller.address(), short_load(1000));
  ASSERT_TRUE(result.ok()) << result.status().message();
  const LoadTally& total = result->load.total();
  EXPECT_GT(total.sent, 50u);
  EXPECT_EQ(total.good + total.late + total.refused, total.sent);
  EXPECT_GT(total.good, 0u);
  EXPECT_EQ(result->controller.devices, 3u);
  workers.stop();
  controller.stop();
  EXPECT_TRUE(workers.lost.ok()) << workers.lost.message();
}

TEST(LinksTest, WhatALostWorkerHadIsAnsweredToo) {
  RunningController controller;
  auto workers = std::make_unique<RunningWorkers>(controller.address(), 1, "resnet18");
  std::thread killer([&] {
    controller.infers.await(1);  // however few batches the load makes
    workers->stop();
    // What waits for a device is now answered by this one, and not at its deadline.
    workers = std::make_unique<RunningWorkers>(controller.address(), 1, "resnet18");
  });
  const auto result = load(controller.address(), short_load(1000));
  killer.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->load.total().failed, 0u);  // served or refused, not forgotten
  controller.stop();
  EXPECT_THAT(controller.log, ::testing::Contains(HasSubstr("worker 'worker' at 127.0.0.1:")));
}

TEST(LinksTest, AllWorkersMustBringTheSameModels) {
  RunningController controller;
  RunningWorkers first(controller.address(), 1, "resnet18");
  EXPECT_THAT(refusal_of(controller.address(), "resnet50").message(), HasSubstr("'resnet18' is missing"));
}

TEST(LinksTest, ReportsThatNoProcessListens) {
  EXPECT_THAT(load("127.0.0.1:1", short_load(1)).status().message(), HasSubstr("cannot connect to 127.0.0.1:1"));
  EXPECT_THAT(load("nowhere", short_load(1)).status().message(), HasSubstr("write HOST:PORT"));
  EXPECT_THAT(load("127.0.0.1:99999", short_load(1)).status().message(), HasSubstr("write HOST:PORT"));
}

TEST(LinksTest, APortIsListenedOnByOne) {
  RunningController controller;
  ControllerService service({}, find_policy("clockwork")->make, monotonic_now, [](Severity, const std::string&) {});
  LinkLoop loop({}, service);
  EXPECT_EQ(loop.listen(controller.address()).status().code(), StatusCode::kAlreadyExists);
}

// ---- Peers that misbehave, without sockets ----

using Peer = TestPeer;

class ControllerServiceTest : public ::testing::Test {
 protected:
  ControllerServiceTest() {
    EXPECT_TRUE(worker_.say(Registration{"w", "cpu", "peer:1", {10}, {1}, {1}, models_, {{}}}).ok());
    EXPECT_THAT(worker_.last<Welcome>().devices, ElementsAre(DeviceId(0)));
  }
  Request request(uint64_t id) {
    return {.id = RequestId(id), .model = ModelId(0), .arrival = at_ms(1), .deadline = at_ms(1000)};
  }
  // The action that the controller sends in this turn.
  Action next_action() {
    service_.on_turn_end(at_ms(1));
    return worker_.last<Action>();
  }

  const std::vector<ModelInfo> models_ = *parse_emulated_models("resnet18", kPageBytes);
  std::vector<std::string> log_;
  ControllerService service_{{},
                             find_policy("clockwork")->make,
                             [] { return at_ms(1); },
                             [this](Severity, const std::string& line) { log_.push_back(line); }};
  Peer worker_{service_, Role::kWorker};
  Peer client_{service_, Role::kClient};
};

TEST_F(ControllerServiceTest, AnOutcomeMustBeOfAnActionOfItsOwn) {
  ASSERT_TRUE(client_.say(request(1)).ok());
  const Action action = next_action();
  Outcome outcome{.action = action.id, .type = action.type, .device = action.device, .model = action.model};
  Outcome other = outcome;
  other.action = ActionId(77);
  EXPECT_THAT(worker_.say(other).message(), HasSubstr("action 77 was not given to device 0"));
  other = outcome;
  other.device = DeviceId(5);
  EXPECT_THAT(worker_.say(other).message(), HasSubstr("device 5 belongs to another worker"));
  other = outcome;
  other.type = ActionType::kInfer;
  EXPECT_THAT(worker_.say(other).message(), HasSubstr("was not given"));
  EXPECT_TRUE(worker_.say(outcome).ok());
  EXPECT_THAT(worker_.say(outcome).message(), HasSubstr("was not given"));  // not twice
}

TEST_F(ControllerServiceTest, StatisticsAreOfTheTimeSinceTheLastOnes) {
  ASSERT_TRUE(client_.say(request(1)).ok());
  next_action();
  for (const uint64_t count : {1u, 0u}) {
    ASSERT_TRUE(client_.say(StatisticsRequest{}).ok());
    const auto statistics = client_.last<Statistics>();
    EXPECT_EQ(statistics.devices, 1u);
    EXPECT_EQ(statistics.requests, count);
    EXPECT_EQ(statistics.actions, count);
    EXPECT_EQ(statistics.decisions, count);
  }
}

TEST_F(ControllerServiceTest, RequestIdsMustGrow) {
  EXPECT_TRUE(client_.say(request(5)).ok());
  EXPECT_THAT(client_.say(request(5)).message(), HasSubstr("ids must grow"));
  EXPECT_THAT(client_.say(request(UINT64_MAX)).message(), HasSubstr("ids must grow"));
}

class ControllerTaskTest : public ControllerServiceTest {
 protected:
  ControllerTaskTest() {
    EXPECT_TRUE(
        worker_.say(Tasks{{{{}, "photos", lines_of("[[variant]]\nmodel = \"resnet18\"\naccuracy = 0.5\n"), {}}}}).ok());
    service_.on_turn_end(at_ms(1));
    for (const Frame& frame : client_.frames()) {
      Status status;
      if (frame.type == MessageType::kTasks) status = decode(frame, tasks_);
      if (frame.type == MessageType::kUnserved) status = decode(frame, unserved_);
      EXPECT_TRUE(status.ok());
    }
  }
  Request row(uint64_t id, uint64_t call, uint32_t rows) {
    Request request = this->request(id);
    request.task = tasks_.tasks.at(0).id;
    request.call = RequestId(call);
    request.call_rows = rows;
    return request;
  }
  Tasks tasks_;
  Unserved unserved_;
};

TEST_F(ControllerTaskTest, ServesTheTasksThatWorkersOffer) {
  ASSERT_EQ(tasks_.tasks.size(), 1u) << ::testing::PrintToString(log_);
  EXPECT_EQ(tasks_.tasks[0].name, "photos");
  EXPECT_THAT(unserved_.models, IsEmpty());
  EXPECT_THAT(log_, ::testing::Contains("task 'photos' is served"));
  Peer later(service_, Role::kClient);
  EXPECT_EQ(later.last<Tasks>().tasks.size(), 1u);
  ASSERT_TRUE(client_.say(row(1, 1, 1)).ok());
  const Action load = next_action();
  EXPECT_EQ(load.type, ActionType::kLoad);
  ASSERT_TRUE(client_.say(Cancel{RequestId(1)}).ok());
  const auto cancelled = client_.last<Completion>();
  EXPECT_EQ(cancelled.task, tasks_.tasks[0].id);
  EXPECT_EQ(cancelled.model, load.model);
  Request gone = row(2, 2, 1);
  gone.task = ServedTaskId(77);
  ASSERT_TRUE(client_.say(gone).ok());
  EXPECT_EQ(client_.last<Completion>().refusal, Refusal::kUnloaded);
}

TEST_F(ControllerTaskTest, TheRowsOfACallFollowItsFirst) {
  ASSERT_TRUE(client_.say(row(1, 1, 2)).ok());
  ASSERT_TRUE(client_.say(row(2, 2, 1)).ok()) << "of another call";
  ASSERT_TRUE(client_.say(row(3, 1, 2)).ok());
  EXPECT_THAT(client_.say(row(4, 1, 2)).message(), HasSubstr("no row of call 1 is still to come"));
  Peer other(service_, Role::kClient);
  EXPECT_THAT(other.say(row(2, 1, 2)).message(), HasSubstr("no row of call 1 is still to come"));
  Peer third(service_, Role::kClient);
  ASSERT_TRUE(third.say(row(1, 1, 3)).ok());
  EXPECT_THAT(third.say(row(2, 1, 2)).message(), HasSubstr("that is like this"));
}

TEST_F(ControllerTaskTest, ItsModelIsRunUntilItsCallsAreOver) {
  Request waiting = row(1, 1, 1);
  waiting.deadline = TimePoint::infinite_future();
  ASSERT_TRUE(client_.say(waiting).ok());
  ASSERT_TRUE(worker_.say(Tasks()).ok());
  service_.on_turn_end(at_ms(2));
  EXPECT_THAT(client_.last<Tasks>().tasks, IsEmpty()) << "no worker offers it";
  worker_.close();
  service_.on_turn_end(at_ms(3000));
  EXPECT_EQ(service_.controller().queued(), 1u) << "it waits for a worker";
  ASSERT_TRUE(client_.say(Cancel{RequestId(1)}).ok());
  service_.on_turn_end(at_ms(6000));
  ASSERT_TRUE(client_.say(row(2, 2, 1)).ok());
  EXPECT_EQ(client_.last<Completion>().refusal, Refusal::kUnloaded) << "the task is gone";
}

TEST_F(ControllerTaskTest, ALostWorkersTaskStaysUntilAWorkerOfItsKindComesWithoutIt) {
  worker_.close();
  service_.on_turn_end(at_ms(2));
  ASSERT_TRUE(client_.say(row(1, 1, 1)).ok());
  EXPECT_EQ(client_.last<Completion>().refusal, Refusal::kWorkerLost) << "as of its model";
  Peer back(service_, Role::kWorker);
  EXPECT_TRUE(back.say(Registration{"w", "cpu", "peer:1", {10}, {1}, {1}, models_, {{}}}).ok());
  service_.on_turn_end(at_ms(3));
  ASSERT_TRUE(client_.say(row(2, 2, 1)).ok());
  service_.on_turn_end(at_ms(4));
  EXPECT_EQ(back.last<Action>().type, ActionType::kLoad);
  EXPECT_TRUE(client_.received<Tasks>(MessageType::kTasks).empty()) << "nothing has changed";
  service_.on_turn_end(at_ms(2) + TaskRegistry::kReturn);
  EXPECT_THAT(client_.last<Tasks>().tasks, IsEmpty());
}

TEST_F(ControllerTaskTest, ScalingSetsWhatIsPossible) {
  const ModelId model(0);
  service_.scale(Autoscaler::kTasks, {{{model, {.copies_least = 1}}, {ModelId(50), {.copies_least = 1}}}});
  service_.on_turn_end(at_ms(2));
  EXPECT_EQ(service_.controller().cluster().target(model).copies_least, 1u);
  service_.scale(Autoscaler::kPipelines, {{{model, {.copies_least = 3, .kinds = {"gpu"}}}}});
  service_.on_turn_end(at_ms(3));
  EXPECT_EQ(service_.controller().cluster().target(model), ModelTarget()) << "no device is of that kind, so far";
  Peer gpu(service_, Role::kWorker);
  std::vector<ModelInfo> for_gpu = models_;
  for (ModelInfo& each : for_gpu) each.only().kind = "gpu";
  EXPECT_TRUE(gpu.say(Registration{"g", "gpu", "peer:2", {10}, {1}, {1}, for_gpu, {{}}}).ok());
  service_.on_turn_end(at_ms(4));
  EXPECT_EQ(service_.controller().cluster().target(model), (ModelTarget{.copies_least = 3, .kinds = {"gpu"}}));
  service_.scale(Autoscaler::kPipelines, {});
  service_.on_turn_end(at_ms(5));
  EXPECT_EQ(service_.controller().cluster().target(model).copies_least, 1u) << "of the other autoscaler";
  service_.scale(Autoscaler::kTasks, {});
  service_.on_turn_end(at_ms(6));
  EXPECT_EQ(service_.controller().cluster().target(model), ModelTarget());
}

class Labels : public CallLabelSink {
 public:
  void on_label(RequestId request, std::shared_ptr<const CallLabel> label) override {
    seen.emplace_back(request.value(), label->text);
  }
  std::vector<std::pair<uint64_t, std::string>> seen;
};

TEST_F(ControllerServiceTest, PassesOnTheLabelsOfRequests) {
  Labels labels;
  service_.add_label_sink(labels);
  Peer other(service_, Role::kClient);
  ASSERT_TRUE(client_.say(Label{RequestId(1), call_label("order-17")}).ok());
  ASSERT_TRUE(client_.say(request(1)).ok());
  ASSERT_TRUE(client_.say(request(2)).ok());
  ASSERT_TRUE(other.say(Label{RequestId(1), call_label("order-18")}).ok());
  ASSERT_TRUE(other.say(request(1)).ok());
  EXPECT_THAT(labels.seen, ElementsAre(Pair(request_of(0, RequestId(1)).value(), "order-17"),
                                       Pair(request_of(1, RequestId(1)).value(), "order-18")));
}

TEST_F(ControllerServiceTest, ALabelIsOfTheNextRequest) {
  ASSERT_TRUE(client_.say(Label{RequestId(1), call_label("order-17")}).ok());
  EXPECT_THAT(client_.say(Label{RequestId(2), call_label("order-18")}).message(), HasSubstr("a LABEL after another"));
  Peer other(service_, Role::kClient);
  ASSERT_TRUE(other.say(Label{RequestId(1), call_label("order-17")}).ok());
  EXPECT_THAT(other.say(request(2)).message(), HasSubstr("request 2 after the LABEL of request 1"));
}

TEST_F(ControllerServiceTest, TwoClientsMayUseTheSameNumbers) {
  Peer other(service_, Role::kClient);
  ASSERT_TRUE(client_.say(request(1)).ok());
  ASSERT_TRUE(other.say(request(1)).ok());
  ASSERT_TRUE(other.say(Cancel{RequestId(1)}).ok());
  EXPECT_EQ(other.last<Completion>().refusal, Refusal::kCancelled);
  EXPECT_EQ(service_.controller().queued(), 1u);
  EXPECT_THAT(other.say(Cancel{RequestId(2), Refusal::kNone}).message(), HasSubstr("cancelled as 'none'"));
  ASSERT_TRUE(client_.say(Cancel{RequestId(1), Refusal::kOverload}).ok());
  EXPECT_EQ(client_.last<Completion>().refusal, Refusal::kOverload);
}

TEST_F(ControllerServiceTest, AMessageOutOfPlaceEndsTheSession) {
  EXPECT_THAT(client_.say(Outcome{}).message(), HasSubstr("unexpected OUTCOME message"));
  EXPECT_THAT(worker_.say(request(1)).message(), HasSubstr("unexpected REQUEST message"));
  EXPECT_THAT(worker_.say(Registration{"w", "cpu", "", {10}, {1}, {1}, {}, {{}}}).message(),
              HasSubstr("registers once"));
  Peer empty(service_, Role::kWorker);
  EXPECT_THAT(empty.say(Registration{"w", "cpu", "", {}, {}, {}, {}, {}}).message(), HasSubstr("1 to 64 devices"));
  EXPECT_THAT(empty.say(Registration{"w", "cpu", "", {1}, {1}, {1}, {}, {{}}}).message(),
              HasSubstr("1 to 16384 models"));
}

TEST_F(ControllerServiceTest, WhatALostWorkerHadIsGivenToAnother) {
  Peer other(service_, Role::kWorker);
  ASSERT_TRUE(other.say(Registration{"v", "cpu", {}, {10}, {1}, {1}, models_, {{}}}).ok());
  EXPECT_THAT(other.last<Welcome>().devices, ElementsAre(DeviceId(1)));
  ASSERT_TRUE(client_.say(request(1)).ok());
  const Action load = next_action();
  EXPECT_EQ(load.type, ActionType::kLoad);
  worker_.close();
  service_.on_turn_end(at_ms(2));
  EXPECT_EQ(other.last<Action>().type, ActionType::kLoad);
  EXPECT_EQ(service_.controller().queued(), 1u);
}

TEST_F(ControllerServiceTest, AWorkerComesBackWithWhatItHolds) {
  worker_.close();
  ASSERT_TRUE(client_.say(request(1)).ok());
  EXPECT_EQ(client_.last<Completion>().refusal, Refusal::kWorkerLost) << "there is no worker";
  Peer again(service_, Role::kWorker);
  ASSERT_TRUE(again.say(Registration{"w", "cpu", {}, {10}, {1}, {1}, models_, {{0}}}).ok());
  EXPECT_THAT(again.last<Welcome>().devices, ElementsAre(DeviceId(0)));
  ASSERT_TRUE(client_.say(request(2)).ok());
  service_.on_turn_end(at_ms(2));
  EXPECT_EQ(again.last<Action>().type, ActionType::kInfer) << "without a LOAD";
}

TEST_F(ControllerServiceTest, IdsOfTheLostAreUsedAgain) {
  worker_.close();
  for (int i = 0; i < 5; ++i) {
    Peer next(service_, Role::kWorker);
    ASSERT_TRUE(next.say(Registration{"n" + std::to_string(i), "cpu", {}, {10}, {1}, {1}, models_, {{}}}).ok());
    EXPECT_THAT(next.last<Welcome>().devices, ElementsAre(DeviceId(0)));
    next.close();
  }
}

TEST_F(ControllerServiceTest, AFencedWorkerIsNotListenedToAnyMore) {
  ControllerService service(
      {.health = FailureDetectorOptions()}, find_policy("clockwork")->make, [] { return at_ms(1); },
      [](Severity, const std::string&) {});
  Peer mute(service, Role::kWorker);
  ASSERT_TRUE(mute.say(Registration{"w", "cpu", {}, {10}, {1}, {1}, models_, {{}}}).ok());
  Peer client(service, Role::kClient);
  ASSERT_TRUE(client.say(request(1)).ok());
  for (int64_t ms = 1; ms < 700; ms += 50) service.on_turn_end(at_ms(ms));
  EXPECT_EQ(service.controller().cluster().device(DeviceId(0)).state(), DeviceState::kLost);
  EXPECT_THAT(mute.check().message(), HasSubstr("fenced: silent"));
  EXPECT_THAT(mute.say(Ping{at_ms(700)}).message(), HasSubstr("fenced"));
}

TEST_F(ControllerServiceTest, AWorkerThatLeavesEndsWhatItHas) {
  ASSERT_TRUE(client_.say(request(1)).ok());
  const Action load = next_action();
  ASSERT_TRUE(worker_.say(Leave{}).ok());
  service_.on_turn_end(at_ms(2));
  EXPECT_TRUE(worker_.check().ok());
  ASSERT_TRUE(worker_
                  .say(Outcome{.action = load.id,
                               .type = load.type,
                               .device = load.device,
                               .model = load.model,
                               .start = at_ms(2),
                               .end = at_ms(3)})
                  .ok());
  service_.on_turn_end(at_ms(3));
  EXPECT_THAT(worker_.check().message(), HasSubstr("actions are finished"));
}

TEST_F(ControllerServiceTest, DrainingFinishesWhatRunsAndRefusesTheRest) {
  ControllerService service(
      {}, find_policy("clockwork")->make, [] { return at_ms(1); }, [](Severity, const std::string&) {});
  Peer worker(service, Role::kWorker);
  ASSERT_TRUE(worker.say(Registration{"w", "cpu", {}, {10}, {1}, {1}, models_, {{0}}}).ok());
  Peer client(service, Role::kClient);
  ASSERT_TRUE(client.say(request(1)).ok());
  service.on_turn_end(at_ms(1));
  const Action infer = worker.last<Action>();
  ASSERT_EQ(infer.type, ActionType::kInfer);
  bool is_over = false;
  service.set_drain_watch([&] { is_over = true; });
  service.drain();
  service.on_turn_end(at_ms(2));
  ASSERT_TRUE(client.say(request(2)).ok());
  EXPECT_EQ(client.last<Completion>().refusal, Refusal::kDraining);
  EXPECT_FALSE(service.drained());
  EXPECT_FALSE(is_over);
  ASSERT_TRUE(worker
                  .say(Outcome{.action = infer.id,
                               .type = infer.type,
                               .device = infer.device,
                               .model = infer.model,
                               .start = at_ms(2),
                               .end = at_ms(3),
                               .output_end = at_ms(3)})
                  .ok());
  service.on_turn_end(at_ms(3));
  EXPECT_EQ(client.last<Completion>().id, RequestId(1));
  EXPECT_TRUE(service.drained());
  EXPECT_TRUE(is_over);
}

TEST_F(ControllerServiceTest, ReportsWhichModelAWorkerLacks) {
  std::vector<ModelInfo> more = *parse_emulated_models("resnet18,resnet50", kPageBytes);
  ControllerService service(
      {}, find_policy("clockwork")->make, [] { return at_ms(1); }, [](Severity, const std::string&) {});
  Peer both(service, Role::kWorker);
  ASSERT_TRUE(both.say(Registration{"x", "cpu", {}, {10}, {1}, {1}, more, {{}}}).ok());
  std::swap(more[0], more[1]);
  Peer swapped(service, Role::kWorker);
  ASSERT_TRUE(swapped.say(Registration{"y", "cpu", {}, {10}, {1}, {1}, more, {{0}}}).ok());
  EXPECT_THAT(swapped.last<Welcome>().models, ElementsAre(ModelId(1), ModelId(0)));
  EXPECT_EQ(service.controller().cluster().device(DeviceId(1)).held(ModelId(1)), Residency::kLoaded);
  Peer less(service, Role::kWorker);
  EXPECT_THAT(less.say(Registration{"z", "cpu", {}, {10}, {1}, {1}, models_, {{}}}).message(),
              HasSubstr("'resnet50' is missing"));
  Peer full(service, Role::kWorker);
  EXPECT_THAT(full.say(Registration{"z", "cpu", {}, {3}, {1}, {1}, more, {{0, 1}}}).message(),
              HasSubstr("device 0 holds 10 pages"));
}

TEST_F(ControllerServiceTest, ReportsAsManyModelsThatCannotBeServedAsAMessageMayName) {
  Peer other(service_, Role::kWorker);
  ASSERT_TRUE(other.say(Registration{"x", "cpu", "peer:2", {10}, {1}, {1}, models_, {{}}}).ok());
  const auto report = [&](Peer& worker, const std::string& prefix, size_t count) {
    Unserved unserved;
    for (size_t i = 0; i < count; ++i)
      unserved.models.push_back({prefix + std::to_string(10'000 + i), "1", "no model"});
    ASSERT_TRUE(worker.say(unserved).ok());
  };
  const auto shown = [&] {
    service_.on_turn_end(at_ms(1));
    return client_.last<Unserved>().models.size();
  };
  report(worker_, "a", 2);
  report(other, "b", 1);
  EXPECT_EQ(shown(), 3u);
  report(worker_, "a", kUnservedMax);
  EXPECT_EQ(shown(), kUnservedMax);
}

// ---- Models that change ----

TEST_F(ControllerServiceTest, WhatOneWorkerBringsBeyondTheOthersHasNoNameAndNoPages) {
  const std::vector<ModelInfo> more = *parse_emulated_models("resnet50,resnet18", kPageBytes);
  Peer other(service_, Role::kWorker);
  ASSERT_TRUE(other.say(Registration{"x", "cpu", {}, {20}, {1}, {1}, more, {{0, 1}}}).ok());
  EXPECT_THAT(other.last<Welcome>().models, ElementsAre(kUnnamed, ModelId(0)));
  const DeviceModel& device = service_.controller().cluster().device(DeviceId(1));
  EXPECT_EQ(device.held(ModelId(0)), Residency::kLoaded);
  EXPECT_EQ(device.pages_used(), models_[0].only().pages);
}

TEST(LinksTest, AnEmulatedWorkerTakesAllOrNothing) {
  RunningController controller;
  RunningWorkers first(controller.address(), 1, "resnet18");
  EXPECT_THAT(refusal_of(controller.address(), "resnet18,resnet50").message(),
              HasSubstr("others did not bring 'resnet50'"));
}

TEST_F(ControllerServiceTest, OffersAndWithdrawalsComeAfterTheRegistration) {
  Peer other(service_, Role::kWorker);
  EXPECT_THAT(other.say(Offer{models_[0]}).message(), HasSubstr("unexpected OFFER message"));
  Peer another(service_, Role::kWorker);
  EXPECT_THAT(another.say(Withdrawal{ModelId(0)}).message(), HasSubstr("unexpected WITHDRAWAL message"));
  EXPECT_THAT(worker_.say(Withdrawal{ModelId(7)}).message(), HasSubstr("it withdraws model 7"));
  EXPECT_THAT(worker_.say(Offer{models_[0]}).message(), HasSubstr("two models as 0"));
}

class ModelChangeTest : public ControllerServiceTest {
 protected:
  ModelChangeTest() {
    next_.id = ModelId(5);
    next_.version = "2";
    service_.on_turn_end(at_ms(1));
    worker_.frames();
    client_.frames();
  }
  void replace_model(int64_t ms) {
    EXPECT_TRUE(worker_.say(Offer{next_}).ok());
    EXPECT_TRUE(worker_.say(Withdrawal{ModelId(0)}).ok());
    service_.on_turn_end(at_ms(ms));
  }
  void end(const Action& action, int64_t ms) {
    ASSERT_TRUE(worker_
                    .say(Outcome{.action = action.id,
                                 .type = action.type,
                                 .device = action.device,
                                 .model = action.model,
                                 .start = at_ms(ms),
                                 .end = at_ms(ms),
                                 .output_end = at_ms(ms)})
                    .ok());
  }
  std::vector<Action> actions(int64_t ms) {
    service_.on_turn_end(at_ms(ms));
    return worker_.received<Action>(MessageType::kAction);
  }

  ModelInfo next_ = models_[0];
};

TEST_F(ModelChangeTest, ClientsAreNotifiedOfANewVersionAndNoMoreOfTheOld) {
  replace_model(2);
  const auto namings = worker_.received<Naming>(MessageType::kNaming);
  ASSERT_EQ(namings.size(), 1u);
  EXPECT_EQ(namings[0].model, ModelId(5));
  EXPECT_EQ(namings[0].name, ModelId(1));
  const auto listed = client_.received<Models>(MessageType::kModels);
  ASSERT_EQ(listed.size(), 1u);
  ASSERT_EQ(listed[0].models.size(), 1u);
  EXPECT_EQ(listed[0].models[0].id, ModelId(1));
  EXPECT_EQ(listed[0].models[0].version, "2");
  Peer late(service_, Role::kClient);
  EXPECT_EQ(late.received<Models>(MessageType::kModels).at(0).models.size(), 1u);
  EXPECT_THAT(log_, ::testing::Contains("model 'resnet18' version 2 is served in place of version 1"));
}

// From a request for the old version until no page holds it.
TEST_F(ModelChangeTest, NothingIsRefusedAndTheOldVersionIsReleasedInTheEnd) {
  ASSERT_TRUE(client_.say(request(1)).ok());
  const Action load = actions(1).at(0);
  replace_model(2);
  Request late = request(2);
  late.deadline = at_ms(9000);
  ASSERT_TRUE(client_.say(late).ok()) << "it is not notified yet";
  end(load, 3);
  const std::vector<Action> infers = actions(3);
  ASSERT_THAT(infers, ::testing::Not(IsEmpty()));
  for (const Action& infer : infers) EXPECT_EQ(infer.model, ModelId(0));
  EXPECT_THAT(actions(2500), IsEmpty()) << "they are in flight";
  for (const Action& infer : infers) end(infer, 2500);
  EXPECT_EQ(client_.last<Completion>().refusal, Refusal::kNone);
  const std::vector<Action> unloads = actions(2500);
  ASSERT_EQ(unloads.size(), 1u);
  EXPECT_EQ(unloads[0].type, ActionType::kUnload);
  Peer other(service_, Role::kWorker);
  EXPECT_EQ(other.say(Registration{"x", "cpu", {}, {10}, {1}, {1}, {next_}, {{}}}).code(), StatusCode::kUnavailable);
  end(unloads[0], 2501);
  service_.on_turn_end(at_ms(2501));
  const auto releases = worker_.received<Release>(MessageType::kRelease);
  ASSERT_EQ(releases.size(), 1u);
  EXPECT_EQ(releases[0].model, ModelId(0));
  EXPECT_THAT(log_, ::testing::Contains("model 'resnet18' version 1 is removed"));
  Peer another(service_, Role::kWorker);
  ASSERT_TRUE(another.say(Registration{"x", "cpu", {}, {10}, {1}, {1}, {next_}, {{0}}}).ok());
  EXPECT_THAT(another.last<Welcome>().models, ElementsAre(ModelId(1)));
}

TEST_F(ModelChangeTest, ATurnComesWhenClientsAreNotified) {
  replace_model(2);
  EXPECT_LE(service_.on_turn_end(at_ms(3)), at_ms(2002));
  EXPECT_THAT(worker_.received<Release>(MessageType::kRelease), IsEmpty());
  service_.on_turn_end(at_ms(2002));
  EXPECT_EQ(worker_.received<Release>(MessageType::kRelease).size(), 1u) << "no page ever held it";
}

TEST_F(ModelChangeTest, ANewModelIsServedOnceTheOtherWorkerIsLost) {
  Peer other(service_, Role::kWorker);
  ASSERT_TRUE(other.say(Registration{"x", "cpu", {}, {10}, {1}, {1}, models_, {{}}}).ok());
  next_.name = "another";
  ASSERT_TRUE(worker_.say(Offer{next_}).ok());
  service_.on_turn_end(at_ms(2));
  EXPECT_THAT(worker_.received<Naming>(MessageType::kNaming), IsEmpty());
  other.close();
  service_.on_turn_end(at_ms(3));
  EXPECT_EQ(worker_.received<Naming>(MessageType::kNaming).size(), 1u);
  EXPECT_THAT(log_, ::testing::Contains("model 'another' version 2 is served"));
}

TEST_F(ModelChangeTest, AWorkerThatLeavesHoldsNothingUp) {
  Peer other(service_, Role::kWorker);
  ASSERT_TRUE(other.say(Registration{"x", "cpu", {}, {10}, {1}, {1}, models_, {{}}}).ok());
  ASSERT_TRUE(worker_.say(Offer{next_}).ok());
  ASSERT_TRUE(other.say(Leave{}).ok());
  service_.on_turn_end(at_ms(2));
  EXPECT_EQ(worker_.received<Naming>(MessageType::kNaming).size(), 1u);
}

// Whose repository changed while it could not reach the controller.
TEST_F(ModelChangeTest, TheOnlyWorkerMayComeBackWithOtherModels) {
  ASSERT_TRUE(client_.say(request(1)).ok());
  service_.on_turn_end(at_ms(2));
  worker_.close();
  Peer again(service_, Role::kWorker);
  ASSERT_TRUE(again.say(Registration{"w", "cpu", {}, {10}, {1}, {1}, {next_}, {{0}}}).ok());
  EXPECT_THAT(again.last<Welcome>().models, ElementsAre(ModelId(1)));
  service_.on_turn_end(at_ms(3));
  EXPECT_EQ(client_.received<Completion>(MessageType::kCompletion).at(0).refusal, Refusal::kUnloaded);
  EXPECT_THAT(again.received<Action>(MessageType::kAction), IsEmpty());
  Request asked = request(2);
  asked.model = ModelId(1);
  ASSERT_TRUE(client_.say(asked).ok());
  service_.on_turn_end(at_ms(4));
  EXPECT_EQ(again.last<Action>().type, ActionType::kInfer);
}

// ---- Clients ----

TEST_F(ControllerServiceTest, AnswersToAClientThatIsGoneAreDropped) {
  ASSERT_TRUE(client_.say(request(1)).ok());
  client_.close();
  Peer next(service_, Role::kClient);  // gets another place while the request is in flight
  ASSERT_TRUE(next.say(request(1)).ok());
  service_.on_turn_end(at_ms(3000));
  EXPECT_EQ(next.last<Completion>().refusal, Refusal::kExpired);
}

TEST_F(ControllerServiceTest, ClientsKnowTheirNumberAndTheWorkers) {
  const auto workers = [&](Peer& client) { return client.last<Workers>().workers; };
  Peer next(service_, Role::kWorker);
  ASSERT_TRUE(
      next
          .say(Registration{
              "x", "cpu", "peer:2", {10, 10}, {1, 1}, {1, 1}, *parse_emulated_models("resnet18", kPageBytes), {{}, {}}})
          .ok());
  const auto listed = workers(client_);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].data_address, "peer:1");
  EXPECT_EQ(listed[1].name, "x");
  EXPECT_THAT(listed[1].devices, ElementsAre(DeviceId(1), DeviceId(2)));
  worker_.close();
  EXPECT_EQ(workers(client_).size(), 1u);
}

TEST_F(ControllerServiceTest, FrontEndsThatKeepUsersAreNamedToEachOtherUntilTheyGo) {
  Peer other(service_, Role::kClient);
  ASSERT_TRUE(client_.say(HomeOffer{"a", "a:1"}).ok());
  ASSERT_TRUE(other.say(HomeOffer{"b", "b:1"}).ok());
  service_.on_turn_end(at_ms(2000));
  for (Peer* const each : {&client_, &other}) {
    const auto homes = each->last<Homes>().homes;
    ASSERT_EQ(homes.size(), 2u);
    EXPECT_EQ(homes[0].name, "a");
    EXPECT_EQ(homes[1].address, "b:1");
  }
  other.close();
  service_.on_turn_end(at_ms(2001));
  const auto left = client_.last<Homes>().homes;
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].name, "a");
}

TEST_F(ControllerServiceTest, AnswersPings) {
  ASSERT_TRUE(client_.say(Ping{at_ms(-5)}).ok());
  const Pong pong = client_.last<Pong>();
  EXPECT_EQ(pong.ping_sent, at_ms(-5));
  EXPECT_EQ(pong.server_time, at_ms(1));
}

}  // namespace
}  // namespace foliot
