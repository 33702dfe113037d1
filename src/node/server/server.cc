#include "node/server/server.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "answer/personal/service/personal_metrics.h"
#include "answer/personal/service/personal_models.h"
#include "answer/pipelines/pipeline_file.h"
#include "answer/pipelines/served_pipelines.h"
#include "answer/selection/application.h"
#include "answer/tasks/served_tasks.h"
#include "answer/tasks/task_file.h"
#include "control/controller/cluster_view_observer.h"
#include "control/controller/rolling_duration_model.h"
#include "control/policies/registry.h"
#include "edge/requests/server_info.h"
#include "foundation/base/check.h"
#include "foundation/base/units.h"
#include "foundation/config/repository_path.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/wall_clock.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"
#include "models/training/retrainer.h"
#include "node/devices/compiled_model.h"
#include "node/files/access_files.h"
#include "node/files/definition_files.h"
#include "node/files/file_watch.h"
#include "node/files/predictor_folder.h"
#include "node/files/target_file.h"
#include "node/replicas/local_replica_place.h"
#include "node/repository/container_check.h"
#include "node/repository/container_model.h"
#include "node/repository/local_devices.h"
#include "node/repository/model_host.h"
#include "node/repository/model_startup.h"
#include "node/repository/repository_service.h"
#include "node/repository/repository_variants.h"
#include "node/server/application_folder.h"
#include "node/server/inference_stack.h"
#include "node/server/kept_jobs.h"
#include "node/server/personal_repository.h"
#include "node/server/start_stamp.h"
#include "node/threads/controller_inbox.h"
#include "node/threads/controller_loop.h"
#include "node/tuning/pipeline_tuning.h"
#include "node/tuning/task_scaling.h"
#include "observe/metrics/controller_metrics.h"
#include "observe/metrics/cost_metrics.h"
#include "observe/metrics/task_metrics.h"
#include "observe/metrics/tuning_metrics.h"
#include "observe/metrics/worker_metrics.h"
#include "observe/monitor/feed.h"
#include "observe/monitor/monitor.h"
#include "observe/request_log/background_writer.h"
#include "observe/request_log/recorder.h"
#include "observe/tracing/tracing.h"

namespace foliot {
namespace {

// After what waits was refused: until the answers to what runs are given.
constexpr Duration kDrainedAnswersTimeout = Duration::seconds(5);

Status stopped() { return Status::unavailable("stopped while starting"); }

}  // namespace

class Server::Parts {
 public:
  explicit Parts(const ServerOptions& options)
      : options_(options),
        compiler_(options.compile_command, options.compile_limits),
        packages_(
            cache_folder(options.repository, options.cache), options.weights_tier,
            package_device(options.worker.devices),
            [this](const auto& model, const auto& compile_options, int output, const CompileWatch& watch) {
              return compiler_.compile(
                  {.model = model,
                   .options = compile_options,
                   .threads = threads_max(options_.worker.devices),
                   .gpu = gpu_of(options_.worker.devices),
                   .share =
                       options_.compile_in_background && catalog_.ready() ? CpuShare::kLeftover : CpuShare::kWhole},
                  output, watch);
            },
            options.package_share),
        repository_({options.repository,
                     options.model_defaults,
                     {},
                     options.cache,
                     options.watch_interval,
                     options.compilations,
                     options.on_failure,
                     options.on_note,
                     [this](const std::string& name, const VersionRules& rules) {
                       inference_->versions().set_rules(name, rules);
                     },
                     [this](const std::string& name) { inference_->versions().set_one(name); }}),
        inbox_(options.frontend.requests_in_flight_max, options.worker.devices.size()),
        personal_({.threads = options.personal_threads,
                   .seed = static_cast<uint64_t>((monotonic_now() - TimePoint()).nanoseconds()),
                   .now = monotonic_now,
                   .on_failure = options.on_failure},
                  catalog_),
        retrainer_({.now = monotonic_now, .wall = wall_now, .log = options.on_retraining}, personal_) {}

  Status start(StartupReporter& reporter, const std::function<bool()>& cancelled);
  void stop();
  Frontend& frontend() { return inference_->frontend(); }
  std::string description() const;

