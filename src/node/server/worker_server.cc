#include "node/server/worker_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "answer/personal/service/personal_file.h"
#include "cluster/sessions/controller_addresses.h"
#include "cluster/sessions/worker_link.h"
#include "cluster/transport/link_loop.h"
#include "edge/requests/server_info.h"
#include "foundation/base/units.h"
#include "foundation/config/repository_path.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/thread.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"
#include "node/devices/compiled_model.h"
#include "node/files/definition_files.h"
#include "node/files/file_watch.h"
#include "node/files/offered_definitions.h"
#include "node/replicas/linked_replica_place.h"
#include "node/repository/container_check.h"
#include "node/repository/container_model.h"
#include "node/repository/local_devices.h"
#include "node/repository/model_host.h"
#include "node/repository/model_startup.h"
#include "node/repository/repository_service.h"
#include "observe/metrics/worker_metrics.h"

namespace foliot {
namespace {

constexpr uint32_t kFrontendsMax = 256;
// Memory for so many of the largest frames that are partly received.
constexpr uint64_t kWorkerFramesAtOnce = 16;
// For each device so many of the largest batches are fetched ahead, or sent back, at once.
constexpr uint64_t kBatchesStaged = 8;
// Given by the controller and not over.
constexpr uint32_t kActionsPerDevice = 512;
constexpr uint64_t kStagingBytesMin = uint64_t{64} << 20;
// Of models that are not compiled the batches are not known. What is not used is address
// space and no memory.
constexpr uint64_t kStagingBytesUncompiled = uint64_t{1} << 30;

Status stopped_while_starting() { return Status::unavailable("stopped while starting"); }

std::string unheeded_rules(std::string_view name) {
  return fmt::format(
      "model '{}': [labels] and [split] are not heeded by workers; put the model.toml in the folder of each front "
      "end's --applications, too",
      name);
}

uint64_t staging_bytes(const WorkerServerOptions& options, const ModelStartup& models) {
  uint64_t batch_bytes = 0;
  for (const CompiledModel& model : models.compiled()) {
    batch_bytes = std::max(batch_bytes, model.package.program->input_bytes() + model.package.program->output_bytes());
  }
  const uint64_t least = models.uncompiled_bytes().empty() ? kStagingBytesMin : kStagingBytesUncompiled;
  const uint64_t batches = kBatchesStaged * options.worker.devices.size();
  return options.staging_bytes.value_or(std::max(batches * batch_bytes, least));
}

std::string data_address(const WorkerServerOptions& options, uint16_t port) {
  if (!options.data_address.empty()) return options.data_address;
  return fmt::format("{}:{}", options.data_listen.substr(0, options.data_listen.rfind(':')), port);
}

LinkLoopOptions link_loop_options(const WorkerServerOptions& options, std::shared_ptr<const TlsContext> tls) {
  return {.connection = {.role = Role::kWorker,
                         .frame_bytes_max = options.frame_bytes_max,
                         .unsent_bytes_max = 4 * options.frame_bytes_max},
          .connections_max = kFrontendsMax,
          .received_bytes_max = kWorkerFramesAtOnce * options.frame_bytes_max,
          .tls = std::move(tls)};
}

}  // namespace

class WorkerServer::Parts {
 public:
  Parts(const WorkerServerOptions& options, Logger& log);
  ~Parts();

  Status start(StartupReporter& reporter, const std::function<bool()>& cancelled);
  void stop();
  std::string description() const;

 private:
  PackageStore make_packages();
  Status offer_definitions(StartupReporter& reporter);
  std::vector<WatchedFiles> definitions();
  Status start_links(const ModelStartup& models, StartupReporter& reporter);
  Status serve(ModelStartup& models, const std::function<bool()>& cancelled);
  Status run_loop();
  WorkerLink::Watch link_watch();
  LinkedReplicaOptions replica_options();
  void on_replica_registered();

  const WorkerServerOptions& options_;
  Logger& log_;
  Catalog catalog_;
  CompileProcess compiler_;
  std::atomic<bool> serves_{false};  // from then on models are compiled in the background
  PackageStore packages_;
  std::unique_ptr<ModelStartup> startup_;
  RepositoryService repository_;
  std::vector<ModelFolder> folders_;
  uint16_t port_ = 0;
  std::once_flag ready_;

