#include "app/commands/worker_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/access_flags.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/console_reporter.h"
#include "app/commands/flags.h"
#include "app/commands/help_formatter.h"
#include "app/commands/logger_flags.h"
#include "app/commands/observation.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "base/units.h"
#include "cluster/worker_link.h"
#include "core/catalog.h"
#include "device/cpu/cpu_device.h"
#include "emulation/emulated_models.h"
#include "emulation/worker_service.h"
#include "metrics/worker_metrics.h"
#include "platform/thread.h"
#include "repository/compile_process.h"
#include "repository/model_folder.h"
#include "repository/package_store.h"
#include "serving/compiled_model.h"
#include "serving/local_worker.h"
#include "serving/model_host.h"
#include "serving/model_startup.h"
#include "serving/repository_service.h"
#include "transport/link_loop.h"

namespace foliot {
namespace {

// A V100's page cache in Clockwork's evaluation, in its pages.
constexpr uint64_t kPageCacheBytes = 21'500'000'000;
constexpr uint32_t kFrontendsMax = 256;
// Memory for so many of the largest frames that have come in part.
constexpr uint64_t kFramesAtOnce = 16;

// So many of the largest batches are fetched ahead, or sent back, at once.
constexpr uint64_t kBatchesStaged = 8;
constexpr uint64_t kStagingBytesMin = uint64_t{64} << 20;

struct WorkerFlags {
  std::string controller = "127.0.0.1:8100";
  std::string name = "worker";
  // A real one:
  std::filesystem::path repository;
  std::filesystem::path cache;
  WeightsTier weights_tier = WeightsTier::kMemory;
  ModelConfig model_defaults;
  CompileLimits compile_limits;
  bool compile_in_background = true;
  std::optional<Duration> watch_interval;
  LocalWorkerOptions worker;
  std::string data_listen = "127.0.0.1:0";
  std::string data_address;
  std::optional<uint64_t> staging_bytes;
  uint64_t frame_bytes_max = kDataFrameBytesMax;
  Duration drain_timeout = Duration::seconds(30);
  ObservationFlags observation;
  // Both:
  LoggerOptions log{.part = "worker"};
  TlsFiles tls;
  // Emulated ones:
  std::string emulate;
  uint32_t count = 1;
  uint64_t seed = 1;
};

Status run_emulated(const WorkerFlags& flags) {
  Logger log(flags.log, standard_error());
  const uint64_t page_cache_bytes = flags.worker.page_cache_bytes.value_or(kPageCacheBytes);
  WorkerServiceOptions options{.name = flags.name,
                               .page_count = static_cast<uint32_t>(page_cache_bytes / flags.worker.page_bytes),
                               .models = {},
                               .noise = {},
                               .seed = flags.seed};
  FOLIOT_ASSIGN_OR_RETURN(options.models, parse_emulated_models(flags.emulate, flags.worker.page_bytes));
  Status lost;
  std::function<void()> stop;
  WorkerService::Watch watch;
  watch.on_ready = [&](size_t workers) {
    if (workers == flags.count) say(log, fmt::format("ready: {} workers", workers));
  };
  watch.on_lost = [&](const Status& reason) {
    if (lost.ok()) lost = reason;
    stop();
  };
  std::function<Status()> connect;
  watch.connect = [&] { return connect(); };
  WorkerService service(std::move(options), std::move(watch));
  FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(flags.tls));
  LinkLoop loop({.connection = {.role = Role::kWorker}, .tls = std::move(tls), .stop_on_signals = true}, service);
  stop = [&] { loop.stop(); };
  connect = [&] { return loop.connect(flags.controller); };
  for (uint32_t i = 0; i < flags.count; ++i) FOLIOT_RETURN_IF_ERROR(loop.connect(flags.controller));
  loop.run();
  return lost;
}

// Compiles in the background once the worker serves.
PackageStore make_packages(const WorkerFlags& flags, CompileProcess& compiler, const std::atomic<bool>& serves) {
  const auto device = make_cpu_device({.threads = flags.worker.threads});
  return {flags.cache.empty() ? flags.repository / ".foliot" : flags.cache, flags.weights_tier,
          device->kind() + " " + device->fingerprint(),
          [&](const auto& model, const auto& options, int output, const CompileWatch& watch) {
            return compiler.compile(
                {.model = model,
                 .options = options,
                 .threads = flags.worker.threads,
                 .share = flags.compile_in_background && serves.load() ? CpuShare::kLeftover : CpuShare::kWhole},
                output, watch);
          }};
}

uint64_t staging_bytes(const WorkerFlags& flags, const std::vector<CompiledModel>& models) {
  uint64_t batch_bytes = 0;
  for (const CompiledModel& model : models) {
    batch_bytes = std::max(batch_bytes, model.package.program->input_bytes() + model.package.program->output_bytes());
  }
  return flags.staging_bytes.value_or(std::max(kBatchesStaged * batch_bytes, kStagingBytesMin));
}

std::string data_address(const WorkerFlags& flags, uint16_t port) {
  if (!flags.data_address.empty()) return flags.data_address;
  return fmt::format("{}:{}", flags.data_listen.substr(0, flags.data_listen.rfind(':')), port);
}

// The memory that metrics show is there as long as this lives.
class MemoryShown {
 public:
  explicit MemoryShown(WorkerMetrics& metrics) : metrics_(metrics) {}
  ~MemoryShown() { metrics_.set_memory({}); }
  MemoryShown(const MemoryShown&) = delete;
  MemoryShown& operator=(const MemoryShown&) = delete;