 private:
  // Which has no pipelines, and whose path is no place for variants.
  bool is_one_model() const {
    const auto lone = find_lone_model(options_.repository);
    return lone.ok() && lone->has_value();
  }
  Status check_any_model(const std::vector<ModelFolder>& folders) const;
  Status open_ports();
  Status open_jobs();
  Status serve_models(const RegisteredPolicy& policy, const std::vector<ModelFolder>& folders,
                      StartupReporter& reporter, const std::function<bool()>& cancelled);
  Status serve_pipelines(StartupReporter& reporter);
  Status serve_tasks(StartupReporter& reporter);
  Status serve_personal();
  Status start_worker(const RegisteredPolicy& policy, const ModelStartup& models, StartupReporter& reporter);
  Status start_controller(const RegisteredPolicy& policy, uint32_t page_count);
  void open_overlap(StartupReporter& reporter);
  Status start_task_scaling(Controller& controller);
  Status open_pipeline_tuning();
  Status start_pipeline_tuning(Controller& controller);
  Status watch_targets();
  std::vector<WatchedFiles> definitions();
  std::string where() const;
  void wait_until_answered();

  const ServerOptions options_;
  Catalog catalog_;
  CompileProcess compiler_;
  PackageStore packages_;
  std::unique_ptr<ModelStartup> startup_;
  RepositoryService repository_;
  StartupProgress models_;
  bool stopped_ = false;

  // In the order in which they are made; each uses those before it.
  ControllerInbox inbox_;
  std::unique_ptr<ServedPipelines> pipelines_;
  std::unique_ptr<ServedTasks> tasks_;
  bool has_tasks_ = false;
  std::unique_ptr<TaskScaling> task_scaling_;           // null: there is nothing to scale
  std::unique_ptr<ClusterViewObserver> scaling_views_;  // likewise
  ControllerMetrics controller_metrics_;
  TaskMetrics task_metrics_{
      {options_.controller.tasks.hourly_dollars, options_.controller.tasks.default_hourly_dollars}};
  CostMetrics cost_metrics_{
      {options_.controller.tasks.hourly_dollars, options_.controller.tasks.default_hourly_dollars}};
  TuningMetrics tuning_metrics_;
  Monitor monitor_;
  MonitorFeed monitor_feed_{monitor_, start_stamp(), monotonic_now(), monotonic_now};
  WorkerMetrics worker_metrics_{WorkerMetrics::Links::kNone};
  PersonalModels personal_;
  PersonalMetrics personal_metrics_{personal_};
  Retrainer retrainer_;
  PersonalRepository all_models_{repository_, personal_};
  std::unique_ptr<PipelineTuning> pipeline_tuning_;  // null: nothing is tuned
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Tracing> tracing_;  // null: nothing is traced
  std::unique_ptr<RepositoryVariants> variants_;
  std::unique_ptr<KeptJobs> jobs_;  // null: none are kept
  std::unique_ptr<InferenceStack> inference_;
  std::unique_ptr<ApplicationFolder> applications_;
  std::unique_ptr<LocalDevices> devices_;
  std::unique_ptr<ControllerLoop> controller_;
  std::unique_ptr<ReplicaPlace> replicas_;
  std::unique_ptr<ThreadStarter> threads_;
  std::unique_ptr<ContainerParts> containers_;
  std::unique_ptr<ModelHost> host_;
  std::shared_ptr<const OverlapPredictor> overlap_;  // null: nothing is known of groups
  std::unique_ptr<FileWatch> target_watch_;          // null: there is no such file
  std::unique_ptr<FileWatch> definition_watch_;      // null: nothing is watched
  FeedbackSink* feedback_log_ = nullptr;             // null: no log is kept
};

Status Server::Parts::start(StartupReporter& reporter, const std::function<bool()>& cancelled) {
  FOLIOT_RETURN_IF_ERROR(options_.worker.check());
  FOLIOT_RETURN_IF_ERROR(check_repository(options_.repository));
  FOLIOT_RETURN_IF_ERROR(packages_.check_writable());
  FOLIOT_ASSIGN_OR_RETURN(const RegisteredPolicy policy, find_policy(options_.scheduler));
  FOLIOT_RETURN_IF_ERROR(open_ports());
  reporter.on_listening(where());
  FOLIOT_ASSIGN_OR_RETURN(const auto folders,
                          scan_repository(options_.repository, options_.model_defaults, {}, options_.cache));
  FOLIOT_RETURN_IF_ERROR(check_any_model(folders));
  FOLIOT_RETURN_IF_ERROR(check_containers(folders, options_.container_command, options_.containers, reporter));
  FOLIOT_RETURN_IF_ERROR(serve_models(policy, folders, reporter, cancelled));
  catalog_.set_ready();
  return jobs_ == nullptr ? Status() : jobs_->start(catalog_, inference_->inference(), frontend());
}

// A folder that may get its models later is watched, or takes registrations.
Status Server::Parts::check_any_model(const std::vector<ModelFolder>& folders) const {
  if (options_.watch_interval || !options_.jobs.folder.empty()) return Status();
  const auto is_model = [](const ModelFolder& folder) { return folder.status.code() != StatusCode::kNotFound; };
  if (std::ranges::any_of(folders, is_model)) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<PersonalSpec> personal, scan_personal(options_.repository));
  if (!personal.empty()) return Status();
  return Status::not_found(fmt::format(
      "there is no model in '{}'; put one there, such as {}, or let the server wait for models with --watch 5s",
      options_.repository.string(), (options_.repository / "NAME" / "model.onnx").string()));
}

