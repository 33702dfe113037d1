// Models that come and go under the real loop, worker and executors, on a device
// that computes nothing.
#include "node/repository/model_host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "control/policies/registry.h"
#include "engine/worker/device_engine.h"
#include "foundation/base/check.h"
#include "foundation/platform/clock.h"
#include "node/threads/controller_loop.h"
#include "node/threads/executor_thread.h"

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kPages = 4;
constexpr uint32_t kModelsMax = 3;

class IdleDevice : public Device {
 public:
  std::string kind() const override { return "idle"; }
  std::string fingerprint() const override { return "1"; }
  bool runs(const std::string&) const override { return true; }
  Status supports_products(DataType) const override { return Status(); }
  std::unique_ptr<Device> another() const override { return std::make_unique<IdleDevice>(); }
  std::vector<std::string> layouts(std::span<const Graph>) const override { return {"idle"}; }
  Result<LoweredProgram> lower(std::span<const Graph>, const std::string&) override {
    return Status::unimplemented("lower");
  }
  Status allocate(const DeviceMemory&) override { return Status(); }
  Result<std::unique_ptr<Executable>> preload(std::span<const Plan>, std::shared_ptr<WeightsSource>) override {
    return std::unique_ptr<Executable>(std::make_unique<IdleExecutable>(*this));
  }
  void copy_to_io(uint64_t, std::span<const std::byte>) override {}
  void copy_from_io(uint64_t, std::span<std::byte>) override {}
  int alive() const { return alive_; }
  // Plans from this one on are not prepared before more are allowed.
  void allow_plans(uint32_t count) { allowed_ = count; }
  bool is_waiting() const { return waiting_; }
  // This one cannot be prepared.
  void break_plan(uint32_t plan) { broken_ = plan; }
  // Runs that have begun do not end before they may.
  void hold_runs(bool hold) { hold_ = hold; }
  // How often this plan was run, of any model.
  int runs(uint32_t plan) const { return runs_[plan]; }

 private:
  static constexpr uint32_t kPlansMax = 3;

  class IdleExecutable : public Executable {
   public:
    explicit IdleExecutable(IdleDevice& device) : device_(device) { ++device_.alive_; }
    ~IdleExecutable() override { --device_.alive_; }
    Status prepare(uint32_t plan, uint32_t /*width*/) override {
      while (plan >= device_.allowed_) {
        device_.waiting_ = true;
        std::this_thread::yield();
      }
      device_.waiting_ = false;
      if (plan == device_.broken_) return Status::invalid_argument(fmt::format("plan {} is broken", plan));
      prepared_[plan] = true;
      return Status();
    }
    Status load(std::span<const PageIndex>) override { return Status(); }
    void unload() override {}
    Status run(const DeviceRun& run) override {
      FOLIOT_CHECK(prepared_[run.plan]);
      while (device_.hold_) std::this_thread::yield();
      ++device_.runs_[run.plan];
      return Status();
    }

   private:
    IdleDevice& device_;
    std::array<std::atomic<bool>, kPlansMax> prepared_{};
  };

  std::atomic<int> alive_{0};
  std::atomic<uint32_t> allowed_{kPlansMax};
  std::atomic<bool> waiting_{false};
  std::atomic<uint32_t> broken_{kPlansMax};
  std::atomic<bool> hold_{false};
  std::array<std::atomic<int>, kPlansMax> runs_{};
};

class OneRow : public PayloadStore {
 public:
  std::span<const std::byte> input(PayloadHandle, uint32_t) override { return row_; }
  std::span<std::byte> output(PayloadHandle, uint32_t) override { return row_; }

 private:
  std::array<std::byte, 16> row_{};
};

class CompletionCounts : public CompletionSink {
 public:
  void complete(const Completion& completion) override { ++(completion.served() ? served_ : refused_); }
  int served() const { return served_; }
  int refused() const { return refused_; }

 private:
  std::atomic<int> served_{0};
  std::atomic<int> refused_{0};
};

Package make_package(uint64_t weights_bytes = kPageBytes, const std::vector<uint32_t>& batch_sizes = {1}) {
  auto program = std::make_shared<Program>();
  program->batch_sizes = batch_sizes;
  program->buckets.emplace_back();
  for (const uint32_t size : batch_sizes) {
    Plan plan{.batch_size = size};
    plan.tensors = {Tensor{.name = "x", .shape = {size, 4}, .bytes = 16 * size, .place = Place::kInput},
                    Tensor{.name = "y", .shape = {size, 4}, .bytes = 16 * size, .place = Place::kOutput}};
    plan.inputs = {0};
    plan.outputs = {1};
    plan.input_bytes = plan.output_bytes = 16 * size;
    program->plans.push_back(plan);
    // However many rows, and no longer than the device takes: larger batches are worth it.
    program->buckets[0].seed_exec.push_back(Duration::nanoseconds(100));
  }
  program->weights_bytes = weights_bytes;
  return {program, nullptr};
}

