// The parts that share memory in production - controller loop, worker, executor
// threads - under real threads and many requests; made for the thread sanitizer.
#include "node/threads/controller_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/policies/registry.h"
#include "engine/worker/worker.h"
#include "foundation/platform/clock.h"
#include "node/threads/executor_thread.h"

namespace foliot {
namespace {

// Takes a little time, and sees to it that EXEC finds the model loaded.
class BusyEngine : public Engine {
 public:
  Result<WorkerModel> add(const EngineModel&) override { return WorkerModel(); }
  Status prepare(ModelId, size_t) override { return Status(); }
  void remove(ModelId) override {}
  Status load(ModelId model, std::span<const PageIndex>) override {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    loaded_[model.value()].store(true);
    return Status();
  }
  void unload(ModelId model) override { EXPECT_TRUE(loaded_[model.value()].exchange(false)); }
  void input(const InferWork&) override {}
  Status run(const InferWork& work) override {
    EXPECT_TRUE(loaded_[work.action.model.value()].load());
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    EXPECT_TRUE(loaded_[work.action.model.value()].load());
    return Status();
  }
  void output(const InferWork&) override {}

 private:
  std::array<std::atomic<bool>, 64> loaded_{};
};

class CountingSink : public CompletionSink {
 public:
  void complete(const Completion& completion) override {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(completed_.insert(completion.id).second) << "answered twice";
    served_ += completion.served() ? 1 : 0;
    changed_.notify_all();
  }
  // Blocks until so many are completed.
  void await(size_t completions) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completed_.size() >= completions; });
  }
  size_t served() {
    std::lock_guard lock(mutex_);
    return served_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<RequestId> completed_;
  size_t served_ = 0;
};

class ControllerLoopTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kModels = 12;
  static constexpr uint32_t kPages = 5;

  ControllerLoopTest()
      : worker_({.page_count = kPages, .io_cache_bytes = 1 << 20, .models_max = 64, .infers_in_flight_max = 64},
                engine_, inbox_, {threads_[0], threads_[1], threads_[2], threads_[3]}),
        loop_({}, find_policy("clockwork")->make, inbox_, worker_, sink_) {
    loop_.controller().add_device(kPages, monotonic_now());
    EXPECT_TRUE(loop_.start().ok());
    for (size_t i = 0; i < threads_.size(); ++i) EXPECT_TRUE(threads_[i].start(*worker_.executors()[i]).ok());
    for (uint32_t id = 0; id < kModels; ++id) add_model(id);
  }

  ~ControllerLoopTest() override {
    for (ExecutorThread& thread : threads_) thread.stop();
    loop_.stop();
  }

  void add_model(uint32_t id) {
    worker_.add_model({.id = ModelId(id), .pages = 1, .batch_sizes = {1, 4}, .io_bytes = {{64, 64}, {256, 256}}});
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->only().batch_sizes = {1, 4};
    model->only().seed_load = Duration::microseconds(200);
    model->buckets.resize(1);
    model->only().seed_exec = {{Duration::microseconds(100), Duration::microseconds(100)}};
    inbox_.add_model(model);
  }

  void submit(uint64_t id, uint32_t model) {
    const TimePoint now = monotonic_now();
    inbox_.submit({.id = RequestId(id),
                   .model = ModelId(model),
                   .arrival = now,
                   .deadline = id % 7 == 0 ? TimePoint::infinite_future() : now + Duration::milliseconds(200)});
  }

  // Submits as a client with at most so many requests in flight does.
  static constexpr size_t kInFlight = 300;
  void submit_in_turn(uint64_t id, uint32_t model) {
    const size_t submitted = ++submitted_;
    if (submitted > kInFlight) sink_.await(submitted - kInFlight);
    submit(id, model);
  }

  std::atomic<size_t> submitted_{0};
  ControllerInbox inbox_{1 << 16};
  CountingSink sink_;
  BusyEngine engine_;
  std::array<ExecutorThread, 4> threads_;
  Worker worker_;
  ControllerLoop loop_;
};

