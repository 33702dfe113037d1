// A worker's links, with a worker whose executors the test drives, and peers whose
// bytes it writes.
#include "cluster/worker_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster_timeouts.h"
#include "cluster/test_peer.h"
#include "core/stage_visit.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kWorkerModel = 40;  // as the controller calls it
constexpr uint32_t kDevice = 7;

// One float in, one out.
ModelInfo hosted_model(uint32_t id = 0, const std::string& version = "1") {
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
    ASSERT_THAT(outcomes(), ElementsAre("1 done"));
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

TEST_F(WorkerLinkTest, ObserversSeeEachActionAndItsEnd) {
  begin();
  EXPECT_THAT(watcher_.models, ElementsAre("doubling"));
  EXPECT_THAT(watcher_.seen, ElementsAre("LOAD 1 of 0", "LOAD 1 of 0 done"));
  watcher_.seen.clear();
  Action unknown = action(2, ActionType::kLoad);
  unknown.model = ModelId(kWorkerModel + 1);
  ASSERT_TRUE(controller_->say(unknown).ok());
  EXPECT_THAT(watcher_.seen, IsEmpty()) << "the worker has no such model";
  ASSERT_TRUE(controller_->say(infer(3, {{5, 1}})).ok());
  controller_->close();
  EXPECT_THAT(watcher_.seen, ElementsAre("INFER 3 of 0", "INFER 3 of 0 lost")) << "its inputs had not come";
}

TEST_F(WorkerLinkTest, RegistersWithWhereItIsSeen) {
  const auto registrations = controller_->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_EQ(registrations[0].data_address, "10.0.0.1:8200");
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty()));
  EXPECT_EQ(registered_, 0);
  ASSERT_TRUE(controller_->say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).ok());
  EXPECT_EQ(registered_, 1);
}

TEST_F(WorkerLinkTest, ABatchRunsWhenTheInputsOfAllItsRowsAreThere) {
  begin();
  Client first(link_, 1);
  Client second(link_, 2);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}, {2, 10}, {1, 11}})).ok());
  EXPECT_THAT(first.fetched(), ElementsAre(10, 11));
  EXPECT_THAT(second.fetched(), ElementsAre(10));
  ASSERT_TRUE(first.send(2, 10, 1).ok());
  ASSERT_TRUE(first.send(2, 11, 3).ok());
  run();
  EXPECT_EQ(engine_.batches, 0);
  ASSERT_TRUE(second.send(2, 10, 2).ok());
  run();
  EXPECT_THAT(first.outputs(), ElementsAre("10: 2", "11: 6"));
  EXPECT_THAT(second.outputs(), ElementsAre("10: 4"));
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
}

TEST_F(WorkerLinkTest, TwoActionsOfOneRequestEachWaitForTheirOwnInputs) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  ASSERT_TRUE(controller_->say(infer(3, {{1, 10}, {1, 11}})).ok());
  EXPECT_THAT(client.fetched(), ElementsAre(10, 10, 11));
  ASSERT_TRUE(client.send(3, 10, 5).ok());
  run();
  EXPECT_EQ(engine_.batches, 0);
  ASSERT_TRUE(client.send(3, 10, 7).ok()) << "a second time is no harm, and changes nothing";
  ASSERT_TRUE(client.send(3, 11, 1).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: 10", "11: 2"));
  ASSERT_TRUE(client.send(2, 10, 6).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: 12"));
  EXPECT_THAT(outcomes(), ElementsAre("3 done", "2 done"));
}

TEST_F(WorkerLinkTest, OutputsForAClientThatIsGoneAreDropped) {
  begin();
  Client stays(link_, 1);
  Client leaves(link_, 2);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}, {2, 20}})).ok());
  ASSERT_TRUE(controller_->say(infer(3, {{2, 21}})).ok());
  ASSERT_TRUE(stays.send(2, 10, 1).ok());
  leaves.close();
  EXPECT_THAT(outcomes(), ElementsAre("3 too late")) << "that batch has no other rows";
  run();
  EXPECT_THAT(stays.outputs(), ElementsAre("10: 2"));
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
  ASSERT_TRUE(controller_->say(infer(4, {{2, 22}})).ok());
  EXPECT_THAT(outcomes(), ElementsAre("4 too late")) << "it is known to be gone";
}

TEST_F(WorkerLinkTest, AClientMayCancelARow) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}, {1, 11}})).ok());
  ASSERT_TRUE(client.send_nothing(2, 10).ok());
  ASSERT_TRUE(client.send(2, 11, 4).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: nothing", "11: 8"));
}