class ModelHostTest : public testing::Test {
 protected:
  ModelHostTest()
      : engine_(device_, payloads_, kModelsMax),
        worker_({.page_count = kPages, .io_cache_bytes = 1 << 16, .models_max = kModelsMax}, engine_, inbox_,
                {threads_[0], threads_[1], threads_[2], threads_[3]}),
        loop_({}, find_policy("foliot")->make, inbox_, worker_, sink_),
        host_({catalog_, inbox_, {{engine_, worker_}}}, kPageBytes, kPages, kModelsMax) {
    loop_.controller().add_device(kPages, monotonic_now());
    EXPECT_TRUE(loop_.start().ok());
    for (size_t i = 0; i < threads_.size(); ++i) EXPECT_TRUE(threads_[i].start(*worker_.executors()[i]).ok());
  }
  ~ModelHostTest() override {
    for (ExecutorThread& thread : threads_) thread.stop();
    loop_.stop();
  }

  Status add(const std::string& version, const Package& package = make_package(), const std::string& name = "model") {
    ModelFolder folder;
    folder.name = name;
    folder.version = version;
    return host_.add(folder, package);
  }
  CatalogEntry entry() const { return *catalog_.find("model"); }
  void sweep_all() {
    while (host_.sweep()) std::this_thread::yield();
  }
  void submit(ModelId model) {
    inbox_.submit({.id = RequestId(++requests_), .model = model, .arrival = monotonic_now()});
  }
  void wait_for_answers() {
    while (sink_.served() + sink_.refused() < static_cast<int>(requests_)) std::this_thread::yield();
  }

  Catalog catalog_;
  IdleDevice device_;
  OneRow payloads_;
  CompletionCounts sink_;
  ControllerInbox inbox_{1 << 10};
  std::array<ExecutorThread, 4> threads_;
  DeviceEngine engine_;
  Worker worker_;
  ControllerLoop loop_;
  ModelHost host_;
  uint64_t requests_ = 0;
};

TEST_F(ModelHostTest, AThousandUpdatesGiveBackAllThatTheyTook) {
  for (int version = 1; version <= 1000; ++version) {
    ASSERT_TRUE(add(std::to_string(version)).ok()) << version;
    std::shared_ptr<const ModelInfo> lease = entry().info;
    submit(lease->id);
    wait_for_answers();
    lease = nullptr;
    sweep_all();
  }
  EXPECT_EQ(sink_.refused(), 0);
  EXPECT_EQ(device_.alive(), 1);
  EXPECT_EQ(entry().version, "1000");
  EXPECT_LT(entry().info->id.value(), 2u);
}

TEST_F(ModelHostTest, RequestsForTheOldVersionAreServedByIt) {
  ASSERT_TRUE(add("1").ok());
  std::shared_ptr<const ModelInfo> old = entry().info;
  ASSERT_TRUE(add("2").ok());
  EXPECT_EQ(entry().version, "2");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(host_.sweep());
  submit(old->id);
  submit(entry().info->id);
  wait_for_answers();
  EXPECT_EQ(sink_.served(), 2);
  EXPECT_EQ(device_.alive(), 2);
  old = nullptr;
  sweep_all();
  EXPECT_EQ(device_.alive(), 1);
}

TEST_F(ModelHostTest, TheSameAgainChangesNothing) {
  const Package package = make_package();
  ASSERT_TRUE(add("1", package).ok());
  const ModelId id = entry().info->id;
  ASSERT_TRUE(add("1", package).ok());
  EXPECT_EQ(entry().info->id, id);
  ASSERT_TRUE(add("2", package).ok());
  EXPECT_NE(entry().info->id, id);
}

TEST_F(ModelHostTest, ABadVersionLeavesTheOldOneInPlace) {
  ASSERT_TRUE(add("1").ok());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(add("2", make_package((kPages + 1) * kPageBytes)).code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(entry().version, "1");
  EXPECT_EQ(entry().state, ModelState::kReady);
}

TEST_F(ModelHostTest, AModelBeyondTheLimitIsRefusedUntilAnotherHasLeft) {
  for (uint32_t i = 0; i < kModelsMax; ++i) {
    ASSERT_TRUE(add("1", make_package(), fmt::format("model {}", i)).ok());
  }
  const Status status = add("1", make_package(), "one more");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "there are 3 models already; raise --models-max");
  EXPECT_EQ(device_.alive(), static_cast<int>(kModelsMax));
  ASSERT_TRUE(host_.remove("model 1", {}).ok());
  EXPECT_FALSE(add("1", make_package(), "one more").ok());
  sweep_all();
  EXPECT_TRUE(add("1", make_package(), "one more").ok());
}

