// WorkerLinkTest: a worker's links under test, with a worker whose executors the test drives, and peers
// whose bytes it writes. WorkerLinkHolderTest: the same with another worker, which holds payloads.
#ifndef FOLIOT_CLUSTER_SESSIONS_TEST_WORKER_LINK_H_
#define FOLIOT_CLUSTER_SESSIONS_TEST_WORKER_LINK_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cluster/sessions/test_peer.h"
#include "cluster/sessions/worker_link.h"

namespace foliot {

inline constexpr uint32_t kWorkerModel = 40;  // as the controller calls it
inline constexpr uint32_t kDevice = 7;

// One float in, one out.
inline ModelInfo hosted_model(uint32_t id = 0, const std::string& version = "1") {
  ModelInfo model;
  model.id = ModelId(id);
  model.name = "doubling";
  model.version = version;
  model.only().batch_sizes = {1, 2, 4};
  model.inputs = {{"x", DataType::kFloat32, {1}, {""}}};
  model.outputs = {{"y", DataType::kFloat32, {1}, {""}}};
  model.buckets.resize(1);
  model.only().seed_exec = {std::vector<Duration>(3, Duration::milliseconds(1))};
  return model;
}

// Doubles each row's number, from and into its payload.
class DoublingEngine : public Engine {
 public:
  explicit DoublingEngine(PayloadStore*& payloads) : payloads_(payloads) {}
  Result<WorkerModel> add(const EngineModel&) override { return WorkerModel(); }
  Status prepare(ModelId, size_t) override { return Status(); }
  void remove(ModelId) override {}
  Status load(ModelId, std::span<const PageIndex>) override { return Status(); }
  void unload(ModelId) override {}
  void input(const InferWork&) override { ++batches; }
  Status run(const InferWork&) override { return Status(); }
  void output(const InferWork& work) override {
    for (const BatchRows::Row& row : work.action.rows) {
      float number;
      std::memcpy(&number, payloads_->input(row.payload, 0).data(), sizeof(number));
      number *= 2;
      std::memcpy(payloads_->output(row.payload, 0).data(), &number, sizeof(number));
    }
  }
  int batches = 0;

 private:
  PayloadStore*& payloads_;
};

// "LOAD 1 of doubling", and "LOAD 1 of 0 done" when it is over, by the worker's own ids.
class Watcher : public Observer {
 public:
  void on_model(const ModelInfo& model) override { models.push_back(model.name); }
  void on_action(const Action& action, TimePoint) override { seen.push_back(name(action)); }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint) override {
    seen.push_back(name(action) + " " + std::string(to_string(outcome.status)));
  }
  std::vector<std::string> models;
  std::vector<std::string> seen;

 private:
  static std::string name(const Action& action) {
    return std::string(to_string(action.type)) + " " + std::to_string(action.id.value()) + " of " +
           std::to_string(action.model.value());
  }
};

// Notes the addresses that it is to connect to.
class FakeLoop : public LinkControl {
 public:
  Status keep(const std::string& address) override {
    kept.push_back(address);
    return Status();
  }
  void release(const std::string& address) override { std::erase(kept, address); }
  void wake() override {}
  std::vector<std::string> kept;
};

class NoWaker : public Waker {
 public:
  void wake() override {}
};

// A front end.
class Client : public TestPeer {
 public:
  Client(WorkerLink& link, uint16_t number) : TestPeer(link, Role::kClient) { EXPECT_TRUE(say(Attach{number}).ok()); }

  // The requests whose inputs are asked for, for whichever action.
  std::vector<uint64_t> fetched() {
    std::vector<uint64_t> requests;
    for (const Fetch& fetch : received<Fetch>(MessageType::kFetch)) requests.push_back(fetch.request.value());
    return requests;
  }
  Status send(uint64_t action, uint64_t request, float number) {
    return say(Inputs{ActionId(action), RequestId(request), {std::as_bytes(std::span(&number, 1))}});
  }
  Status send_nothing(uint64_t action, uint64_t request) {
    return say(Inputs{ActionId(action), RequestId(request), {}});
  }
  // "request: number" of each output; "request: nothing" of one without tensors.
  std::vector<std::string> outputs() {
    std::vector<std::string> texts;
    for (const Outputs& outputs : received<Outputs>(MessageType::kOutputs)) {
      float number = 0;
      if (!outputs.tensors.empty()) std::memcpy(&number, outputs.tensors[0].data(), sizeof(number));
      texts.push_back(std::to_string(outputs.request.value()) + ": " +
                      (outputs.tensors.empty() ? "nothing" : std::to_string(static_cast<int>(number))));
    }
    return texts;
  }
};

class WorkerLinkTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kActionsMax = 4;

  explicit WorkerLinkTest(bool second_device = false)
      : link_({.name = "w",
               .models_max = 4,
               .page_count = 4,
               .actions_max = kActionsMax,
               .staging_bytes = kStagingBytes,
               .held_bytes = kHeldBytes,
               .drain_timeout = Duration::seconds(1)},
              {.log = [](Severity, const std::string&) {},
               .on_registered = [this](size_t models) { registered_ += static_cast<int>(models); },
               .on_drained = [this] { drained_ = true; },
               .on_stage_inputs = [this](uint64_t bytes,
                                         bool fetched) { (fetched ? fetched_bytes_ : held_bytes_) += bytes; }}),
        engine_(payloads_),
        worker_({.page_count = 4, .io_cache_bytes = 4096}, engine_, link_, {waker_, waker_, waker_, waker_}),
        second_({.page_count = 4, .io_cache_bytes = 4096}, engine_, link_, {waker_, waker_, waker_, waker_}) {
    worker_.add_model({.id = ModelId(0), .pages = 1, .batch_sizes = {1, 2, 4}, .io_bytes = {{4, 4}, {8, 8}, {16, 16}}});
    link_.add_observer(watcher_);
    second_.add_model({.id = ModelId(0), .pages = 1, .batch_sizes = {1, 2, 4}, .io_bytes = {{4, 4}, {8, 8}, {16, 16}}});
    link_.start(second_device ? std::vector{&worker_, &second_} : std::vector{&worker_}, "0.0.0.0:8200", loop_);
    link_.add_model(std::make_shared<const ModelInfo>(hosted_model()));
    controller_ = meet_controller();
  }

  // Version 2 is ready beside the first, as model 1.
  void update() {
    worker_.add_model({.id = ModelId(1), .pages = 1, .batch_sizes = {1, 2, 4}, .io_bytes = {{4, 4}, {8, 8}, {16, 16}}});
    link_.add_model(std::make_shared<const ModelInfo>(hosted_model(1, "2")));
    link_.remove_model(ModelId(0), [this] { ++gone_; });
    link_.on_turn_end(now_);
  }
  std::unique_ptr<TestPeer> meet_controller() {
    auto controller = std::make_unique<TestPeer>(link_, Role::kController, "controller:8100");
    controller->answer_pings();
    link_.on_turn_end(now_);
    return controller;
  }
  void welcome(TestPeer& controller) {
    EXPECT_EQ(controller.received<Registration>(MessageType::kRegistration).size(), 1u);
    EXPECT_TRUE(controller.say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).ok());
  }
  // Taken in, with the model loaded.
  void begin() {
    welcome(*controller_);
    ASSERT_TRUE(controller_->say(action(1, ActionType::kLoad)).ok());
    run();
    ASSERT_THAT(outcomes(), ::testing::ElementsAre("1 done"));
  }

  static Action action(uint64_t id, ActionType type) {
    return {.id = ActionId(id),
            .type = type,
            .device = DeviceId(kDevice),
            .model = ModelId(kWorkerModel),
            .earliest = at_ms(0),
            .latest = at_ms(1000)};
  }
  struct Row {
    uint16_t client;
    uint64_t request;
    PayloadReference input{};
    uint16_t consumers = 0;
  };
  static Action infer(uint64_t id, const std::vector<Row>& rows) {
    Action infer = action(id, ActionType::kInfer);
    infer.batch_size = 4;
    for (const Row& row : rows) {
      infer.rows.add(
          {request_of(row.client, RequestId(row.request)), PayloadHandle(row.request), row.input, row.consumers});
    }
    return infer;
  }

  // Lets the worker do all that it was given, and ends a turn.
  void run() {
    for (bool busy = true; busy;) {
      busy = false;
      for (Worker* worker : {&worker_, &second_}) {
        for (Executor* executor : worker->executors()) {
          if (!executor->poll(now_).run) continue;
          executor->finish(now_, now_, executor->perform());
          busy = true;
        }
      }
    }
    link_.on_turn_end(now_);
  }
  // "action status" of each.
  std::vector<std::string> outcomes() { return outcomes(*controller_); }
  static std::vector<std::string> outcomes(TestPeer& controller) {
    std::vector<std::string> texts;
    for (const Outcome& outcome : controller.received<Outcome>(MessageType::kOutcome)) {
      texts.push_back(std::to_string(outcome.action.value()) + " " + std::string(to_string(outcome.status)));
    }
    return texts;
  }

  // Twice this number, held by the worker for so many requests of client 1, which is `client`.
  PayloadReference hold(Client& client, uint64_t action, float number, uint16_t consumers = 1) {
    EXPECT_TRUE(controller_->say(infer(action, {{1, action, {}, consumers}})).ok());
    EXPECT_TRUE(client.send(action, action, number).ok());
    run();
    const auto outputs = client.received<Outputs>(MessageType::kOutputs);
    EXPECT_EQ(outputs.size(), 1u);
    EXPECT_TRUE(outputs.back().held && outputs.back().tensors.empty());
    return outputs.back().held;
  }
  // Why the row of this one had no outputs.
  static std::string detail(Client& client) {
    const auto outputs = client.received<Outputs>(MessageType::kOutputs);
    EXPECT_EQ(outputs.size(), 1u);
    EXPECT_TRUE(outputs.back().tensors.empty());
    return outputs.back().detail;
  }

  static constexpr uint64_t kStagingBytes = 4096;
  static constexpr uint64_t kHeldBytes = 256;
  FakeLoop loop_;
  Watcher watcher_;
  TimePoint now_ = at_ms(1);
  int registered_ = 0;
  uint64_t held_bytes_ = 0;  // that became inputs of stages
  uint64_t fetched_bytes_ = 0;
  int gone_ = 0;
  bool drained_ = false;
  WorkerLink link_;
  PayloadStore* payloads_ = &link_.payloads();
  DoublingEngine engine_;
  NoWaker waker_;
  Worker worker_;
  Worker second_;  // of the second device, if there is one
  std::unique_ptr<TestPeer> controller_;
};

// Another worker, at device 8, whose payloads are fetched.
class WorkerLinkHolderTest : public WorkerLinkTest {
 protected:
  WorkerLinkHolderTest() {
    begin();
    EXPECT_TRUE(controller_->say(workers()).ok());
  }
  static Workers workers() { return {{{"w", "10.0.0.1:8200", {DeviceId(kDevice)}}, {"other", kAddress, {kOther}}}}; }
  static constexpr const char* kAddress = "other:8200";
  static constexpr DeviceId kOther = DeviceId(8);
  static constexpr PayloadReference kThere{kOther, PayloadHandle(77)};
  Client client_{link_, 1};
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_TEST_WORKER_LINK_H_