TEST_F(WorkerLinkTest, AClientThatAttachesLaterIsAskedThen) {
  begin();
  ASSERT_TRUE(controller_->say(infer(2, {{3, 10}})).ok());
  Client client(link_, 3);
  EXPECT_THAT(client.fetched(), ElementsAre(10));
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: 2"));
}

TEST_F(WorkerLinkTest, ANewConnectionOfAClientTakesThePlaceOfTheOldOne) {
  begin();
  Client old(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  Client next(link_, 1);
  EXPECT_THAT(old.check().message(), HasSubstr("another connection has taken its place"));
  old.close();
  EXPECT_THAT(next.fetched(), ElementsAre(10));
  ASSERT_TRUE(next.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(next.outputs(), ElementsAre("10: 2"));
}

TEST_F(WorkerLinkTest, InputsThatDoNotComeInTimeAreWaitedForNoLonger) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  now_ = at_ms(1001);
  link_.on_turn_end(now_);
  EXPECT_THAT(outcomes(), ElementsAre("2 too late"));
  EXPECT_TRUE(client.send(2, 10, 1).ok()) << "too late is no offence";
  run();
  EXPECT_EQ(engine_.batches, 0);
}

TEST_F(WorkerLinkTest, OneActionTooManyIsRefused) {
  begin();
  Client client(link_, 1);
  for (uint64_t i = 0; i < kActionsMax; ++i) {
    ASSERT_TRUE(controller_->say(infer(2 + i, {{1, 10 + i}})).ok());
  }
  EXPECT_THAT(outcomes(), IsEmpty());
  ASSERT_TRUE(controller_->say(infer(99, {{1, 99}})).ok());
  EXPECT_THAT(outcomes(), ElementsAre("99 queue full"));
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
  ASSERT_TRUE(controller_->say(infer(100, {{1, 100}})).ok());
  EXPECT_THAT(outcomes(), IsEmpty()) << "there is room again";
}

TEST_F(WorkerLinkTest, WhatHasNoRoomToBeStagedIsRefused) {
  WorkerLink small({.models_max = 4, .page_count = 4, .staging_bytes = 64},
                   {.log = [](Severity, const std::string&) {}, .on_registered = [](size_t) {}, .on_drained = [] {}});
  small.start({&worker_}, "peer:1", loop_);
  small.add_model(std::make_shared<const ModelInfo>(hosted_model()));
  TestPeer controller(small, Role::kController, "controller:8100");
  controller.answer_pings();
  small.on_turn_end(now_);
  welcome(controller);
  Client client(small, 1);
  std::vector<Row> rows;
  for (uint64_t i = 0; i < 9; ++i) rows.push_back({1, i});
  ASSERT_TRUE(controller.say(infer(2, rows)).ok());
  EXPECT_THAT(outcomes(controller), ElementsAre("2 no io memory"));
  EXPECT_THAT(client.fetched(), IsEmpty());
}

TEST_F(WorkerLinkTest, AnUnknownModelIsRefused) {
  begin();
  Action strange = infer(2, {{1, 10}});
  strange.model = ModelId(3);
  ASSERT_TRUE(controller_->say(strange).ok());
  strange = infer(3, {{1, 10}});
  strange.bucket = BucketId(9);
  ASSERT_TRUE(controller_->say(strange).ok());
  EXPECT_THAT(outcomes(), ElementsAre("2 unknown model", "3 unknown model"));
}

TEST_F(WorkerLinkTest, AGoodbyeInTheMiddleEndsWhatWaitsAndLetsRunWhatRuns) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());  // will run
  ASSERT_TRUE(controller_->say(infer(3, {{1, 11}})).ok());  // waits for its input
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  EXPECT_THAT(controller_->say(Goodbye{"it has stopped"}).message(), HasSubstr("it has stopped"));
  controller_->close();

  const auto next = meet_controller();
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration), IsEmpty()) << "something is under way";
  EXPECT_TRUE(client.send(3, 11, 1).ok()) << "it was asked for";
  run();
  EXPECT_EQ(engine_.batches, 1);
  EXPECT_THAT(client.outputs(), IsEmpty()) << "their request has no answer yet";
  const auto registrations = next->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_THAT(registrations[0].residents, ElementsAre(ElementsAre(0)));

  ASSERT_TRUE(next->say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).ok());
  ASSERT_TRUE(next->say(infer(2, {{1, 12}})).ok()) << "ids begin again";
  ASSERT_TRUE(client.send(2, 12, 3).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("12: 6"));
  EXPECT_THAT(outcomes(*next), ElementsAre("2 done"));
}