TEST_F(ModelHostTest, AModelWhosePackageIsDamagedIsTakenOutOfService) {
  std::vector<std::string> damaged;
  host_.set_on_damage([&](const std::string& model) { damaged.push_back(model); });
  Package package = make_package();
  const struct stat whole {};
  package.file = std::make_shared<PackageFile>(File(), whole, WeightsRange{.path = "x.foliot"});
  ASSERT_TRUE(add("1", package).ok());
  ASSERT_TRUE(add("1", make_package(), "another").ok());
  EXPECT_FALSE(host_.withdraw_damaged("another")) << "it is in no file";
  ASSERT_FALSE(package.file->fail("the weights are damaged").ok());
  EXPECT_EQ(damaged, std::vector<std::string>{"model"});
  const auto folder = host_.withdraw_damaged("model");
  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ(folder->version, "1");
  EXPECT_EQ(entry().state, ModelState::kLoading);
  EXPECT_EQ(entry().reason, "x.foliot was damaged while in use: the weights are damaged; it is compiled again");
  sweep_all();
  EXPECT_EQ(device_.alive(), 1) << "the other one";
  EXPECT_FALSE(host_.withdraw_damaged("model")) << "once";
  ASSERT_TRUE(add("1").ok());
  EXPECT_EQ(entry().state, ModelState::kReady);
}

TEST_F(ModelHostTest, AnswersWhileLargerBatchSizesAreBeingMade) {
  device_.allow_plans(1);
  std::thread adding([&] { EXPECT_TRUE(add("1", make_package(kPageBytes, {1, 2, 4})).ok()); });
  while (!device_.is_waiting()) std::this_thread::yield();
  const ModelId id = entry().info->id;
  EXPECT_EQ(entry().info->batch_size_max(), 4u);
  for (int i = 0; i < 100; ++i) submit(id);
  wait_for_answers();
  EXPECT_EQ(device_.runs(0), 100);
  device_.allow_plans(3);
  adding.join();
  // How many wait when the device is free again is the loop's affair: a few rounds may be
  // needed until there are four.
  for (int round = 0; round < 1000 && device_.runs(2) == 0; ++round) {
    device_.hold_runs(true);
    for (int i = 0; i < 100; ++i) submit(id);
    device_.hold_runs(false);
    wait_for_answers();
  }
  EXPECT_GT(device_.runs(2), 0);
  EXPECT_EQ(sink_.refused(), 0);
}

TEST_F(ModelHostTest, AnotherVersionTakesOverWithAllOfItsBatchSizes) {
  ASSERT_TRUE(add("1", make_package(kPageBytes, {1, 2, 4})).ok());
  device_.allow_plans(1);
  std::thread adding([&] { EXPECT_TRUE(add("2", make_package(kPageBytes, {1, 2, 4})).ok()); });
  while (!device_.is_waiting()) std::this_thread::yield();
  EXPECT_EQ(entry().version, "1");
  EXPECT_EQ(entry().state, ModelState::kReady);
  device_.allow_plans(3);
  adding.join();
  EXPECT_EQ(entry().version, "2");
}

TEST_F(ModelHostTest, ABatchSizeThatCannotBeMadeEndsTheModelAndIsNamed) {
  for (const uint32_t broken : {0, 2}) {
    device_.break_plan(broken);
    const Status status = add("1", make_package(kPageBytes, {1, 2, 4}));
    EXPECT_EQ(status.message(), fmt::format("model 'model': plan {} is broken", broken));
    EXPECT_EQ(host_.remove("model", {}).code(), StatusCode::kNotFound);
    sweep_all();
    EXPECT_EQ(device_.alive(), 0);
  }
  EXPECT_EQ(entry().state, ModelState::kUnloading);
  device_.break_plan(3);
  EXPECT_TRUE(add("2", make_package(kPageBytes, {1, 2, 4})).ok());
  device_.break_plan(1);
  EXPECT_FALSE(add("3", make_package(kPageBytes, {1, 2, 4})).ok());
  EXPECT_EQ(entry().version, "2");
  EXPECT_EQ(entry().state, ModelState::kReady);
}

TEST_F(ModelHostTest, RemovingEndsWhenTheLastAnswerIsGiven) {
  ASSERT_TRUE(add("1").ok());
  std::shared_ptr<const ModelInfo> lease = entry().info;
  std::atomic<int> gone{0};
  ASSERT_TRUE(host_.remove("model", [&](const Status& status) { gone += status.ok() ? 1 : 100; }).ok());
  EXPECT_EQ(entry().state, ModelState::kUnloading);
  EXPECT_EQ(host_.remove("model", {}).code(), StatusCode::kNotFound);
  submit(lease->id);
  wait_for_answers();
  EXPECT_TRUE(host_.sweep());
  EXPECT_EQ(gone, 0);
  lease = nullptr;
  sweep_all();
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(sink_.served(), 1);
  EXPECT_EQ(device_.alive(), 0);
}

TEST_F(ModelHostTest, WaitingCallsEndWhenItIsAbandoned) {
  ASSERT_TRUE(add("1").ok());
  const std::shared_ptr<const ModelInfo> lease = entry().info;
  Status reported;
  ASSERT_TRUE(host_.remove("model", [&](const Status& status) { reported = status; }).ok());
  host_.abandon();
  EXPECT_EQ(reported.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace foliot
