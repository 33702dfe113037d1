#include "calls/inference_service.h"

#include <atomic>

#include "calls/fake_controller.h"
#include "inference/conformance/inference_conformance.h"

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

std::unique_ptr<InferenceHarness> make_service() { return std::make_unique<ServiceHarness>(); }

INSTANTIATE_TEST_SUITE_P(Models, InferenceConformance, testing::Values(InferenceCase{"Service", &make_service}));

}  // namespace
}  // namespace foliot