// ---- Payloads that are held

TEST_F(WorkerLinkTest, OutputsStayWhereTheyWereMadeUntilTheirLastConsumerIsOver) {
  begin();
  Client client(link_, 1);
  const PayloadReference held = hold(client, 2, 5, 2);
  EXPECT_EQ(held.holder, DeviceId(kDevice));
  ASSERT_TRUE(controller_->say(infer(3, {{1, 11, held}, {1, 12}})).ok());
  EXPECT_THAT(client.fetched(), ElementsAre(12)) << "the other input is here";
  ASSERT_TRUE(client.send(3, 12, 7).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("11: 20", "12: 14"));
  ASSERT_TRUE(client.say(Consumed{held.handle, 1}).ok());
  EXPECT_EQ(link_.held().size(), 1u);
  ASSERT_TRUE(controller_->say(infer(4, {{1, 13, held}})).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("13: 20"));
  ASSERT_TRUE(client.say(Consumed{held.handle, 1}).ok());
  EXPECT_EQ(link_.held().size(), 0u);
  EXPECT_THAT(outcomes(), ElementsAre("2 done", "3 done", "4 done"));
}

TEST_F(WorkerLinkTest, AReferenceThatIsStaleOrOfAnotherClientFindsNothing) {
  begin();
  Client client(link_, 1);
  Client other(link_, 2);
  const PayloadReference stale = hold(client, 2, 5);
  ASSERT_TRUE(client.say(Consumed{stale.handle, 1}).ok());
  const PayloadReference held = hold(client, 3, 6);
  ASSERT_TRUE(controller_->say(infer(4, {{1, 11, stale}})).ok());
  ASSERT_TRUE(controller_->say(infer(5, {{2, 12, held}})).ok());
  run();
  EXPECT_THAT(detail(client), HasSubstr("not held any more"));
  EXPECT_THAT(detail(other), HasSubstr("not held any more"));
  ASSERT_TRUE(other.say(Consumed{held.handle, 1}).ok());
  EXPECT_EQ(link_.held().size(), 1u) << "it is not that client's";
}

TEST_F(WorkerLinkTest, WhatIsHeldEndsWithItsClientTheSessionAndInTime) {
  begin();
  Client stays(link_, 2);
  {
    Client client(link_, 1);
    hold(client, 2, 5);
    hold(client, 3, 6, 9);
    EXPECT_EQ(link_.held().size(), 2u);
    client.close();
  }
  EXPECT_EQ(link_.held().size(), 0u);

  Client client(link_, 1);
  hold(client, 4, 5);
  now_ = now_ + kClusterTimeouts.held_payload;
  link_.on_turn_end(now_);
  EXPECT_EQ(link_.held().size(), 1u);
  now_ = now_ + Duration::seconds(1);
  link_.on_turn_end(now_);
  EXPECT_EQ(link_.held().size(), 0u);
}

TEST_F(WorkerLinkTest, WhatIsHeldEndsWithTheController) {
  begin();
  Client client(link_, 1);
  const PayloadReference before = hold(client, 2, 5);
  controller_->close();
  EXPECT_EQ(link_.held().size(), 0u);
  controller_ = meet_controller();
  welcome(*controller_);
  const PayloadReference held = hold(client, 3, 6);
  EXPECT_NE(held, before);
  EXPECT_EQ(link_.held().size(), 1u);
}

TEST_F(WorkerLinkTest, OutputsWithoutRoomToBeHeldAreRefused) {
  begin();
  Client client(link_, 1);
  std::vector<Row> rows;
  for (uint64_t i = 0; i < 4; ++i) rows.push_back({1, 10 + i, {}, 1});
  ASSERT_TRUE(controller_->say(infer(2, rows)).ok());
  ASSERT_TRUE(controller_->say(infer(3, {{1, 20, {}, 1}})).ok());
  EXPECT_THAT(outcomes(), ElementsAre("3 no io memory")) << "the others' room is reserved";
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(client.send_nothing(2, 10 + i).ok());
  EXPECT_THAT(outcomes(), ElementsAre("2 too late")) << "all rows were cancelled";
  EXPECT_EQ(link_.held().used_bytes(), 0u);
  hold(client, 4, 1);
}

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