  // In the order in which they are made; each uses those before it.
  WorkerMetrics metrics_{WorkerMetrics::Links::kShown};
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<LocalDevices> devices_;
  std::unique_ptr<WorkerLink> link_;
  std::unique_ptr<LinkLoop> loop_;
  std::unique_ptr<ReplicaPlace> replicas_;
  std::unique_ptr<ThreadStarter> threads_;
  std::unique_ptr<ContainerParts> containers_;
  std::unique_ptr<ModelHost> host_;
  std::unique_ptr<FileWatch> watch_;
  std::unique_ptr<FileWatch> definition_watch_;  // null: nothing is watched
  Thread thread_;
};

WorkerServer::Parts::Parts(const WorkerServerOptions& options, Logger& log)
    : options_(options),
      log_(log),
      compiler_(options.compile_command, options.compile_limits),
      packages_(make_packages()),
      repository_({.folder = options.repository,
                   .defaults = options.model_defaults,
                   .models = options.models,
                   .cache = options.cache,
                   .watch_interval = options.watch_interval,
                   .compilations = options.compilations,
                   .on_failure = [&log](const std::string& line) { log.write(Severity::kWarning, line); },
                   .on_note = [&log](const std::string& line) { log.write(Severity::kWarning, "note: " + line); },
                   .on_rules =
                       [&log](const std::string& name, const VersionRules& rules) {
                         if (rules != VersionRules()) log.write(Severity::kWarning, "note: " + unheeded_rules(name));
                       }}) {}

WorkerServer::Parts::~Parts() {
  repository_.stop();
  metrics_.set_memory({});
}

// Compiles in the background once the worker serves.
PackageStore WorkerServer::Parts::make_packages() {
  return {cache_folder(options_.repository, options_.cache), options_.weights_tier,
          package_device(options_.worker.devices),
          [this](const auto& model, const auto& compile_options, int output, const CompileWatch& watch) {
            return compiler_.compile(
                {.model = model,
                 .options = compile_options,
                 .threads = threads_max(options_.worker.devices),
                 .gpu = gpu_of(options_.worker.devices),
                 .share = options_.compile_in_background && serves_.load() ? CpuShare::kLeftover : CpuShare::kWhole},
                output, watch);
          },
          options_.package_share};
}

WorkerLink::Watch WorkerServer::Parts::link_watch() {
  return {.log = [this](Severity level, const std::string& line) { log_.write(level, line); },
          .on_registered = options_.on_ready,
          .on_drained = [this] { loop_->stop(); },
          .on_controller = [this](bool connected) { metrics_.on_controller(connected); },
          .on_frontends = [this](uint32_t count) { metrics_.on_frontends(count); },
          .on_stage_inputs = [this](uint64_t bytes, bool fetched) { metrics_.on_stage_inputs(bytes, fetched); }};
}

Status WorkerServer::Parts::offer_definitions(StartupReporter& reporter) {
  std::vector<std::string> notes;
  FOLIOT_ASSIGN_OR_RETURN(Pipelines pipelines, read_offered_pipelines(options_.repository, notes));
  FOLIOT_ASSIGN_OR_RETURN(Tasks tasks, read_offered_tasks(options_.repository, notes));
  for (const std::string& note : notes) reporter.on_note(note);
  link_->offer(std::move(pipelines));
  link_->offer(std::move(tasks));
  return Status();
}

// Each kind is offered anew when one of its files was written, added or removed.
std::vector<WatchedFiles> WorkerServer::Parts::definitions() {
  const auto offer_again = [this](auto read) {
    return [this, read]() -> Result<std::vector<std::string>> {
      std::vector<std::string> notes;
      FOLIOT_ASSIGN_OR_RETURN(auto offered, read(options_.repository, notes));
      link_->offer(std::move(offered));
      return notes;
    };
  };
  const auto on_failure = [this](const std::string& line) { log_.write(Severity::kWarning, line); };
  return {definition_files(options_.repository, "pipeline.toml", offer_again(read_offered_pipelines), on_failure),
          definition_files(options_.repository, "task.toml", offer_again(read_offered_tasks), on_failure)};
}

Status WorkerServer::Parts::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  FOLIOT_RETURN_IF_ERROR(options_.worker.check());
  FOLIOT_ASSIGN_OR_RETURN(telemetry_, Telemetry::open(
                                          options_.observation, options_.data_listen,
                                          [this] { return metrics_.text() + info_metrics("worker"); }, log_));
  FOLIOT_RETURN_IF_ERROR(check_repository(options_.repository));
  FOLIOT_RETURN_IF_ERROR(packages_.check_writable());
  FOLIOT_ASSIGN_OR_RETURN(
      folders_, scan_repository(options_.repository, options_.model_defaults, options_.models, options_.cache));
  if (folders_.empty() && !options_.models.empty()) {
    return Status::invalid_argument(fmt::format("no model in {} matches --models {}", options_.repository.string(),
                                                fmt::join(options_.models, " ")));
  }
  std::set<std::string_view> ruled;
  for (const ModelFolder& folder : folders_) {
    const std::string_view name = client_name(folder.name);
    if (folder.rules != VersionRules() && ruled.insert(name).second) reporter.on_note(unheeded_rules(name));
  }
  FOLIOT_RETURN_IF_ERROR(check_containers(folders_, options_.container_command, options_.containers, reporter));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<PersonalSpec> personal, scan_personal(options_.repository));
  for (const PersonalSpec& model : personal) {
    reporter.on_note(fmt::format(
        "personal model '{}' is not served: `foliot serve` and front ends with --personal serve them", model.name));
  }
  startup_ = std::make_unique<ModelStartup>(ModelStartup::Parts{catalog_, packages_, reporter, cancelled});
  startup_->find(folders_);
  if (cancelled()) return stopped_while_starting();
  // Compiling begins while memory is taken.
  FOLIOT_RETURN_IF_ERROR(repository_.start(catalog_, packages_, folders_));
  startup_->load_others(repository_);
  FOLIOT_RETURN_IF_ERROR(start_links(*startup_, reporter));
  FOLIOT_RETURN_IF_ERROR(serve(*startup_, cancelled));
  return run_loop();
}

