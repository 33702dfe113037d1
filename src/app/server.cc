#include "app/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "app/confined_compile_command.h"
#include "app/controller_loop.h"
#include "app/executor_thread.h"
#include "app/model_host.h"
#include "app/relay.h"
#include "app/repository_service.h"
#include "app/schedulers.h"
#include "base/units.h"
#include "core/catalog.h"
#include "device/cpu/cpu_device.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "repository/model_folder.h"
#include "repository/package_store.h"
#include "trace/background_writer.h"
#include "trace/recorder.h"
#include "worker/device_engine.h"
#include "worker/worker.h"

namespace foliot {
namespace {

constexpr uint64_t kIoCacheBytesMin = uint64_t{64} << 20;
constexpr uint64_t kWorkspaceBytesMin = uint64_t{64} << 20;
constexpr uint64_t kPageCacheBytesMin = uint64_t{256} << 20;
// Of the largest model's inputs and outputs, so many fit in the io cache at once.
constexpr uint64_t kBatchesInFlight = 4;

struct Loaded {
  ModelFolder folder;
  Package package;
};

// What the options leave open follows from the models.
DeviceMemory plan_memory(const ServerOptions& options, const std::vector<Loaded>& models) {
  uint64_t pages = 0;
  uint64_t io_bytes = 0;
  uint64_t workspace_bytes = 0;
  for (const Loaded& model : models) {
    const Program& program = *model.package.program;
    pages += program.pages(options.page_bytes);
    io_bytes = std::max(io_bytes, program.input_bytes() + program.output_bytes() + 2 * kTensorAlignment);
    workspace_bytes = std::max(workspace_bytes, program.workspace_bytes());
  }
  const uint64_t wanted = std::max(pages * options.page_bytes, kPageCacheBytesMin);
  const uint64_t page_cache = options.page_cache_bytes.value_or(std::min(wanted, total_memory_bytes() / 2));
  return {.page_bytes = options.page_bytes,
          .page_count = static_cast<uint32_t>(page_cache / options.page_bytes),
          .io_cache_bytes = options.io_cache_bytes.value_or(std::max(io_bytes * kBatchesInFlight, kIoCacheBytesMin)),
          .workspace_bytes = options.workspace_bytes.value_or(std::max(workspace_bytes, kWorkspaceBytesMin))};
}

// Better than to be killed while the memory is touched. What else the server needs
// is in use by now.
Status check_memory(const DeviceMemory& memory) {
  const uint64_t page_cache = memory.page_count * memory.page_bytes;
  const uint64_t needed = page_cache + memory.io_cache_bytes + memory.workspace_bytes;
  const std::optional<uint64_t> available = available_memory_bytes();
  if (!available || needed <= *available) return {};
  return Status::resource_exhausted(
      fmt::format("page cache ({}), io cache ({}) and workspace ({}) need {}, and only {} of memory are available; "
                  "choose a smaller --page-cache, or free memory",
                  format_bytes(page_cache), format_bytes(memory.io_cache_bytes), format_bytes(memory.workspace_bytes),
                  format_bytes(needed), format_bytes(*available)));
}

}  // namespace

class Server::Parts {
 public:
  explicit Parts(const ServerOptions& options)
      : options_(options),
        compiler_(confined_compile_command(), options.compile_limits),
        packages_(options.cache.empty() ? options.repository / ".foliot" : options.cache, options.weights_tier,
                  device_fingerprint(),
                  [this](const auto& model, const auto& compile_options, int output, const CompileWatch& watch) {
                    return compiler_.compile({.model = model,
                                              .options = compile_options,
                                              .threads = options_.threads,
                                              .background = options_.compile_in_background && catalog_.ready()},
                                             output, watch);
                  }),
        repository_({options.repository, options.model_defaults, options.watch_interval}) {}

  Status start(StartupReporter& reporter, const std::function<bool()>& cancelled);
  void stop();
  std::string description() const;

 private:
  std::unique_ptr<CpuDevice> make_device() const { return make_cpu_device({.threads = options_.threads}); }
  std::string device_fingerprint() const {
    const auto device = make_device();
    return device->kind() + " " + device->fingerprint();
  }
  Status open_ports();
  std::vector<Loaded> compile_all(const std::vector<ModelFolder>& folders, StartupReporter& reporter,
                                  const std::function<bool()>& cancelled);
  Status start_worker(StartupReporter& reporter);
  void add_all(const std::vector<Loaded>& models, StartupReporter& reporter);
  void report_broken(const ModelFolder& folder, const Status& status, StartupReporter& reporter);
  void wait_until_answered();