Status Server::Parts::serve_models(const RegisteredPolicy& policy, const std::vector<ModelFolder>& folders,
                                   StartupReporter& reporter, const std::function<bool()>& cancelled) {
  startup_ = std::make_unique<ModelStartup>(ModelStartup::Parts{catalog_, packages_, reporter, cancelled});
  ModelStartup& models = *startup_;
  for (const ModelFolder& folder : folders) {
    if (folder.is_version()) inference_->versions().set_rules(std::string(client_name(folder.name)), folder.rules);
  }
  models.find(folders);
  applications_ = std::make_unique<ApplicationFolder>(
      ApplicationFolder::Options{options_.repository,
                                 options_.state,
                                 feedback_log_,
                                 {options_.container_command, options_.python_package, options_.containers}},
      inference_->applications(), catalog_,
      ApplicationFolder::Reports{[&reporter](const std::string& note) { reporter.on_note(note); }, options_.on_failure,
                                 [this](const std::string& line) { options_.on_replica(Severity::kInfo, line); }});
  // It knows the files as they are read here.
  if (options_.watch_interval) definition_watch_ = std::make_unique<FileWatch>(definitions());
  FOLIOT_RETURN_IF_ERROR(serve_pipelines(reporter));
  FOLIOT_RETURN_IF_ERROR(serve_tasks(reporter));
  FOLIOT_RETURN_IF_ERROR(serve_personal());
  FOLIOT_RETURN_IF_ERROR(applications_->start());
  if (cancelled()) return stopped();
  // Compiling begins while memory is taken.
  FOLIOT_RETURN_IF_ERROR(repository_.start(catalog_, packages_, folders));
  models.load_others(repository_);
  FOLIOT_RETURN_IF_ERROR(start_worker(policy, models, reporter));
  models.serve_compiled(*host_);
  FOLIOT_RETURN_IF_ERROR(watch_targets());
  repository_.attach(*host_);
  if (definition_watch_ != nullptr) FOLIOT_RETURN_IF_ERROR(definition_watch_->start(*options_.watch_interval));
  models.wait_for_others(repository_);
  personal_.wait_for_features(cancelled);
  if (cancelled()) return stopped();
  for (const std::string& what : compiler_.unconfined()) {
    reporter.on_note(fmt::format("models are compiled with {}; compile only what you trust", what));
  }
  models_ = models.progress();
  models_.served += personal_.served();
  models_.broken += personal_.size() - personal_.served();
  models_.total += personal_.size();
  return Status();
}

Status Server::Parts::serve_pipelines(StartupReporter& reporter) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<PipelineSpec> pipelines, scan_pipelines(options_.repository));
  for (const PipelineSpec& pipeline : pipelines) {
    if (pipeline.status.ok()) continue;
    reporter.on_note(fmt::format("pipeline '{}' cannot be served: {}", pipeline.name, pipeline.status.message()));
  }
  pipelines_ = std::make_unique<ServedPipelines>(catalog_, inbox_);
  pipelines_->serve(std::move(pipelines));
  return Status();
}

Status Server::Parts::serve_tasks(StartupReporter& reporter) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<TaskSpec> tasks, scan_tasks(options_.repository));
  for (const TaskSpec& task : tasks) {
    if (task.status.ok()) continue;
    reporter.on_note(fmt::format("task '{}' cannot be served: {}", task.name, task.status.message()));
  }
  has_tasks_ = !tasks.empty() || jobs_ != nullptr;  // one may come by a registration
  tasks_ = std::make_unique<ServedTasks>(catalog_, inbox_);
  tasks_->serve(std::move(tasks));
  return Status();
}

