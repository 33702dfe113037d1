#include "answer/model_calls/inference_service.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "answer/inference/conformance/inference_conformance.h"
#include "answer/model_calls/fake_controller.h"

namespace foliot {
namespace {

class ServiceHarness final : public InferenceHarness {
 public:
  ServiceHarness() {
    put_conformance_models(catalog_);
    controller_.add_model(ModelId(1), compute_doubling);
    controller_.start(service_);
  }
  ~ServiceHarness() override { controller_.stop(); }
  Inference& inference() override { return service_; }
  TimePoint now() override { return steady_now() + Duration::nanoseconds(ahead_); }
  void advance(Duration duration) override { ahead_ += duration.nanoseconds(); }
  void hold() override { controller_.hold(); }
  void release() override { controller_.release(); }
  void refuse(Refusal refusal, const std::string& detail) override { controller_.refuse(refusal, detail); }

 private:
  std::atomic<int64_t> ahead_{0};
  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  FakeController controller_;
  InferenceService service_{
      {.rows_max = 64, .bytes_max = 1 << 20}, names_, controller_, statistics_, metrics_, [this] { return now(); }};
};

TEST(InferenceServiceTest, ApplicationsAreNotItsToAnswer) {
  Catalog catalog;
  put_conformance_models(catalog);
  CatalogEntry entry = *catalog.find("doubling");
  entry.name = "application";
  entry.role = EntryRole::kApplication;
  catalog.put(entry);
  ServedNames names(catalog);
  EXPECT_TRUE(names.find("application", "").ok());
  CallStatistics statistics;
  Metrics metrics(statistics);
  FakeController controller;
  InferenceService service({.rows_max = 64, .bytes_max = 1 << 20}, names, controller, statistics, metrics, steady_now);
  ConformanceClient client(service);
  Query query = client.doubling_query(steady_now());
  query.name = "application";
  EXPECT_EQ(client.error_of(query).http_status, 404u);
  entry.name = "pipeline";
  entry.role = EntryRole::kPipeline;
  catalog.put(entry);
  EXPECT_TRUE(names.find_model("pipeline", "").ok());
}

// A task over the conformance suite's "doubling", and another that no request asks for.
class TaskServiceTest : public testing::Test {
 protected:
  TaskServiceTest() {
    put_conformance_models(catalog_);
    const CatalogEntry model = *catalog_.find("doubling");
    auto other = std::make_shared<ModelInfo>(*model.info);
    other->id = ModelId(77);
    other->name = "exact";
    auto task = std::make_shared<TaskInfo>();
    task->id = ServedTaskId(5);
    task->name = "task";
    task->accuracy = 0.4;
    task->variants = {{model.info, 0.7}, {other, 0.9}};
    auto info = std::make_shared<ModelInfo>(*model.info);
    info->id = ModelId();
    info->name = "task";
    info->task = task;
    CatalogEntry entry = model;
    entry.name = "task";
    entry.role = EntryRole::kTask;
    entry.info = info;
    catalog_.put(entry);
    service_ = std::make_unique<InferenceService>(InferenceService::Options{.rows_max = 64, .bytes_max = 1 << 20},
                                                  names_, controller_, statistics_, metrics_, steady_now);
    // It chooses as the controller does.
    controller_.add_model(ModelId(), compute_doubling);
    controller_.start(*service_);
  }
  ~TaskServiceTest() override { controller_.stop(); }

  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  FakeController controller_;
  std::unique_ptr<InferenceService> service_;
};

TEST_F(TaskServiceTest, RequestsSayWhatIsNeededOfWhichCall) {
  ConformanceClient client(*service_);
  Query query = client.doubling_query(steady_now());
  query.name = "task";
  query.cost = 2e-6;
  const CallId call = client.started(query);
  client.await(1);
  EXPECT_TRUE(client.answer(call).served());
  const std::vector<Request> requests = controller_.submitted();
  ASSERT_FALSE(requests.empty());
  for (const Request& request : requests) {
    EXPECT_EQ(request.task, ServedTaskId(5));
    EXPECT_EQ(request.requirements, (TaskRequirements{.accuracy = 0.4, .cost_nanodollars_most = 2000}));
    EXPECT_EQ(request.call, requests.front().id);
    EXPECT_EQ(request.call_rows, requests.size());
  }
}

TEST_F(TaskServiceTest, WhatNoVariantHasIsRefusedWithTheNearest) {
  ConformanceClient client(*service_);
  Query query = client.doubling_query(steady_now());
  query.name = "task";
  query.accuracy = 0.95;
  const CallError error = client.error_of(query);
  EXPECT_EQ(error.http_status, 400u);
  EXPECT_EQ(
      error.message,
      "task 'task' has no variant with an accuracy of at least 0.95; the nearest is 'exact', with 0.9: ask for at "
      "most that, or add a variant");
  query.name = "doubling";
  EXPECT_EQ(client.error_of(query).message,
            "parameter 'accuracy' is for tasks, and 'doubling' is none: leave it out, or call a task");
  EXPECT_TRUE(controller_.submitted().empty());
}

TEST(InferenceServiceTest, ARefusedRowHasTheOthersCancelled) {
  Catalog catalog;
  put_conformance_models(catalog);
  ServedNames names(catalog);
  CallStatistics statistics;
  Metrics metrics(statistics);
  FakeController controller;
  InferenceService service({.rows_max = 64, .bytes_max = 1 << 20}, names, controller, statistics, metrics, steady_now);
  controller.add_model(ModelId(1), compute_doubling);
  controller.start(service);
  controller.hold();
  ConformanceClient client(service);
  const std::vector<float> numbers(10 * 2);
  const CallId call = client.started({.name = "doubling",
                                      .arrival = steady_now(),
                                      .inputs = {{"x", "FP32", {10, 2}, std::as_bytes(std::span(numbers))}}});
  controller.await_submitted(10);
  controller.cancel(controller.submitted()[3].id, Refusal::kOverload);
  // Nothing else would answer the other nine.
  client.await(1);
  EXPECT_EQ(client.answer(call).error().reason, "overload");
  controller.stop();
}

// A call of `doubling` that its controller holds back, at an instant of the test's.
class CallDeadlineTest : public testing::Test {
 protected:
  static constexpr Duration kTime = Duration::milliseconds(100);

