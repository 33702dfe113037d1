// TestServer: for tests, a front end on free ports, over models that a fake controller
// computes.
#ifndef FOLIOT_EDGE_FRONTEND_TEST_SERVER_H_
#define FOLIOT_EDGE_FRONTEND_TEST_SERVER_H_

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "answer/inference/conformance/fake_personal_service.h"
#include "answer/inference/conformance/test_models.h"
#include "answer/model_calls/fake_controller.h"
#include "answer/model_calls/inference_service.h"
#include "answer/model_calls/metrics.h"
#include "edge/frontend/frontend.h"
#include "edge/jobs/fake_job_service.h"
#include "foundation/base/check.h"
#include "foundation/core/catalog.h"

namespace foliot {

// Answers from another thread, as a real one does.
class FakeRepository : public ModelRepository {
 public:
  ~FakeRepository() override {
    for (std::thread& thread : threads_) thread.join();
  }
  void load(const std::string& name, std::function<void(Status)> done) override {
    threads_.emplace_back([absent = name == "absent", done = std::move(done)] {
      done(absent ? Status::not_found("no model 'absent' in the repository") : Status::ok_status());
    });
  }
  void unload(const std::string&, std::function<void(Status)> done) override { done(Status::ok_status()); }
  // Of "movies"; the other models are none that is personal.
  void load_version(const std::string& name, const VersionRequest& request, std::function<void(Status)> done) override {
    if (name != "movies") return ModelRepository::load_version(name, request, std::move(done));
    done(Status::invalid_argument(fmt::format("version '{}', compare {}, take {}, roll_back {}, unknown '{}'",
                                              request.version, request.compare, request.take, request.roll_back,
                                              request.unknown)));
  }
  void list_versions(const std::string& name, std::function<void(Result<VersionList>)> done) override {
    if (name != "movies") return ModelRepository::list_versions(name, std::move(done));
    threads_.emplace_back([done = std::move(done)] {
      VersionList list{.served = "2", .before = "1", .is_chosen = true};
      list.versions = {{.name = "1"}, {.name = "2"}, {.name = "3", .reason = "worse"}, {.name = "4"}};
      list.versions[2].comparison = {.with = "2", .observations = 90, .users = 40, .loss = 1.5, .loss_with = 1.25};
      done(list);
    });
  }

 private:
  std::vector<std::thread> threads_;
};

// The requests' series of a metrics page.
class RequestMetrics : public MetricsSource {
 public:
  explicit RequestMetrics(const Metrics& metrics) : metrics_(metrics) {}
  void use(const Frontend& frontend) { frontend_ = &frontend; }
  std::string text() const override { return metrics_.text(frontend_->tenants()); }

 private:
  const Metrics& metrics_;
  const Frontend* frontend_ = nullptr;
};

// It serves the three models of answer/inference/conformance/test_models.h.
class TestServer {
 public:
  explicit TestServer(FrontendOptions options = {})
      : names(catalog, options.strict_readiness),
        service({.rows_max = options.requests_in_flight_max,
                 .bytes_max = options.bodies_bytes_max,
                 .tensors = options.tensors},
                names, controller, statistics, metrics, steady_now) {
    options.http_port = options.grpc_port = options.metrics_port = 0;
    frontend = make(options);
    request_metrics.use(*frontend);
    frontend->add_metrics(request_metrics);
    add_model(doubling_model(ModelId(1)), compute_doubling);
    add_model(sequence_model(ModelId(2)), compute_sequence);
    add_model(whole_model(ModelId(3)), compute_whole);
    catalog.set_ready();
    const Status status = frontend->start();
    FOLIOT_CHECK(status.ok());
    controller.start(service);
  }
  ~TestServer() {
    controller.stop();
    frontend->stop();
  }

  // Another front end over the same parts.
  std::unique_ptr<Frontend> make(const FrontendOptions& options) {
    return make_frontend(
        options, {.inference = service,
                  .names = names,
                  .statistics = statistics,
                  .repository = repository,
                  .count_unknown_name = [this](std::string_view place,
                                               std::string_view name) { metrics.count_unknown_name(place, name); },
                  .now = steady_now,
                  .personal = &personal,
                  .jobs = &jobs});
  }

  void add_model(const ModelInfo& info, FakeController::Compute compute) {
    controller.add_model(info.id, std::move(compute));
    service.on_model(info);
    catalog.put({.name = info.name,
                 .version = info.version,
                 .state = ModelState::kReady,
                 .reason = "",
                 .info = std::make_shared<const ModelInfo>(info)});
  }

  Catalog catalog;
  ServedNames names;
  FakeController controller;
  FakeRepository repository;
  CallStatistics statistics;
  Metrics metrics{statistics};
  InferenceService service;
  RequestMetrics request_metrics{metrics};
  FakePersonalService personal;
  FakeJobService jobs;
  std::unique_ptr<Frontend> frontend;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_FRONTEND_TEST_SERVER_H_
