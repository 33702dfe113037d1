// The nodes of a cluster, started in one process as their commands start them.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cluster/transport/link_loop.h"
#include "node/server/controller_server.h"
#include "node/server/frontend_server.h"
#include "node/server/worker_server.h"
#include "virtual/emulation/emulated_models.h"
#include "virtual/emulation/worker_service.h"

namespace foliot {
namespace {

constexpr uint64_t kNodePageBytes = uint64_t{16} << 20;

FrontendServerOptions frontend_options(uint16_t controller) {
  FrontendServerOptions options;
  options.controller = "127.0.0.1:" + std::to_string(controller);
  options.frontend.http_port = 0;
  options.frontend.grpc_port = 0;
  options.frontend.metrics_port = 0;
  options.frontend.requests_in_flight_max = 64;
  return options;
}

// A worker of two small models whose device only takes time.
class EmulatedWorker {
 public:
  explicit EmulatedWorker(uint16_t controller)
      : service_({.name = "emulated",
                  .page_count = 64,
                  .models = parse_emulated_models("resnet50:2", kNodePageBytes).value(),
                  .noise = {},
                  .seed = 1},
                 watch()),
        loop_({.connection = {.role = Role::kWorker}}, service_) {
    EXPECT_TRUE(loop_.connect("127.0.0.1:" + std::to_string(controller)).ok());
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~EmulatedWorker() {
    loop_.stop();
    thread_.join();
  }

 private:
  static WorkerService::Watch watch() {
    WorkerService::Watch watch;
    watch.on_ready = [](size_t) {};
    watch.on_lost = [](const Status&) {};
    watch.connect = [] { return Status(); };
    return watch;
  }

  WorkerService service_;
  LinkLoop loop_;
  std::thread thread_;
};

class ServersTest : public testing::Test {
 protected:
  Logger log_{{.part = "test"}, [this](std::string_view line) {
                std::lock_guard lock(mutex_);
                lines_ += line;
              }};
  std::mutex mutex_;
  std::string lines_;
};

TEST_F(ServersTest, AFrontEndServesWhatTheControllersWorkersBring) {
  ControllerServer controller({.listen = "127.0.0.1:0"}, log_);
  ASSERT_TRUE(controller.start().ok());
  EXPECT_EQ(controller.description(), "ready: port " + std::to_string(controller.port()) + ", scheduler foliot");
  const EmulatedWorker worker(controller.port());
  std::promise<size_t> ready;
  FrontendServerOptions options = frontend_options(controller.port());
  options.on_ready = [&](size_t models) { ready.set_value(models); };
  FrontendServer frontend(std::move(options), log_);
  ASSERT_TRUE(frontend.start().ok());
  EXPECT_EQ(ready.get_future().get(), 2u);
  EXPECT_EQ(frontend.in_flight(), 0u);
  frontend.stop();
  frontend.stop();
  controller.stop();
}

TEST_F(ServersTest, APolicyThatDoesNotExistIsNamed) {
  ControllerServer node({.listen = "127.0.0.1:0", .policy = "best"}, log_);
  const Status status = node.start();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("'best'"), std::string::npos) << status.message();
  node.stop();
}

TEST_F(ServersTest, APortInUseIsNamed) {
  ControllerServer first({.listen = "127.0.0.1:0"}, log_);
  ASSERT_TRUE(first.start().ok());
  const std::string address = "127.0.0.1:" + std::to_string(first.port());
  ControllerServer second({.listen = address}, log_);
  const Status status = second.start();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(address), std::string::npos) << status.message();
}

TEST_F(ServersTest, AWorkerWithoutARepositorySaysSo) {
  struct Silent : StartupReporter {
    void on_compiling(std::string_view, std::string_view, double) override {}
    void on_model(std::string_view, const Status&) override {}
    void on_progress(const StartupProgress&) override {}
    void on_note(std::string_view) override {}
  };
  WorkerServerOptions options;
  options.repository = "/nonexistent/models";
  WorkerServer node(std::move(options), log_);
  Silent reporter;
  const Status status = node.start(reporter, [] { return false; });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/nonexistent/models"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foliot