  const ServerOptions options_;
  Catalog catalog_;
  CompileProcess compiler_;
  PackageStore packages_;
  RepositoryService repository_;
  DeviceMemory memory_;
  size_t models_served_ = 0;
  bool stopped_ = false;

  // In the order in which they are made; each uses those before it.
  ActionRelay actions_;
  CompletionRelay completions_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<ControllerLoop> controller_;
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<DeviceEngine> engine_;
  std::array<ExecutorThread, 4> executors_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<ModelHost> host_;
};

Status Server::Parts::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  if (options_.page_bytes == 0 || options_.page_bytes % 4096 != 0) {
    return Status::invalid_argument("--page-size must be a multiple of 4KiB");
  }
  FOLIOT_ASSIGN_OR_RETURN(const auto folders, scan_repository(options_.repository, options_.model_defaults));
  for (const ModelFolder& folder : folders) {
    catalog_.put({folder.name, folder.version, ModelState::kLoading, {}, nullptr});
  }
  FOLIOT_RETURN_IF_ERROR(open_ports());
  const std::vector<Loaded> models = compile_all(folders, reporter, cancelled);
  if (cancelled()) return Status::unavailable("stopped while starting");
  for (const std::string& what : compiler_.unconfined()) {
    reporter.on_note(fmt::format("models are compiled with {}; compile only what you trust", what));
  }
  memory_ = plan_memory(options_, models);
  FOLIOT_RETURN_IF_ERROR(start_worker(reporter));
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

std::vector<Loaded> Server::Parts::compile_all(const std::vector<ModelFolder>& folders, StartupReporter& reporter,
                                               const std::function<bool()>& cancelled) {
  std::vector<Loaded> models;
  for (const ModelFolder& folder : folders) {
    if (cancelled()) break;
    if (!folder.status.ok()) {
      report_broken(folder, folder.status, reporter);
      continue;
    }
    const CompileWatch watch{
        [&](std::string_view step, double share) { reporter.on_compiling(folder.name, step, share); }, cancelled};
    Result<Package> package = packages_.get(folder.model, folder.config.compile, watch);
    if (cancelled()) break;
    if (package.ok()) {
      models.push_back({folder, *std::move(package)});
    } else {
      report_broken(folder, package.status(), reporter);
    }
  }
  return models;
}

Status Server::Parts::start_worker(StartupReporter& reporter) {
  FOLIOT_RETURN_IF_ERROR(check_memory(memory_));
  device_ = make_device();
  FOLIOT_RETURN_IF_ERROR(device_->allocate(memory_));
  if (!device_->memory_locked()) {
    reporter.on_note("memory could not be locked: raise the limit (ulimit -l unlimited), or tail latency may suffer");
  }
  engine_ = std::make_unique<DeviceEngine>(*device_, *frontend_, options_.models_max);
  worker_ = std::make_unique<Worker>(
      WorkerOptions{.page_count = memory_.page_count,
                    .io_cache_bytes = memory_.io_cache_bytes,
                    .models_max = options_.models_max,
                    .loads_in_flight_max = 2 * options_.controller.loads_outstanding_max,
                    .infers_in_flight_max = 2 * options_.controller.infers_outstanding_max},
      *engine_, *controller_, WorkerWakers{executors_[0], executors_[1], executors_[2], executors_[3]});
  actions_.set_target(*worker_);
  host_ = std::make_unique<ModelHost>(ModelHost::Parts{catalog_, *engine_, *worker_, *controller_}, options_.page_bytes,
                                      memory_.page_count, options_.models_max);
  controller_->controller().add_device(memory_.page_count, monotonic_now());
  FOLIOT_RETURN_IF_ERROR(controller_->start());
  for (size_t i = 0; i < executors_.size(); ++i) {
    FOLIOT_RETURN_IF_ERROR(executors_[i].start(*worker_->executors()[i]));
  }
  return Status();
}

void Server::Parts::add_all(const std::vector<Loaded>& models, StartupReporter& reporter) {
  for (const Loaded& model : models) {
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
  for (ExecutorThread& executor : executors_) executor.stop();
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
  return fmt::format("{} model{} on http {}:{}, grpc :{}, metrics :{}/metrics; page cache {}, scheduler {}",
                     models_served_, models_served_ == 1 ? "" : "s", options_.frontend.address, frontend_->http_port(),
                     frontend_->grpc_port(), frontend_->metrics_port(),
                     format_bytes(memory_.page_count * memory_.page_bytes), options_.scheduler);
}

Server::Server(const ServerOptions& options) : parts_(std::make_unique<Parts>(options)) {}
Server::~Server() { stop(); }

Status Server::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  return parts_->start(reporter, cancelled);
}

void Server::stop() { parts_->stop(); }

std::string Server::description() const { return parts_->description(); }

}  // namespace foliot