 private:
  WorkerMetrics& metrics_;
};

// Metrics are counted only where they can be read.
void observe(WorkerLink& link, const ObservationFlags& flags, WorkerMetrics& metrics, Recorder* recorder) {
  if (flags.metrics()) link.add_observer(metrics);
  if (recorder != nullptr) link.add_observer(*recorder);
}

Status run_real(const WorkerFlags& flags) {
  Logger log(flags.log, standard_error());
  FOLIOT_RETURN_IF_ERROR(flags.worker.check());
  WorkerMetrics metrics(WorkerMetrics::Links::kShown);
  FOLIOT_ASSIGN_OR_RETURN(const auto observation,
                          Observation::open(
                              flags.observation, flags.data_listen, [&] { return metrics.text(); }, log));
  FOLIOT_RETURN_IF_ERROR(check_repository(flags.repository));
  StopSignals signals;
  ConsoleReporter reporter(log);
  FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(flags.tls));
  CompileProcess compiler(confined_compile_command(), flags.compile_limits);
  std::atomic<bool> serves{false};
  PackageStore packages = make_packages(flags, compiler, serves);
  FOLIOT_RETURN_IF_ERROR(packages.check_writable());
  FOLIOT_ASSIGN_OR_RETURN(const auto folders, scan_repository(flags.repository, flags.model_defaults));
  Catalog catalog;
  ModelStartup models({catalog, packages, reporter, [&] { return signals.arrived(); }});
  models.find(folders);
  models.compile_others();
  if (signals.arrived()) return Status();

  LocalWorker worker(flags.worker, models.compiled());
  const DeviceMemory& memory = worker.memory();
  std::function<void()> stop;
  WorkerLink link({.name = flags.name,
                   .models_max = flags.worker.models_max,
                   .page_count = memory.page_count,
                   .staging_bytes = staging_bytes(flags, models.compiled()),
                   .drain_timeout = flags.drain_timeout},
                  {.log = [&](Severity level, const std::string& line) { log.write(level, line); },
                   .on_registered = [&](size_t count) { say(log, fmt::format("ready: {} models", count)); },
                   .on_drained = [&] { stop(); },
                   .on_controller = [&](bool connected) { metrics.on_controller(connected); },
                   .on_frontends = [&](uint32_t count) { metrics.on_frontends(count); }});
  observe(link, flags.observation, metrics, observation->recorder());
  LinkLoop loop({.connection = {.role = Role::kWorker,
                                .frame_bytes_max = flags.frame_bytes_max,
                                .unsent_bytes_max = 4 * flags.frame_bytes_max},
                 .connections_max = kFrontendsMax,
                 .received_bytes_max = kFramesAtOnce * flags.frame_bytes_max,
                 .tls = std::move(tls)},
                link);
  stop = [&] { loop.stop(); };
  FOLIOT_ASSIGN_OR_RETURN(const uint16_t port, loop.listen(flags.data_listen));
  FOLIOT_RETURN_IF_ERROR(worker.start(link.payloads(), link));
  metrics.set_memory({.page_count = memory.page_count, .io_cache = [&] { return worker.io_cache(); }});
  const MemoryShown shown(metrics);
  if (!worker.memory_locked()) reporter.on_note(kMemoryNotLocked);
  link.start(worker.worker(), data_address(flags, port), [&] { loop.wake(); });