TEST_F(WorkerLinkHolderTest, InputsAreFetchedFromTheWorkerThatHoldsThem) {
  EXPECT_THAT(loop_.kept, IsEmpty()) << "nothing of it is needed";
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, kThere}, {1, 11}})).ok());
  EXPECT_THAT(loop_.kept, ElementsAre(kAddress));
  EXPECT_THAT(client_.fetched(), ElementsAre(11));
  TestPeer holder(link_, Role::kWorker, kAddress);
  const auto fetches = holder.received<Fetch>(MessageType::kFetch);
  ASSERT_EQ(fetches.size(), 1u);
  EXPECT_EQ(fetches[0].payload, kThere.handle);
  EXPECT_EQ(fetches[0].request, request_of(1, RequestId(10))) << "it says whose it is to be";
  const float number = 3;
  const float wrong = 4;
  ASSERT_TRUE(client_.send(2, 10, wrong).ok()) << "it is not asked, and changes nothing";
  ASSERT_TRUE(client_.send(2, 11, 1).ok());
  ASSERT_TRUE(holder.say(Inputs{ActionId(2), fetches[0].request, {std::as_bytes(std::span(&number, 1))}}).ok());
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre("10: 6", "11: 2"));

  ASSERT_TRUE(controller_->say(infer(3, {{1, 12, kThere}})).ok());
  EXPECT_EQ(holder.received<Fetch>(MessageType::kFetch).size(), 1u) << "over the same link";
  EXPECT_EQ(loop_.kept.size(), 1u);
}

TEST_F(WorkerLinkHolderTest, ARowWhoseInputsCannotBeHadSaysWhy) {
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, {DeviceId(99), PayloadHandle(1)}}})).ok());
  run();
  EXPECT_THAT(detail(client_), HasSubstr("the worker that held its inputs is gone"));

  ASSERT_TRUE(controller_->say(infer(3, {{1, 11, kThere}})).ok());
  link_.on_no_greeting(kAddress, Status::unavailable("cannot connect"));
  run();
  run();
  EXPECT_THAT(detail(client_), HasSubstr("the worker that held its inputs is lost"));

  TestPeer holder(link_, Role::kWorker, kAddress);
  ASSERT_TRUE(controller_->say(infer(4, {{1, 12, kThere}})).ok());
  ASSERT_TRUE(holder.say(Inputs{ActionId(4), request_of(1, RequestId(12)), {}}).ok());
  run();
  EXPECT_THAT(detail(client_), HasSubstr("not held any more"));

  ASSERT_TRUE(controller_->say(infer(5, {{1, 13, kThere}})).ok());
  const std::vector<float> two{1, 2};
  ASSERT_TRUE(holder.say(Inputs{ActionId(5), request_of(1, RequestId(13)), {std::as_bytes(std::span(two))}}).ok());
  run();
  EXPECT_EQ(detail(client_), "inputs of 8 bytes do not fit the model 'doubling', which takes 4");

  ASSERT_TRUE(controller_->say(infer(6, {{1, 14, kThere}, {1, 15}})).ok());
  ASSERT_TRUE(client_.send(6, 15, 4).ok());
  holder.close();
  run();
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre("14: nothing", "15: 8")) << "others' rows are not affected";
  EXPECT_THAT(outcomes(), ElementsAre("2 done", "3 done", "4 done", "5 done", "6 done"));
}

TEST_F(WorkerLinkHolderTest, AHolderThatLeavesIsConnectedToNoLonger) {
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, kThere}})).ok());
  ASSERT_TRUE(controller_->say(Workers{{{"w", "10.0.0.1:8200", {DeviceId(kDevice)}}}}).ok());
  EXPECT_THAT(loop_.kept, IsEmpty());
  run();
  run();
  EXPECT_THAT(detail(client_), HasSubstr("is lost"));
}

TEST_F(WorkerLinkHolderTest, AnsweredInTimeOrTooLate) {
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, kThere}})).ok());
  now_ = at_ms(1001);
  link_.on_turn_end(now_);
  EXPECT_THAT(outcomes(), ElementsAre("2 too late"));
}

TEST_F(WorkerLinkHolderTest, AnotherWorkerGetsWhatIsItsClients) {
  const PayloadReference held = hold(client_, 2, 5);
  TestPeer other(link_, Role::kWorker);
  const auto fetch = [&](uint16_t client, PayloadHandle handle) {
    EXPECT_TRUE(other.say(Fetch{ActionId(9), request_of(client, RequestId(10)), handle}).ok());
    const auto inputs = other.received<Inputs>(MessageType::kInputs);
    EXPECT_EQ(inputs.size(), 1u);
    EXPECT_EQ(inputs[0].request, request_of(client, RequestId(10)));
    float number = 0;
    if (!inputs[0].tensors.empty()) std::memcpy(&number, inputs[0].tensors[0].data(), sizeof(number));
    return number;
  };
  EXPECT_EQ(fetch(1, held.handle), 10);
  EXPECT_EQ(fetch(1, held.handle), 10) << "fetching is not consuming: an action may be planned again";
  EXPECT_EQ(fetch(2, held.handle), 0);
  EXPECT_EQ(fetch(1, PayloadHandle(held.handle.value() + 1)), 0);
  EXPECT_FALSE(other.say(Attach{1}).ok()) << "it is no client";
}