  CallDeadlineTest() {
    put_conformance_models(catalog_);
    controller_.add_model(ModelId(1), compute_doubling);
    controller_.start(service_);
    controller_.hold();
    service_.use_timer([this](TimePoint due) { set_ = due; });
  }
  ~CallDeadlineTest() override { controller_.stop(); }
  CallId start(std::optional<Duration> time = kTime) {
    Query query = client_.doubling_query(now_);
    if (time) query.deadline = now_ + *time;
    query.deadline_origin = DeadlineOrigin::kTimeout;
    return client_.started(query);
  }
  // Until rows that were held have ended.
  void release_all() {
    controller_.release();
    while (service_.rows_in_flight() > 0) {
      client_.deliver();
      std::this_thread::yield();
    }
  }
  static bool has(const std::string& text, const std::string& line) { return text.find(line) != std::string::npos; }

  TimePoint now_ = steady_now();
  TimePoint set_ = TimePoint::infinite_future();  // the timer
  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  FakeController controller_;
  InferenceService service_{
      {.rows_max = 64, .bytes_max = 1 << 20}, names_, controller_, statistics_, metrics_, [this] { return now_; }};
  ConformanceClient client_{service_};
};

TEST_F(CallDeadlineTest, ACallThatHasNoAnswerIsRefusedAndWhatComesLaterIsDiscarded) {
  const CallId call = start();
  const TimePoint due = set_;
  EXPECT_EQ(service_.expire(now_), due);
  EXPECT_GE(due, now_ + kTime);
  EXPECT_LE(due, now_ + kTime + Duration::milliseconds(2));
  client_.deliver();
  EXPECT_EQ(client_.count(), 0u);
  now_ = due;
  EXPECT_EQ(service_.expire(now_), TimePoint::infinite_future());
  client_.deliver();
  ASSERT_EQ(client_.count(), 1u);
  const Answer& answer = client_.answer(call);
  EXPECT_FALSE(answer.served());
  EXPECT_EQ(answer.error().reason, "expired");
  EXPECT_EQ(answer.error().http_status, 504u);
  EXPECT_EQ(answer.error().message,
            "model 'doubling' refused the request: expired: no answer has come by its deadline; its deadline was "
            "100.000 ms after arrival (parameter 'timeout', in microseconds)");
  EXPECT_EQ(service_.rows_in_flight(), 2u) << "they are with the controller";
  service_.cancel(call);
  release_all();
  EXPECT_EQ(client_.count(), 1u);
  const std::string text = metrics_.text();
  EXPECT_TRUE(has(text, R"(foliot_requests_total{model="doubling",outcome="expired"} 2)")) << text;
  EXPECT_TRUE(has(text, R"(foliot_deadline_missed_total{model="doubling"} 2)")) << text;
  EXPECT_TRUE(has(text, R"(foliot_discarded_requests_total{outcome="cancelled"} 2)")) << text;
  EXPECT_TRUE(has(text, R"(foliot_requests_total{model="doubling",outcome="served"} 0)")) << text;
}

TEST_F(CallDeadlineTest, ACallThatIsAnsweredIsNotRefusedToo) {
  const CallId call = start();
  controller_.release();
  client_.await(1);
  EXPECT_EQ(service_.expire(now_ + Duration::seconds(1)), TimePoint::infinite_future());
  client_.deliver();
  EXPECT_TRUE(client_.answer(call).served());
}

// The answer was taken from the mailbox before what the timer had put there.
TEST_F(CallDeadlineTest, AnAnswerThatComesWithItsDeadlineCounts) {
  const CallId call = start();
  controller_.release();
  controller_.stop();
  service_.expire(now_ + Duration::seconds(1));
  client_.deliver();
  ASSERT_EQ(client_.count(), 1u);
  EXPECT_TRUE(client_.answer(call).served());
}

TEST_F(CallDeadlineTest, ACallWithoutADeadlineWaits) {
  start(std::nullopt);
  EXPECT_EQ(service_.expire(now_ + Duration::seconds(1'000'000)), TimePoint::infinite_future());
  client_.deliver();
  EXPECT_EQ(client_.count(), 0u);
  controller_.release();
  client_.await(1);
}

// A refusal by the controller says more than one by the clock.
TEST_F(CallDeadlineTest, ACallWithHardlyAnyTimeIsLeftToTheControllerForAMoment) {
  start(Duration::microseconds(1));
  EXPECT_EQ(service_.expire(now_), now_ + Duration::milliseconds(5));
}

// Devices read them after the caller has its answer, and has forgotten its message.
TEST_F(CallDeadlineTest, InputsStayUntilTheLastRowHasEnded) {
  std::vector<float> numbers{3, 4};
  Query query{.name = "doubling",
              .arrival = now_,
              .deadline = now_ + kTime,
              .inputs = {{"x", "FP32", {1, 2}, std::as_bytes(std::span(numbers))}}};
  client_.started(query);
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{5, 6});
  query.inputs[0].bytes = std::as_bytes(std::span(*owner));
  query.owner = owner;
  client_.started(query);
  query = {};
  const std::weak_ptr<std::vector<float>> kept = owner;
  owner.reset();
  now_ += Duration::seconds(1);
  service_.expire(now_);
  client_.deliver();
  ASSERT_EQ(client_.count(), 2u);
  std::ranges::fill(numbers, -1);
  const std::vector<Request> requests = controller_.submitted();
  ASSERT_EQ(requests.size(), 2u);
  const auto first_of = [&](size_t i) {
    float value = 0;
    std::memcpy(&value, service_.input(requests[i].payload, 0).data(), sizeof value);
    return value;
  };
  EXPECT_EQ(first_of(0), 3);
  EXPECT_EQ(first_of(1), 5);
  EXPECT_FALSE(kept.expired());
  release_all();
  EXPECT_TRUE(kept.expired());
}

std::unique_ptr<InferenceHarness> make_service() { return std::make_unique<ServiceHarness>(); }

INSTANTIATE_TEST_SUITE_P(Models, InferenceConformance, testing::Values(InferenceCase{"Service", &make_service}));

}  // namespace
}  // namespace foliot