Status WorkerServer::Parts::start_links(const ModelStartup& models, StartupReporter& reporter) {
  FOLIOT_ASSIGN_OR_RETURN(auto link_tls, open_link_tls(options_.link_tls));
  devices_ = std::make_unique<LocalDevices>(options_.worker, models.compiled(), models.uncompiled_bytes());
  link_ = std::make_unique<WorkerLink>(WorkerLinkOptions{.name = options_.name,
                                                         .kind = options_.kind,
                                                         .models_max = options_.worker.models_max,
                                                         .page_count = devices_->memory().page_count,
                                                         .lane_count = options_.worker.devices.front().lanes,
                                                         .context_count = options_.worker.contexts,
                                                         .actions_max = kActionsPerDevice * devices_->count(),
                                                         .staging_bytes = staging_bytes(options_, models),
                                                         .held_bytes = options_.held_bytes,
                                                         .drain_timeout = options_.drain_timeout},
                                       link_watch());
  // Metrics are counted only where they can be read.
  if (options_.observation.metrics()) link_->add_observer(metrics_);
  if (telemetry_->recorder() != nullptr) link_->add_observer(*telemetry_->recorder());
  loop_ = std::make_unique<LinkLoop>(link_loop_options(options_, std::move(link_tls)), *link_);
  FOLIOT_ASSIGN_OR_RETURN(port_, loop_->listen(options_.data_listen));
  FOLIOT_RETURN_IF_ERROR(devices_->start(link_->payloads(), *link_));
  metrics_.set_memory(devices_->metrics());
  if (!devices_->memory_locked()) reporter.on_note(kMemoryNotLocked);
  link_->set_catalog(catalog_);
  // Changes from here on are seen.
  if (options_.watch_interval) definition_watch_ = std::make_unique<FileWatch>(definitions());
  FOLIOT_RETURN_IF_ERROR(offer_definitions(reporter));
  link_->start(devices_->workers(), data_address(options_, port_), *loop_);
  return Status();
}