Status Server::Parts::serve_personal() {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<PersonalSpec> models, scan_personal(options_.repository));
  personal_.use(inference_->inference(), options_.frontend.requests_in_flight_max);
  FOLIOT_RETURN_IF_ERROR(personal_.open(
      std::move(models), options_.observations.empty() ? repository_folder(options_.repository) / ".observations"
                                                       : options_.observations));
  retrainer_.open();
  if (options_.watch_interval) FOLIOT_RETURN_IF_ERROR(personal_.watch(*options_.watch_interval));
  return retrainer_.start();
}

// First of all, however many models there are: a port in use is known at once, and
// liveness can be seen while models are looked for and compiled.
Status Server::Parts::open_ports() {
  if (!options_.log.folder.empty()) {
    LogOptions log = options_.log;
    log.origin = monotonic_now();
    FOLIOT_ASSIGN_OR_RETURN(auto writer, BackgroundWriter::open(log));
    feedback_log_ = writer.get();
    recorder_ = std::make_unique<Recorder>(std::move(writer));
  }
  if (options_.tracing.on()) {
    FOLIOT_ASSIGN_OR_RETURN(tracing_, Tracing::start(options_.tracing));
  }
  if (!options_.jobs.folder.empty()) {
    FOLIOT_RETURN_IF_ERROR(open_jobs());
  }
  FrontendOptions frontend_options = options_.frontend;
  frontend_options.traces = {.on = options_.tracing.on(), .share = options_.tracing.share};
  inference_ = std::make_unique<InferenceStack>(frontend_options, catalog_, inbox_, all_models_, monotonic_now,
                                                &personal_, jobs_ == nullptr ? nullptr : &jobs_->service());
  inference_->log_rollbacks(options_.on_failure);
  frontend().add_metrics(controller_metrics_);
  frontend().add_metrics(task_metrics_);
  frontend().add_metrics(cost_metrics_);
  frontend().add_metrics(worker_metrics_);
  frontend().add_metrics(personal_metrics_);
  frontend().add_metrics(retrainer_);
  monitor_feed_.use_log(options_.log.folder);
  frontend().show_monitor(monitor_feed_);
  inference_->describe(info_metrics("serve", options_.scheduler));
  if (tracing_ != nullptr) inference_->trace(*tracing_);
  FOLIOT_RETURN_IF_ERROR(open_pipeline_tuning());
  return inference_->start();
}

Status Server::Parts::open_jobs() {
  const auto read_tasks = [this] {
    Result<std::vector<TaskSpec>> all = scan_tasks(options_.repository);
    if (!all.ok()) return options_.on_failure(all.status().message());
    for (const std::string& note : tasks_->replace(std::move(all).value())) options_.on_failure(note);
  };
  // Its processes begin in another folder.
  std::error_code error;
  const std::filesystem::path repository = std::filesystem::absolute(options_.repository, error);
  if (!is_one_model()) {
    variants_ = std::make_unique<RepositoryVariants>(
        RepositoryVariants::Parts{.catalog = catalog_,
                                  .packages = packages_,
                                  .models = repository_,
                                  .repository = error ? options_.repository : repository,
                                  .defaults = options_.model_defaults,
                                  .read_tasks = read_tasks});
  }
  KeptJobsOptions jobs = options_.jobs;
  jobs.variants.launcher = options_.container_command;
  jobs.variants.package = options_.python_package;
  FOLIOT_ASSIGN_OR_RETURN(jobs_, KeptJobs::open(jobs, variants_.get(), options_.on_failure));
  return Status();
}