// ---- Models that come and go

TEST_F(WorkerLinkTest, ANewVersionIsOfferedAndTheOldOneRunsUntilItIsReleased) {
  begin();
  update();
  std::vector<MessageType> types;
  for (const Frame& frame : controller_->frames()) {
    types.push_back(frame.type);
    if (frame.type == MessageType::kOffer) {
      Offer offer;
      ASSERT_TRUE(decode(frame, offer).ok());
      EXPECT_EQ(offer.model.id, ModelId(1));
      EXPECT_EQ(offer.model.version, "2");
    } else {
      Withdrawal withdrawal;
      ASSERT_TRUE(decode(frame, withdrawal).ok());
      EXPECT_EQ(withdrawal.model, ModelId(0));
    }
  }
  EXPECT_THAT(types, ElementsAre(MessageType::kOffer, MessageType::kWithdrawal));

  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));

  ASSERT_TRUE(controller_->say(Naming{ModelId(1), ModelId(kWorkerModel + 1)}).ok());
  Action load = action(3, ActionType::kLoad);
  load.model = ModelId(kWorkerModel + 1);
  ASSERT_TRUE(controller_->say(load).ok());
  ASSERT_TRUE(controller_->say(action(4, ActionType::kUnload)).ok());
  run();
  EXPECT_THAT(outcomes(), UnorderedElementsAre("3 done", "4 done"));
  EXPECT_EQ(gone_, 0);
  ASSERT_TRUE(controller_->say(Release{ModelId(0)}).ok());
  EXPECT_EQ(gone_, 1);
  ASSERT_TRUE(controller_->say(action(5, ActionType::kLoad)).ok());
  EXPECT_THAT(outcomes(), ElementsAre("5 unknown model"));
}

TEST_F(WorkerLinkTest, ThePagesHoldOnlyModelsThatTheNextControllerKnows) {
  begin();
  controller_->close();
  update();
  EXPECT_EQ(gone_, 0);
  const auto next = meet_controller();
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration), IsEmpty()) << "the pages are being emptied";
  run();
  const auto registrations = next->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  ASSERT_EQ(registrations[0].models.size(), 1u);
  EXPECT_EQ(registrations[0].models[0].version, "2");
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty()));
  EXPECT_FALSE(worker_.resident(ModelId(0)));
  EXPECT_EQ(gone_, 1);
}

TEST_F(WorkerLinkTest, ThePagesHoldNothingThatTheControllerHasNoNameFor) {
  begin();
  controller_->close();
  const auto next = meet_controller();
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration)[0].residents, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(next->say(Welcome{{DeviceId(kDevice)}, {kUnnamed}}).message(), HasSubstr("not served"));
  next->close();
  const auto again = meet_controller();
  run();
  const auto registrations = again->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_EQ(registrations[0].models.size(), 1u);
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty()));
}

class TwoDevicesTest : public WorkerLinkTest {
 protected:
  static constexpr uint32_t kSecond = 3;

  TwoDevicesTest() : WorkerLinkTest(true) {}
  void welcome_both(TestPeer& controller) {
    EXPECT_TRUE(controller.say(Welcome{{DeviceId(kDevice), DeviceId(kSecond)}, {ModelId(kWorkerModel)}}).ok());
  }
  static Action on(uint32_t device, Action action) {
    action.device = DeviceId(device);
    return action;
  }
};

TEST_F(TwoDevicesTest, EachIsRegisteredWithItsPagesAndWhatTheyHold) {
  auto registrations = controller_->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_THAT(registrations[0].page_counts, ElementsAre(4, 4));
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty(), IsEmpty()));
  welcome_both(*controller_);
  ASSERT_TRUE(controller_->say(on(kSecond, action(1, ActionType::kLoad))).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("1 done"));
  EXPECT_FALSE(worker_.resident(ModelId(0)));
  EXPECT_TRUE(second_.resident(ModelId(0)));
  controller_->close();
  const auto next = meet_controller();
  registrations = next->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty(), ElementsAre(0)));
}

