#include "app/server.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "app/cluster/relay.h"
#include "app/commands/confined_compile_command.h"
#include "app/compiled_model.h"
#include "app/controller_loop.h"
#include "app/local_worker.h"
#include "app/model_host.h"
#include "app/repository_service.h"
#include "app/schedulers.h"
#include "base/units.h"
#include "core/catalog.h"
#include "device/cpu/cpu_device.h"
#include "platform/clock.h"
#include "repository/model_folder.h"
#include "repository/package_store.h"
#include "trace/background_writer.h"
#include "trace/recorder.h"

namespace foliot {
class Server::Parts {
 public:
  explicit Parts(const ServerOptions& options)
      : options_(options),
        compiler_(confined_compile_command(), options.compile_limits),
        packages_(options.cache.empty() ? options.repository / ".foliot" : options.cache, options.weights_tier,
                  device_fingerprint(),
                  [this](const auto& model, const auto& compile_options, int output, const CompileWatch& watch) {
                    return compiler_.compile(
                        {.model = model,
                         .options = compile_options,
                         .threads = options_.worker.threads,
                         .share = options_.compile_in_background && catalog_.ready() ? CpuShare::kLeftover
                                                                                     : CpuShare::kWhole},
                        output, watch);
                  }),
        repository_({options.repository, options.model_defaults, options.watch_interval, options.on_failure}) {}

  Status start(StartupReporter& reporter, const std::function<bool()>& cancelled);
  void stop();
  Frontend& frontend() { return *frontend_; }
  std::string description() const;

 private:
  std::string device_fingerprint() const {
    const auto device = make_cpu_device({.threads = options_.worker.threads});
    return device->kind() + " " + device->fingerprint();
  }
  Status open_ports();
  Status start_worker(const std::vector<CompiledModel>& models, StartupReporter& reporter);
  void add_all(const std::vector<CompiledModel>& models, StartupReporter& reporter);
  void report_broken(const ModelFolder& folder, const Status& status, StartupReporter& reporter);
  void wait_until_answered();

  const ServerOptions options_;
  Catalog catalog_;
  CompileProcess compiler_;
  PackageStore packages_;
  RepositoryService repository_;
  size_t models_served_ = 0;
  bool stopped_ = false;

  // In the order in which they are made; each uses those before it.
  ActionRelay actions_;
  CompletionRelay completions_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<ControllerLoop> controller_;
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<LocalWorker> worker_;
  std::unique_ptr<ModelHost> host_;
};

Status Server::Parts::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  FOLIOT_RETURN_IF_ERROR(options_.worker.check());
  FOLIOT_ASSIGN_OR_RETURN(const auto folders, scan_repository(options_.repository, options_.model_defaults));
  for (const ModelFolder& folder : folders) {
    catalog_.put({folder.name, folder.version, ModelState::kLoading, {}, nullptr});
  }
  FOLIOT_RETURN_IF_ERROR(open_ports());
  const std::vector<CompiledModel> models =
      compile_all(folders, packages_, reporter, cancelled,
                  [&](const ModelFolder& folder, const Status& status) { report_broken(folder, status, reporter); });
  if (cancelled()) return Status::unavailable("stopped while starting");
  for (const std::string& what : compiler_.unconfined()) {
    reporter.on_note(fmt::format("models are compiled with {}; compile only what you trust", what));
  }
  FOLIOT_RETURN_IF_ERROR(start_worker(models, reporter));
  add_all(models, reporter);
  FOLIOT_RETURN_IF_ERROR(repository_.start(catalog_, packages_, *host_, folders));
  catalog_.set_ready();
  return Status();
}