Status WorkerServer::Parts::serve(ModelStartup& models, const std::function<bool()>& cancelled) {
  const DeviceMemory& memory = devices_->memory();
  replicas_ = std::make_unique<LinkedReplicaPlace>(replica_options());
  FOLIOT_ASSIGN_OR_RETURN(threads_, ThreadStarter::make());
  containers_ = std::make_unique<ContainerParts>(
      ContainerParts{.replicas = {.place = *replicas_,
                                  .threads = *threads_,
                                  .log = [this](Severity level, const std::string& line) { log_.write(level, line); }},
                     .launcher = options_.container_command,
                     .package = options_.python_package,
                     .safety = options_.containers});
  host_ = std::make_unique<ModelHost>(
      ModelHost::Parts{catalog_, *link_, devices_->hosts(), options_.kind, containers_.get()}, memory.page_bytes,
      memory.page_count, options_.worker.models_max);
  models.serve_compiled(*host_);
  repository_.attach(*host_);
  models.wait_for_others(repository_);
  if (cancelled()) return stopped_while_starting();
  if (models.progress().served == 0) {
    return Status::invalid_argument(
        fmt::format("there is no model that can be served in {}", options_.repository.string()));
  }
  serves_.store(true);
  return Status();
}

LinkedReplicaOptions WorkerServer::Parts::replica_options() {
  const auto host_of = [](const std::string& address) { return address.substr(0, address.rfind(':')); };
  return {.worker = options_.name,
          .controller = options_.controller,
          .data_host = host_of(options_.data_listen),
          .data_address_host = options_.data_address.empty() ? "" : host_of(options_.data_address),
          .frame_bytes_max = options_.frame_bytes_max,
          .held_bytes = options_.held_bytes,
          .drain_timeout = options_.drain_timeout,
          .link_tls = options_.link_tls,
          .log = [this](Severity level, const std::string& line) { log_.write(level, line); },
          .on_registered = [this] { on_replica_registered(); }};
}

// Without compiled models the worker's own link never registers.
void WorkerServer::Parts::on_replica_registered() {
  if (!std::ranges::all_of(folders_, &ModelFolder::is_container)) return;
  std::call_once(ready_, [this] { options_.on_ready(folders_.size()); });
}

Status WorkerServer::Parts::run_loop() {
  FOLIOT_RETURN_IF_ERROR(keep_controllers(*loop_, options_.controller));
  std::vector<WatchedFiles> watched = telemetry_->watched(log_);
  std::ranges::move(link_tls_reloads(options_.link_tls, *loop_, log_), std::back_inserter(watched));
  watch_ = std::make_unique<FileWatch>(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(watch_->start(kReloadInterval));
  if (definition_watch_ != nullptr) FOLIOT_RETURN_IF_ERROR(definition_watch_->start(*options_.watch_interval));
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "links"}, [this] { loop_->run(); }));
  return Status();
}

void WorkerServer::Parts::stop() {
  if (definition_watch_ != nullptr) definition_watch_->stop();
  repository_.stop();
  if (host_ != nullptr) host_->stop_containers();
  link_->drain();
  thread_.join();
  devices_->stop();
}

std::string WorkerServer::Parts::description() const {
  const DeviceMemory& memory = devices_->memory();
  return fmt::format("front ends on port {}; {}page cache {}; controller {}{}", port_, devices_->count_text(),
                     format_bytes(devices_->count() * memory.page_count * memory.page_bytes), options_.controller,
                     telemetry_->description());
}

WorkerServer::WorkerServer(WorkerServerOptions options, Logger& log) : options_(std::move(options)), log_(log) {}
WorkerServer::~WorkerServer() { stop(); }

Status WorkerServer::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  auto parts = std::make_unique<Parts>(options_, log_);
  FOLIOT_RETURN_IF_ERROR(parts->start(reporter, cancelled));
  parts_ = std::move(parts);
  return Status();
}

void WorkerServer::stop() {
  if (parts_ == nullptr) return;
  parts_->stop();
  parts_.reset();
}

std::string WorkerServer::description() const { return parts_->description(); }

}  // namespace foliot