TEST_F(TwoDevicesTest, ActionsGoToTheirDevicesAndOutcomesNameThem) {
  welcome_both(*controller_);
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(on(kSecond, action(1, ActionType::kLoad))).ok());
  ASSERT_TRUE(controller_->say(on(kDevice, infer(2, {{1, 10}}))).ok());
  ASSERT_TRUE(controller_->say(on(kSecond, infer(3, {{1, 11}}))).ok());
  ASSERT_TRUE(client.send(2, 10, 4).ok());
  ASSERT_TRUE(client.send(3, 11, 5).ok());
  run();
  std::vector<std::string> ended;
  for (const Outcome& outcome : controller_->received<Outcome>(MessageType::kOutcome)) {
    ended.push_back(std::to_string(outcome.action.value()) + " on " + std::to_string(outcome.device.value()) + " " +
                    std::string(to_string(outcome.status)));
  }
  EXPECT_THAT(ended, UnorderedElementsAre("1 on 3 done", "2 on 7 not loaded", "3 on 3 done"));
  EXPECT_THAT(client.outputs(), ElementsAre("11: 10"));
}

TEST_F(TwoDevicesTest, WhatOneHoldsIsFedToTheOtherWithoutALink) {
  welcome_both(*controller_);
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(on(kDevice, action(1, ActionType::kLoad))).ok());
  ASSERT_TRUE(controller_->say(on(kSecond, action(2, ActionType::kLoad))).ok());
  run();
  const PayloadReference held = hold(client, 3, 4);
  ASSERT_TRUE(controller_->say(on(kSecond, infer(4, {{1, 11, held}}))).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("11: 16"));
  EXPECT_THAT(loop_.kept, IsEmpty());
}

TEST_F(TwoDevicesTest, BothAreEmptiedOfWhatIsNotServed) {
  welcome_both(*controller_);
  ASSERT_TRUE(controller_->say(on(kDevice, action(1, ActionType::kLoad))).ok());
  ASSERT_TRUE(controller_->say(on(kSecond, action(2, ActionType::kLoad))).ok());
  run();
  controller_->close();
  update();
  const auto next = meet_controller();
  run();
  EXPECT_FALSE(worker_.resident(ModelId(0)) || second_.resident(ModelId(0)));
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration)[0].residents, ElementsAre(IsEmpty(), IsEmpty()));
}

TEST_F(TwoDevicesTest, AWelcomeForAnotherNumberOfDevicesIsAnError) {
  EXPECT_THAT(controller_->say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).message(),
              HasSubstr("does not fit the registration"));
}

TEST_F(WorkerLinkTest, AModelWhoseBatchHasNoRoomIsNotTakenIn) {
  EXPECT_TRUE(link_.check(hosted_model()).ok());
  ModelInfo large = hosted_model();
  large.inputs[0].shape = {kStagingBytes};
  EXPECT_THAT(link_.check(large).message(), HasSubstr("--staging"));
}

TEST_F(WorkerLinkTest, NamesBeforeItsWelcomeEndTheSession) {
  EXPECT_FALSE(controller_->say(Naming{ModelId(0), ModelId(kWorkerModel)}).ok());
}

TEST_F(WorkerLinkTest, DrainingAsksForNoMoreAndEndsWhenNothingIsUnderWay) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  link_.drain();
  link_.on_turn_end(now_);
  EXPECT_EQ(controller_->received<Leave>(MessageType::kLeave).size(), 1u);
  now_ = at_ms(500);
  link_.on_turn_end(now_);
  EXPECT_FALSE(drained_);
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
  now_ = at_ms(900);
  link_.on_turn_end(now_);
  EXPECT_TRUE(drained_);
}

TEST_F(WorkerLinkTest, DrainingGivesUpAfterItsTime) {
  begin();
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  link_.drain();
  link_.on_turn_end(now_);
  now_ = at_ms(1002);
  link_.on_turn_end(now_);
  EXPECT_TRUE(drained_);
}

