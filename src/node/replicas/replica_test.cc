// Replicas over real processes, under a real controller's loop.
#include "node/replicas/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/policies/registry.h"
#include "engine/container/container_engine.h"
#include "engine/container/test_container.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/thread.h"
#include "node/replicas/local_replica_place.h"
#include "node/threads/controller_loop.h"

namespace foliot {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

[[maybe_unused]] const bool is_container = TestContainer::run_if_asked();

// There is no other device.
class NoActions : public ActionSink {
 public:
  void send(const Action& /*action*/) override { ADD_FAILURE() << "an action for a device that is no replica"; }
};

// One row of five values for each payload, and the completions of requests.
class Rows : public PayloadStore, public CompletionSink {
 public:
  using Row = std::array<float, kTestRowFloats>;
  std::span<const std::byte> input(PayloadHandle payload, uint32_t /*index*/) override {
    inputs_[payload.value()].fill(static_cast<float>(payload.value()));
    return std::as_bytes(std::span(inputs_[payload.value()]));
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t /*index*/) override {
    return std::as_writable_bytes(std::span(outputs_[payload.value()]));
  }
  void complete(const Completion& completion) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(completions_.emplace(completion.id, completion).second) << "two ends";
    changed_.notify_all();
  }
  Completion await(RequestId request) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completions_.contains(request); });
    return completions_.at(request);
  }
  // One that is over has given its row to a later one.
  static PayloadHandle row_of(uint64_t request) { return PayloadHandle(request % kRows); }
  const Row& output_of(uint64_t request) const { return outputs_[row_of(request).value()]; }

 private:
  static constexpr size_t kRows = 64;
  std::array<Row, kRows> inputs_{};
  std::array<Row, kRows> outputs_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Completion> completions_;  // guarded by mutex_
};

// Of all threads of this process.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) all.push_back(child);
  }
  return all;
}

class ReplicaTest : public ::testing::Test {
 protected:
  ReplicaTest() { EXPECT_TRUE(loop_.start().ok()); }
  ~ReplicaTest() override {
    for (const auto& replica : replicas_) replica->stop();
    loop_.stop();
  }

  Replica& make(const std::string& behaviour) {
    const ReplicaParts parts{.place = place_, .threads = *threads_};
    replicas_.push_back(std::make_unique<Replica>(parts, "test/0", test_container(behaviour), kKind));
    return *replicas_.back();
  }
  // The model of this replica, which the controller then has.
  std::shared_ptr<const ModelInfo> add_model_of(Replica& replica) {
    EXPECT_TRUE(replica.start().ok());
    const auto measured = replica.wait_until_measured({});
    EXPECT_TRUE(measured.ok()) << measured.status().message();
    auto info = container_model(measured->description, kKind, measured->batch_sizes, measured->durations);
    info.id = ModelId(0);
    const auto model = std::make_shared<const ModelInfo>(info);
    inbox_.add_model(model);
    replica.serve(model);
    EXPECT_TRUE(replica.wait_until_joined().ok());
    return model;
  }
  Completion ask(uint64_t id) {
    inbox_.submit({.id = RequestId(id),
                   .model = ModelId(0),
                   .payload = Rows::row_of(id),
                   .arrival = monotonic_now(),
                   .deadline = TimePoint::infinite_future()});
    return rows_.await(RequestId(id));
  }
  void expect_answers(uint64_t id) {
    const Completion completion = ask(id);
    ASSERT_EQ(completion.refusal, Refusal::kNone) << to_string(completion.refusal);
    EXPECT_THAT(rows_.output_of(id), Each(2 * static_cast<float>(Rows::row_of(id).value()) + 1));
  }

  static constexpr const char* kKind = "container:test";
  ControllerInbox inbox_{1024};
  NoActions no_actions_;
  Rows rows_;
  ControllerLoop loop_{{}, find_policy("foliot").value().make, inbox_, no_actions_, rows_};
  LocalReplicaPlace place_{inbox_, rows_, 0};
  std::unique_ptr<ThreadStarter> threads_ = ThreadStarter::make().value();
  std::vector<std::unique_ptr<Replica>> replicas_;
};

TEST_F(ReplicaTest, AnswersAsADeviceOfTheController) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  const auto model = add_model_of(make("works"));
  EXPECT_THAT(model->only().batch_sizes, ::testing::ElementsAre(1, 2, 4));
  for (uint64_t id = 1; id <= 5; ++id) expect_answers(id);
}

TEST_F(ReplicaTest, RunsBesideWhatABackgroundThreadStartedItFor) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  auto background = Thread::start({.name = "background", .nice = 15}, [this] { add_model_of(make("works")); });
  ASSERT_TRUE(background.ok()) << background.status().message();
  background->join();
  ASSERT_EQ(children().size(), 1u);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, children().front()), ::getpriority(PRIO_PROCESS, 0));
}

TEST_F(ReplicaTest, AProcessThatIsKilledIsStartedAgain) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  add_model_of(make("works"));
  uint64_t id = 1;
  for (int i = 0; i < 3; ++i) {
    expect_answers(id++);
    const std::vector<pid_t> processes = children();
    ASSERT_EQ(processes.size(), 1u);
    ASSERT_EQ(::kill(processes.front(), SIGKILL), 0);
    // What it had is refused, as is what comes while there is none.
    while (ask(id).refusal == Refusal::kWorkerLost) ++id;
    ++id;
  }
}

TEST_F(ReplicaTest, AnotherReplicaAnswersMeanwhile) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  const auto model = add_model_of(make("works"));
  Replica& second = make("works");
  second.serve(model);
  ASSERT_TRUE(second.start().ok());
  ASSERT_TRUE(second.wait_until_measured({}).ok());
  ASSERT_TRUE(second.wait_until_joined().ok());
  replicas_.front()->stop();
  expect_answers(1);
}

TEST_F(ReplicaTest, ReportsWhyThereIsNoProcess) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  Replica& replica = make("refuses");
  ASSERT_TRUE(replica.start().ok());
  const auto measured = replica.wait_until_measured({});
  EXPECT_EQ(measured.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(measured.status().message(), HasSubstr("model.py has no model"));
}

TEST_F(ReplicaTest, AStartThatNeverEndsIsCancelled) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  Replica& replica = make("is never ready");
  ASSERT_TRUE(replica.start().ok());
  EXPECT_EQ(replica.wait_until_measured([] { return true; }).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(children().empty());
}

TEST_F(ReplicaTest, WhatItsCodeFailsOnIsRefusedAndTheDeviceGoesOn) {
  EXPECT_TRUE(place_.kinds().take("test").ok());
  add_model_of(make("fails on seven"));
  EXPECT_EQ(ask(7).refusal, Refusal::kModelError);
  expect_answers(8);
}

}  // namespace
}  // namespace foliot