Status Server::Parts::start_worker(const RegisteredPolicy& policy, const ModelStartup& models,
                                   StartupReporter& reporter) {
  LocalWorkerOptions worker = options_.worker;
  worker.loads_in_flight_max = 2 * options_.controller.loads_outstanding_max;
  worker.infers_in_flight_max = 2 * options_.controller.infers_outstanding_max;
  devices_ = std::make_unique<LocalDevices>(worker, models.compiled(), models.uncompiled_bytes());
  const DeviceMemory& memory = devices_->memory();
  FOLIOT_RETURN_IF_ERROR(devices_->start(inference_->origin(), inbox_));
  if (!devices_->memory_locked()) reporter.on_note(kMemoryNotLocked);
  worker_metrics_.set_memory(devices_->metrics());
  replicas_ = std::make_unique<LocalReplicaPlace>(inbox_, inference_->origin(), devices_->count());
  FOLIOT_ASSIGN_OR_RETURN(threads_, ThreadStarter::make());
  containers_ =
      std::make_unique<ContainerParts>(ContainerParts{.replicas = {.place = *replicas_,
                                                                   .threads = *threads_,
                                                                   .infers_in_flight_max = worker.infers_in_flight_max,
                                                                   .log = options_.on_replica},
                                                      .launcher = options_.container_command,
                                                      .package = options_.python_package,
                                                      .safety = options_.containers});
  host_ = std::make_unique<ModelHost>(
      ModelHost::Parts{.catalog = catalog_,
                       .planner = inbox_,
                       .devices = devices_->hosts(),
                       .kind = kind_of(options_.worker.devices.front()),
                       .containers = containers_.get(),
                       .on_served =
                           [this](const ModelInfo& model) {
                             const std::string note = overlap_ == nullptr ? "" : unprofiled_note(*overlap_, model);
                             if (!note.empty()) options_.on_note(note);
                           }},
      memory.page_bytes, memory.page_count, options_.worker.models_max);
  open_overlap(reporter);
  return start_controller(policy, memory.page_count);
}

void Server::Parts::open_overlap(StartupReporter& reporter) {
  if (options_.scheduler != "overlap") return;
  overlap_ = open_predictor(predictor_file(cache_folder(options_.repository, options_.cache)),
                            options_.worker.devices.front().lanes,
                            [&reporter](const std::string& note) { reporter.on_note(note); });
}

Status Server::Parts::start_controller(const RegisteredPolicy& policy, uint32_t page_count) {
  ControllerOptions controller_options = options_.controller;
  if (overlap_ != nullptr) {
    controller_options.make_durations = [overlap = overlap_] {
      return std::make_unique<RollingDurationModel>(overlap);
    };
  }
  controller_ =
      std::make_unique<ControllerLoop>(controller_options, policy.make, inbox_, *devices_, inference_->origin());
  Controller& controller = controller_->controller();
  controller.add_observer(inference_->origin());
  controller.add_observer(controller_metrics_);
  controller.add_observer(task_metrics_);
  controller.add_observer(cost_metrics_);
  controller.add_observer(worker_metrics_);
  controller.add_observer(monitor_);
  controller_->set_turn_watch([this, &controller](Duration decision) {
    controller_metrics_.on_turn(decision, controller.queued_by_class(), controller.actions_outstanding());
  });
  if (recorder_ != nullptr) {
    controller.add_observer(*recorder_);
    controller_->add_label_sink(*recorder_);
  }
  if (tracing_ != nullptr) {
    controller.add_observer(tracing_->requests());
    controller_->add_label_sink(tracing_->requests());
  }
  FOLIOT_RETURN_IF_ERROR(start_task_scaling(controller));
  FOLIOT_RETURN_IF_ERROR(start_pipeline_tuning(controller));
  controller_->set_target_report(options_.on_failure);
  for (uint32_t device = 0; device < devices_->count(); ++device) {
    const uint32_t lanes = options_.worker.devices[device].lanes;
    const DeviceId id = controller.add_device(page_count, monotonic_now(), kind_of(options_.worker.devices[device]),
                                              lanes, options_.worker.contexts);
    FOLIOT_CHECK(id == DeviceId(device));
  }
  return controller_->start();
}

Status Server::Parts::start_task_scaling(Controller& controller) {
  if (!has_tasks_ || options_.task_scaling.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<Solver> solver, make_task_solver(options_.task_scaling));
  task_scaling_ = std::make_unique<TaskScaling>(
      std::move(solver), options_.controller.tasks,
      [this](Targets targets) { inbox_.scale(Autoscaler::kTasks, std::move(targets)); }, options_.on_note);
  scaling_views_ = std::make_unique<ClusterViewObserver>(controller.cluster(), *task_scaling_, monotonic_now(),
                                                         TaskScaling::kInterval);
  controller.add_observer(*scaling_views_);
  controller.add_observer(*task_scaling_);
  return task_scaling_->start();
}