TEST_F(WorkerLinkTest, AFrameOutOfPlaceEndsTheSession) {
  EXPECT_THAT(controller_->say(infer(2, {{1, 10}})).message(), HasSubstr("for another device")) << "not welcome yet";
  EXPECT_THAT(controller_->say(Welcome{{DeviceId(1), DeviceId(2)}, {ModelId(0)}}).message(), HasSubstr("does not fit"));
  begin();
  EXPECT_THAT(controller_->say(Welcome{{DeviceId(1)}, {ModelId(0)}}).message(), HasSubstr("does not fit"));
  EXPECT_THAT(controller_->say(Leave{}).message(), HasSubstr("unexpected LEAVE message"));
  EXPECT_THAT(controller_->say(Pong{at_ms(77), at_ms(1)}).message(), HasSubstr("without a PING"));
  Action other = infer(2, {{1, 10}});
  other.device = DeviceId(kDevice + 1);
  EXPECT_THAT(controller_->say(other).message(), HasSubstr("for another device"));
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  EXPECT_THAT(controller_->say(infer(2, {{1, 10}})).message(), HasSubstr("was sent before"));

  Client client(link_, 1);
  EXPECT_THAT(client.say(Attach{2}).message(), HasSubstr("attaches once"));
  EXPECT_THAT(client.say(Outputs{}).message(), HasSubstr("unexpected OUTPUTS message"));
  EXPECT_THAT(client.say(Inputs{ActionId(2), RequestId(10), {{}, {}}}).message(), HasSubstr("do not fit the model"));
  const std::byte byte{};
  EXPECT_THAT(client.say(Inputs{ActionId(2), RequestId(10), {{&byte, 1}}}).message(),
              HasSubstr("do not fit the model"));
  EXPECT_TRUE(client.send(5, 10, 1).ok()) << "of an action that is over, or of none: ignored";
  EXPECT_TRUE(client.send(2, 77, 1).ok());
  TestPeer stranger(link_, Role::kClient);
  EXPECT_THAT(stranger.say(Inputs{ActionId(2), RequestId(10), {}}).message(), HasSubstr("INPUTS without a FETCH"));
}

TEST_F(WorkerLinkTest, AClientThatIsSilentIsNotWaitedFor) {
  begin();
  Client client(link_, 1);
  client.now = at_ms(1000);
  ASSERT_TRUE(client.say(Ping{at_ms(1000)}).ok());
  now_ = at_ms(4900);
  link_.on_turn_end(now_);
  EXPECT_TRUE(client.check().ok());
  now_ = at_ms(5100);
  link_.on_turn_end(now_);
  EXPECT_THAT(client.check().message(), HasSubstr("no message for"));
}

// ---- Visits of stages ----

// Client 1's run 40; the model is that of every stage.
class WorkerLinkVisitTest : public WorkerLinkHolderTest {
 protected:
  static constexpr RequestId kRun = RequestId(kRunIdBit | 40);
  static RequestId visit(uint32_t stage) { return visit_of(request_of(1, kRun), stage); }
  static VisitOrder::Input from_call(uint32_t tensor) { return {{.stage = {}, .tensor = tensor}, {}}; }
  static VisitOrder::Input from_stage(uint32_t stage, DeviceId holder) {
    return {{.stage = stage, .tensor = 0}, holder};
  }
  // Of one row.
  Status say_visit(uint64_t id, uint32_t stage, const VisitOrder& order) {
    EXPECT_TRUE(controller_->say(Visits{ActionId(id), {{0, order}}}).ok());
    return controller_->say(infer(id, {{1, own_id(visit(stage)).value()}}));
  }
  Outcome outcome() {
    const auto outcomes = controller_->received<Outcome>(MessageType::kOutcome);
    EXPECT_EQ(outcomes.size(), 1u);
    return outcomes.empty() ? Outcome() : outcomes.back();
  }
  Status give(uint64_t action, uint32_t stage, float number) {
    return client_.send(action, own_id(visit(stage)).value(), number);
  }
  static StageCondition below(double limit) {
    return {.comparison = StageCondition::Comparison::kBelow, .limit = limit};
  }
};

TEST_F(WorkerLinkVisitTest, WhatAStageComputesBecomesTheInputOfTheNextWithoutASocket) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(5)}, {below(11), below(9)}, {}, true}).ok());
  const auto fetches = client_.received<Fetch>(MessageType::kFetch);
  ASSERT_EQ(fetches.size(), 1u);
  EXPECT_EQ(fetches[0].request, own_id(visit(0)));
  EXPECT_EQ(fetches[0].tensors, std::vector<uint32_t>{5}) << "no other input of the call";
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  const Outcome first = outcome();
  EXPECT_EQ(first.conditions[0], 1) << "10 is below 11, and not below 9";
  EXPECT_TRUE(first.unfed_rows.none());
  EXPECT_THAT(client_.outputs(), IsEmpty()) << "no client may get it";
  EXPECT_EQ(link_.held().size(), 1u);

  ASSERT_TRUE(say_visit(3, 1, {{from_stage(0, DeviceId(kDevice))}, {}, {0}, false}).ok());
  run();
  EXPECT_EQ(outcome().status, OutcomeStatus::kDone);
  EXPECT_THAT(client_.outputs(), ElementsAre(std::to_string(own_id(visit(1)).value()) + ": 20"));
  EXPECT_EQ(held_bytes_, 4u);
  EXPECT_EQ(fetched_bytes_, 0u);
  ASSERT_TRUE(controller_->say(Discard{visit(0)}).ok());
  EXPECT_EQ(link_.held().used_bytes(), 0u);
}