// First of all, so that a port in use is known at once, and liveness can be seen
// while models compile.
Status Server::Parts::open_ports() {
  FOLIOT_ASSIGN_OR_RETURN(const Policy policy, find_policy(options_.scheduler));
  controller_ = std::make_unique<ControllerLoop>(options_.controller, policy.make, actions_, completions_,
                                                 options_.frontend.requests_in_flight_max);
  frontend_ = make_frontend(options_.frontend, catalog_, *controller_, repository_, monotonic_now);
  completions_.set_target(*frontend_);
  controller_->controller().add_observer(*frontend_);
  if (!options_.log.folder.empty()) {
    LogOptions log = options_.log;
    log.origin = monotonic_now();
    FOLIOT_ASSIGN_OR_RETURN(auto writer, BackgroundWriter::open(log));
    recorder_ = std::make_unique<Recorder>(std::move(writer));
    controller_->controller().add_observer(*recorder_);
  }
  return frontend_->start();
}

Status Server::Parts::start_worker(const std::vector<CompiledModel>& models, StartupReporter& reporter) {
  LocalWorkerOptions worker = options_.worker;
  worker.loads_in_flight_max = 2 * options_.controller.loads_outstanding_max;
  worker.infers_in_flight_max = 2 * options_.controller.infers_outstanding_max;
  worker_ = std::make_unique<LocalWorker>(worker, models);
  const DeviceMemory& memory = worker_->memory();
  FOLIOT_RETURN_IF_ERROR(worker_->start(*frontend_, *controller_));
  if (!worker_->memory_locked()) reporter.on_note(kMemoryNotLocked);
  actions_.set_target(worker_->worker());
  host_ = std::make_unique<ModelHost>(ModelHost::Parts{catalog_, worker_->engine(), worker_->worker(), *controller_},
                                      memory.page_bytes, memory.page_count, options_.worker.models_max);
  controller_->controller().add_device(memory.page_count, monotonic_now());
  return controller_->start();
}

void Server::Parts::add_all(const std::vector<CompiledModel>& models, StartupReporter& reporter) {
  for (const CompiledModel& model : models) {
    const Status status = host_->add(model.folder, model.package);
    if (status.ok()) {
      ++models_served_;
      reporter.on_model(model.folder.name, status);
    } else {
      report_broken(model.folder, status, reporter);
    }
  }
}

void Server::Parts::report_broken(const ModelFolder& folder, const Status& status, StartupReporter& reporter) {
  catalog_.put({folder.name, folder.version, ModelState::kUnavailable, status.message(), nullptr});
  reporter.on_model(folder.name, status);
}

// Against the flow of data: first nothing comes in, then nothing is under way,
// then nobody is left.
void Server::Parts::stop() {
  if (std::exchange(stopped_, true)) return;
  repository_.stop();
  if (frontend_ == nullptr) return;
  frontend_->drain();
  wait_until_answered();
  frontend_->stop();
  if (worker_ != nullptr) worker_->stop();
  controller_->stop();
}

void Server::Parts::wait_until_answered() {
  if (host_ == nullptr) return;  // nothing was ever served
  const TimePoint give_up = monotonic_now() + options_.drain_timeout;
  while (frontend_->in_flight() > 0 && monotonic_now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  controller_->drain();
  while (frontend_->in_flight() > 0 && monotonic_now() < give_up + Duration::seconds(5)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string Server::Parts::description() const {
  const DeviceMemory& memory = worker_->memory();
  return fmt::format("{} model{} on http {}:{}, grpc :{}, metrics :{}/metrics; page cache {}, scheduler {}",
                     models_served_, models_served_ == 1 ? "" : "s", options_.frontend.address, frontend_->http_port(),
                     frontend_->grpc_port(), frontend_->metrics_port(),
                     format_bytes(memory.page_count * memory.page_bytes), options_.scheduler);
}

Server::Server(const ServerOptions& options) : parts_(std::make_unique<Parts>(options)) {}
Server::~Server() { stop(); }

Status Server::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  return parts_->start(reporter, cancelled);
}

void Server::stop() { parts_->stop(); }

Frontend& Server::frontend() { return parts_->frontend(); }

std::string Server::description() const { return parts_->description(); }

}  // namespace foliot