  ModelHost host({catalog, worker.engine(), worker.worker(), link,
                  [&](const Program& program) { return worker.make_room(program); }},
                 memory.page_bytes, memory.page_count, flags.worker.models_max);
  models.serve_compiled(host);
  if (signals.arrived()) return Status();
  if (models.progress().served == 0) {
    return Status::invalid_argument(
        fmt::format("there is no model that can be served in {}", flags.repository.string()));
  }
  RepositoryService repository({.folder = flags.repository,
                                .defaults = flags.model_defaults,
                                .watch_interval = flags.watch_interval,
                                .on_failure = [&](const std::string& line) { log.write(Severity::kWarning, line); }});
  FOLIOT_RETURN_IF_ERROR(repository.start(catalog, packages, host, folders));
  serves.store(true);
  FOLIOT_RETURN_IF_ERROR(loop.keep(flags.controller));
  std::vector<WatchedFiles> watched = observation->watched(log);
  std::ranges::move(link_tls_reloads(flags.tls, loop, log), std::back_inserter(watched));
  FileWatch watch(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(watch.start(kReloadInterval));
  FOLIOT_ASSIGN_OR_RETURN(Thread thread, Thread::start({.name = "links"}, [&] { loop.run(); }));
  say(log,
      fmt::format("listening: front ends on port {}; page cache {}; controller {}{}", port,
                  format_bytes(memory.page_count * memory.page_bytes), flags.controller, observation->description()));

  signals.wait();
  say(log, "stopping: finishing what was given");
  repository.stop();
  link.drain();
  thread.join();
  worker.stop();
  say(log, "stopped");
  return Status();
}

Status run(const WorkerFlags& flags) {
  if (flags.emulate.empty() == flags.repository.empty()) {
    return Status::invalid_argument("name a REPOSITORY of models, or --emulate PROFILE");
  }
  if (!flags.emulate.empty() && flags.observation.any()) {
    return Status::invalid_argument("an emulated worker has no metrics and keeps no record; the controller has both");
  }
  return flags.emulate.empty() ? run_real(flags) : run_emulated(flags);
}

}  // namespace

void add_worker_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "Run a worker, which computes for a controller");
  command->footer(
      "Compiles the models of REPOSITORY, registers with the controller, and executes its actions. Fetches inputs\n"
      "from front ends, which connect to --data-listen, and sends them the outputs. All workers of a controller\n"
      "bring the same models; with --watch they change them while serving, and a change takes effect when all\n"
      "workers have made it. A controller that goes away is found again, with what the pages hold. Ctrl-C finishes\n"
      "what was given and stops.\n\n"
      "  foliot worker models --watch 10s --controller a:8100 --data-listen 0.0.0.0:8200\n\n"
      "An emulated worker does what a real one does, but for the computing: LOAD and EXEC only take the time that\n"
      "a profile says. PROFILE is a profile of the built-in V100 table, several of them (resnet50:15,resnet18 is\n"
      "fifteen models and one more), v100 for the whole table, or the CSV file of a table. It shows what a\n"
      "controller can carry.\n\n"
      "  foliot worker --emulate resnet50:15 --count 150 --controller localhost:8100\n\n"
      "Without --tls-link-... there is no authentication: listen on a trusted network only.");
  auto flags = std::make_shared<WorkerFlags>();
  command->add_option("repository", flags->repository, "folder with a folder per model");
  command->add_option("--controller", flags->controller, "HOST:PORT of the controller")->capture_default_str();
  command->add_option("--name", flags->name, "what the controller's log calls it")->capture_default_str();
  command
      ->add_option("--data-listen", flags->data_listen,
                   "HOST:PORT where front ends connect; port 0 for any that is free")
      ->capture_default_str();
  command
      ->add_option("--data-address", flags->data_address, "HOST:PORT by which front ends reach that, if it is another")
      ->default_str("as the controller sees it");
  add_bytes_flag(*command, "staging", flags->staging_bytes, "memory for inputs that come and outputs that go",
                 "8 of the largest batches");
  add_bytes_flag(*command, "frame-max", flags->frame_bytes_max, "largest inputs or outputs of one row, on the wire");
  add_duration_flag(*command, "drain-timeout", flags->drain_timeout, "how long to finish what was given when stopping");
  add_repository_flags(*command, {flags->cache, flags->weights_tier, flags->model_defaults});
  add_change_flags(*command, {flags->watch_interval, flags->compile_limits, flags->compile_in_background});
  add_worker_flags(*command, flags->worker);
  add_observation_flags(*command, flags->observation, "--data-listen");
  add_link_tls_flags(*command, flags->tls);
  add_logger_flags(*command, flags->log);
  const FlagGroup group(*command, "Emulation");
  command->add_option("--emulate", flags->emulate, "profiles of the models of an emulated worker")
      ->type_name("PROFILE");
  command->add_option("--count", flags->count, "emulated workers, each with a connection of its own")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--seed", flags->seed, "of the noise in emulated durations")->capture_default_str();
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot worker: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