TEST_F(ControllerLoopTest, AnswersEveryRequestOfSeveralThreadsOnce) {
  constexpr uint64_t kEach = 3000;
  std::vector<std::thread> clients;
  for (uint64_t client = 0; client < 3; ++client) {
    clients.emplace_back([this, client] {
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t id = client * kEach + i;
        submit_in_turn(id, static_cast<uint32_t>(id % kModels));
        if (i % 50 == 0) inbox_.cancel(RequestId(id), Refusal::kCancelled);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  sink_.await(3 * kEach);
  EXPECT_GT(sink_.served(), 0u);
}

// Keeps labels; calls come from the loop's thread.
class Labels : public CallLabelSink {
 public:
  void on_label(RequestId request, std::shared_ptr<const CallLabel> label) override {
    EXPECT_EQ(label->text, std::to_string(request.value()));
    ++seen;
  }
  std::atomic<int> seen{0};
};

TEST(ControllerLoopLabels, StayWithTheirRequestsWhateverTheThread) {
  constexpr uint64_t kEach = 1000;
  class NoActions : public ActionSink {
    void send(const Action& /*action*/) override { ADD_FAILURE() << "there is no device"; }
  };
  NoActions actions;
  ControllerInbox inbox(1 << 16);
  CountingSink sink;
  Labels labels;
  std::atomic<int> turns{0};
  ControllerLoop loop({}, find_policy("clockwork")->make, inbox, actions, sink);
  loop.add_label_sink(labels);
  loop.set_turn_watch([&](Duration decision) { turns += decision >= Duration() ? 1 : 0; });
  ASSERT_TRUE(loop.start().ok());
  auto model = std::make_shared<ModelInfo>();
  model->buckets.resize(1);
  model->only().seed_exec = {{Duration::microseconds(100)}};
  inbox.add_model(model);
  std::vector<std::thread> clients;
  for (uint64_t client = 0; client < 3; ++client) {
    clients.emplace_back([&, client] {
      for (uint64_t id = client * kEach; id < (client + 1) * kEach; ++id) {
        const auto label = id % 2 == 0 ? std::make_shared<const CallLabel>(call_label(std::to_string(id))) : nullptr;
        inbox.submit_labelled({.id = RequestId(id), .arrival = monotonic_now()}, label);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  sink.await(3 * kEach);  // there is no device: all are refused
  loop.stop();
  EXPECT_EQ(labels.seen.load(), static_cast<int>(3 * kEach / 2));
  EXPECT_GT(turns.load(), 0);
}

TEST_F(ControllerLoopTest, TakesModelsAwayAndBringsThemBackUnderTraffic) {
  constexpr uint64_t kRequests = 3000;
  std::thread client([this] {
    for (uint64_t id = 0; id < kRequests; ++id) {
      submit_in_turn(id, static_cast<uint32_t>(id % kModels));
    }
  });
  for (int round = 0; round < 20; ++round) {
    std::promise<void> gone;
    inbox_.remove_model(ModelId(3), [&gone] { gone.set_value(); });
    gone.get_future().wait();
    worker_.remove_model(ModelId(3));
    add_model(3);
  }
  client.join();
  sink_.await(kRequests);
}

TEST_F(ControllerLoopTest, DrainingAnswersAllThatWaits) {
  for (uint64_t id = 0; id < 1000; ++id) submit(id, static_cast<uint32_t>(id % kModels));
  inbox_.drain();
  sink_.await(1000);
}

class NeverSent : public ActionSink {
 public:
  void send(const Action&) override {}
};

class TargetWatch : public Observer {
 public:
  void on_target(ModelId model, const ModelTarget& target, TimePoint) override { targets.emplace_back(model, target); }
  std::vector<std::pair<ModelId, ModelTarget>> targets;
};

std::shared_ptr<const ModelInfo> named_model(const std::string& name, uint32_t id) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(id);
  model->name = name;
  model->only().batch_sizes = {1, 4};
  model->only().seed_load = Duration::microseconds(200);
  model->buckets.resize(1);
  model->only().seed_exec = {{Duration::microseconds(100), Duration::microseconds(100)}};
  return model;
}

class ControllerLoopTargetsTest : public ::testing::Test {
 protected:
  ControllerLoopTargetsTest() {
    loop_.controller().add_device(4, monotonic_now());
    loop_.controller().add_observer(watch_);
    loop_.set_target_report([this](const std::string& line) { lines_.push_back(line); });
    EXPECT_TRUE(loop_.start().ok());
  }

  ControllerInbox inbox_{16};
  NeverSent actions_;
  CountingSink completions_;
  TargetWatch watch_;
  std::vector<std::string> lines_;
  ControllerLoop loop_{{}, find_policy("foliot")->make, inbox_, actions_, completions_};
};

TEST_F(ControllerLoopTargetsTest, HoldForModelsThatComeLaterAndSayWhatCannotBeSet) {
  const ModelTarget single{.batch_most = 1};
  const ModelTarget none{.copies_most = 0};
  inbox_.add_model(named_model("a", 0));
  inbox_.set_targets(
      std::make_shared<const NamedTargets>(NamedTargets{{"a", single}, {"b", none}, {"c", {.kinds = {"tpu"}}}}));
  inbox_.add_model(named_model("c", 1));
  inbox_.add_model(named_model("b", 2));
  inbox_.add_model(named_model("a", 3));  // a later version
  inbox_.set_targets(std::make_shared<const NamedTargets>());
  loop_.stop();

  const std::vector<std::pair<ModelId, ModelTarget>> expected{{ModelId(0), single}, {ModelId(2), none},
                                                              {ModelId(3), single}, {ModelId(0), {}},
                                                              {ModelId(2), {}},     {ModelId(3), {}}};
  EXPECT_EQ(watch_.targets, expected);
  EXPECT_EQ(lines_, (std::vector<std::string>{"targets of model 'b': it is not served, so far",
                                              "targets of model 'c': it is not served, so far",
                                              "targets of model 'c': kinds has 'tpu', and must be of cpu"}));
}

TEST_F(ControllerLoopTargetsTest, OfAFileGoBeforeThoseOfAnAutoscaler) {
  const ModelTarget single{.batch_most = 1};
  const ModelTarget kept{.copies_least = 1};
  inbox_.add_model(named_model("a", 0));
  inbox_.add_model(named_model("b", 1));
  inbox_.set_targets(std::make_shared<const NamedTargets>(NamedTargets{{"a", single}}));
  inbox_.scale(Autoscaler::kPipelines,
               {{{ModelId(0), kept}, {ModelId(1), kept}, {ModelId(7), kept}}});  // the last has left
  inbox_.set_targets(std::make_shared<const NamedTargets>());
  loop_.stop();

  const std::vector<std::pair<ModelId, ModelTarget>> expected{
      {ModelId(0), single}, {ModelId(1), kept}, {ModelId(0), kept}};
  EXPECT_EQ(watch_.targets, expected);
  EXPECT_THAT(lines_, ::testing::IsEmpty());
}

TEST_F(ControllerLoopTargetsTest, OfAnAutoscalerStayWhileAnotherSetsItsOwn) {
  const ModelTarget kept{.copies_least = 1};
  inbox_.add_model(named_model("a", 0));
  inbox_.add_model(named_model("b", 1));
  inbox_.scale(Autoscaler::kTasks, {{{ModelId(0), kept}}});
  inbox_.scale(Autoscaler::kPipelines, {{{ModelId(1), kept}}});
  inbox_.scale(Autoscaler::kTasks, {});
  loop_.stop();

  const std::vector<std::pair<ModelId, ModelTarget>> expected{{ModelId(0), kept}, {ModelId(1), kept}, {ModelId(0), {}}};
  EXPECT_EQ(watch_.targets, expected);
}

}  // namespace
}  // namespace foliot