// Its metrics are there before the port is open.
Status Server::Parts::open_pipeline_tuning() {
  if (options_.pipeline_tuner.empty() || is_one_model()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const TunerMethod tuner, find_pipeline_tuner(options_.pipeline_tuner));
  pipeline_tuning_ = std::make_unique<PipelineTuning>(
      PipelineTuningOptions{options_.plans.empty() ? options_.repository : options_.plans, tuner}, tuning_metrics_,
      [this](Targets targets) { inbox_.scale(Autoscaler::kPipelines, std::move(targets)); },
      [this](const std::string& line, bool trouble) {
        options_.on_tuning(trouble ? Severity::kWarning : Severity::kInfo, line);
      });
  frontend().add_metrics(tuning_metrics_);
  return pipeline_tuning_->open();
}

Status Server::Parts::start_pipeline_tuning(Controller& controller) {
  if (pipeline_tuning_ == nullptr) return Status();
  controller.add_observer(*pipeline_tuning_);
  return pipeline_tuning_->start();
}

Status Server::Parts::watch_targets() {
  if (options_.targets.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(WatchedFiles watched, use_target_file(
                                                    options_.targets,
                                                    [this](std::shared_ptr<const NamedTargets> targets) {
                                                      inbox_.set_targets(std::move(targets));
                                                    },
                                                    options_.on_failure));
  target_watch_ = std::make_unique<FileWatch>(std::vector<WatchedFiles>{std::move(watched)});
  return target_watch_->start(kReloadInterval);
}

// What pipelines, tasks and applications are made of is watched by the RepositoryService.
std::vector<WatchedFiles> Server::Parts::definitions() {
  const std::filesystem::path& repository = options_.repository;
  const auto pipelines = [this]() -> Result<std::vector<std::string>> {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<PipelineSpec> all, scan_pipelines(options_.repository));
    return pipelines_->replace(std::move(all));
  };
  const auto tasks = [this]() -> Result<std::vector<std::string>> {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<TaskSpec> all, scan_tasks(options_.repository));
    return tasks_->replace(std::move(all));
  };
  return {definition_files(repository, "pipeline.toml", pipelines, options_.on_failure),
          definition_files(repository, "task.toml", tasks, options_.on_failure), applications_->definitions()};
}

// Against the flow of data: first nothing comes in, then nothing is under way, then no
// part is left.
void Server::Parts::stop() {
  if (std::exchange(stopped_, true)) return;
  if (target_watch_ != nullptr) target_watch_->stop();
  if (definition_watch_ != nullptr) definition_watch_->stop();
  if (jobs_ != nullptr) jobs_->stop();
  repository_.stop();
  if (inference_ == nullptr) return;
  retrainer_.stop();
  inference_->drain();
  personal_.drain();
  wait_until_answered();
  frontend().stop();
  personal_.stop();
  if (host_ != nullptr && controller_ != nullptr) host_->stop_containers();
  if (task_scaling_ != nullptr) task_scaling_->stop();
  if (pipeline_tuning_ != nullptr) pipeline_tuning_->stop();
  if (applications_ != nullptr) applications_->stop();
  if (devices_ != nullptr) devices_->stop();
  if (controller_ != nullptr) controller_->stop();
}

void Server::Parts::wait_until_answered() {
  personal_.wait_until_answered(options_.drain_timeout);
  if (host_ == nullptr) return;  // nothing was ever served
  inference_->wait_until_answered(options_.drain_timeout);
  inbox_.drain();  // refuses what waits; what runs ends soon
  inference_->wait_until_answered(kDrainedAnswersTimeout);
}

std::string Server::Parts::where() const {
  const Frontend& frontend = inference_->frontend();
  return fmt::format("http {}:{}, grpc :{}, metrics :{}/metrics", options_.frontend.address, frontend.http_port(),
                     frontend.grpc_port(), frontend.metrics_port());
}

std::string Server::Parts::description() const {
  const DeviceMemory& memory = devices_->memory();
  const uint64_t page_cache = devices_->count() * memory.page_count * memory.page_bytes;
  const std::string place = fmt::format("on {}; {}page cache {}, scheduler {}", where(), devices_->count_text(),
                                        format_bytes(page_cache), options_.scheduler);
  const bool strict = options_.frontend.strict_readiness;
  if (!catalog_.can_serve(strict)) {
    return fmt::format("not ready: {} of {} models can be served{} {}", models_.served, models_.total,
                       strict ? ", and --strict-readiness asks for all," : "", place);
  }
  const std::string of = models_.broken > 0 ? fmt::format(" of {}", models_.total) : "";
  return fmt::format("ready: {}{} model{} {}", models_.served, of, models_.total == 1 ? "" : "s", place);
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