TEST_F(WorkerLinkVisitTest, InputsOfSeveralSourcesAreWaitedFor) {
  ASSERT_TRUE(say_visit(2, 2, {{from_stage(1, kOther)}, {}, {0}, false}).ok());
  EXPECT_THAT(loop_.kept, ElementsAre(kAddress));
  TestPeer holder(link_, Role::kWorker, kAddress);
  const auto fetches = holder.received<Fetch>(MessageType::kFetch);
  ASSERT_EQ(fetches.size(), 1u);
  EXPECT_EQ(fetches[0].request, visit(2));
  EXPECT_EQ(fetches[0].source, 2u);
  const float number = 3;
  const Inputs inputs{ActionId(2), visit(2), {std::as_bytes(std::span(&number, 1))}, 1};
  ASSERT_TRUE(holder.say(inputs).ok());
  run();
  EXPECT_THAT(client_.outputs(), IsEmpty()) << "they are of another stage";
  Inputs right = inputs;
  right.source = 2;
  ASSERT_TRUE(holder.say(right).ok());
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre(std::to_string(own_id(visit(2)).value()) + ": 6"));
  EXPECT_EQ(fetched_bytes_, 4u);
}

TEST_F(WorkerLinkVisitTest, OtherWorkersFetchWhatIsHeld) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(0)}, {}, {}, true}).ok());
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  TestPeer other(link_, Role::kWorker);
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 1, {0}}).ok());
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 1, {1}}).ok());
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 2, {0}}).ok());
  const auto inputs = other.received<Inputs>(MessageType::kInputs);
  ASSERT_EQ(inputs.size(), 3u);
  ASSERT_EQ(inputs[0].tensors.size(), 1u);
  EXPECT_EQ(inputs[0].source, 1u);
  EXPECT_THAT(inputs[1].tensors, IsEmpty()) << "there is no such output";
  EXPECT_THAT(inputs[2].tensors, IsEmpty()) << "there was no such visit";
}

TEST_F(WorkerLinkVisitTest, AVisitWithoutItsInputsIsNamedAndHoldsNothing) {
  ASSERT_TRUE(say_visit(2, 1, {{from_stage(0, DeviceId(kDevice))}, {}, {0}, true}).ok());
  run();
  EXPECT_EQ(outcome().unfed_rows, RowSet(1)) << "this worker holds nothing of the run";
  EXPECT_THAT(client_.outputs(), IsEmpty());
  ASSERT_TRUE(say_visit(3, 1, {{from_stage(0, kOther)}, {}, {0}, true}).ok());
  link_.on_no_greeting(kAddress, Status::unavailable("cannot connect"));
  run();
  run();
  EXPECT_EQ(outcome().unfed_rows, RowSet(1)) << "the holder cannot be reached";
  EXPECT_EQ(link_.held().used_bytes(), 0u);
}

TEST_F(WorkerLinkVisitTest, WhatIsHeldEndsWithItsClient) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(0)}, {}, {}, true}).ok());
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  EXPECT_EQ(link_.held().size(), 1u);
  client_.close();
  EXPECT_EQ(link_.held().used_bytes(), 0u);
  ASSERT_TRUE(controller_->say(Discard{visit(0)}).ok());
}

TEST_F(WorkerLinkVisitTest, VisitsThatDoNotFitEndTheSession) {
  const auto refusal = [this](const VisitOrder& order) { return std::string(say_visit(2, 0, order).message()); };
  EXPECT_THAT(refusal({{}, {}, {}, false}), HasSubstr("VISITS that do not fit the model"));
  EXPECT_THAT(refusal({{from_call(0)}, {}, {1}, false}), HasSubstr("VISITS that do not fit the model"));
  StageCondition condition = below(1);
  condition.value = StageCondition::Value::kElement;
  condition.element = 1;
  EXPECT_THAT(refusal({{from_call(0)}, {condition}, {}, false}), HasSubstr("VISITS that do not fit the model"));
  EXPECT_EQ(link_.held().used_bytes(), 0u);
  ASSERT_TRUE(controller_->say(Visits{ActionId(7), {}}).ok());
  EXPECT_THAT(controller_->say(infer(8, {{1, 10}})).message(), HasSubstr("after the VISITS of another"));
}

}  // namespace
}  // namespace foliot
