#include "app/commands/part_flags.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "app/commands/flags.h"
#include "app/commands/help_formatter.h"
#include "foundation/config/price_file.h"
#include "foundation/platform/memory.h"
#include "foundation/platform/processor.h"
#include "foundation/platform/topology.h"

namespace foliot {

namespace {

void add_request_limits(CLI::App& app, FrontendOptions& options) {
  const FlagGroup group(app, "Limits of connections and requests");
  add_bytes_flag(app, "body-max", options.body_bytes_max, "largest request body");
  add_bytes_flag(app, "bodies-max", options.bodies_bytes_max,
                 "memory for the bodies of all requests at a time, each for HTTP and gRPC");
  app.add_option("--tensors-max", options.tensors.tensors_max, "inputs, or outputs asked for, in one call")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--tensor-rank-max", options.tensors.rank_max, "dimensions of one input")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 20));
  add_bytes_flag(app, "tensor-max", options.tensors.tensor_bytes_max, "largest input, all rows of a call together");
  app.add_option("--connections-max", options.connections_max, "connections at a time, each for HTTP and gRPC")
      ->capture_default_str();
  add_duration_flag(app, "idle-timeout", options.idle_timeout, "how long a connection may be idle");
  add_duration_flag(app, "request-timeout", options.request_timeout,
                    "how long a whole request may take to arrive; gRPC enforces it only at --connections-max");
  app.add_option("--requests-in-flight-max", options.requests_in_flight_max,
                 "requests (rows) at a time; beyond that the least urgent one is refused as overload")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 20));
}

}  // namespace

void add_frontend_flags(CLI::App& app, FrontendOptions& options) {
  const FlagGroup group(app, "HTTP and gRPC");
  app.add_option("--address", options.address, "address to listen on; 0.0.0.0 for all")->capture_default_str();
  app.add_option("--http-port", options.http_port, "HTTP; 0 for any free port")->capture_default_str();
  app.add_option("--grpc-port", options.grpc_port, "gRPC; 0 for any free port")->capture_default_str();
  app.add_option("--metrics-port", options.metrics_port, "Prometheus metrics; 0 for any free port")
      ->capture_default_str();
  app.add_option("--grpc-threads", options.grpc_threads,
                 "threads that read and answer inferences over gRPC; one takes in about two gigabytes a second")
      ->capture_default_str()
      ->check(CLI::Range(1u, 64u));
  app.add_flag("--strict-readiness", options.strict_readiness,
               "ready only while all models can be served, instead of at least one");
  add_bytes_flag(app, "prediction-cache", options.prediction_cache_bytes,
                 "memory for predictions of models with `cache = true`; 0: none is kept");
  add_request_limits(app, options);
}

void add_task_flags(CLI::App& app, TaskFlags& flags) {
  const FlagGroup group(app, "Tasks");
  app.add_option("--variant-policy", flags.policy,
                 "how the variant of a task's call is chosen: predicted (the cheapest that is predicted in time), "
                 "scaled (less accurate ones under overload) or infaas (the paper's)")
      ->check(CLI::IsMember({"predicted", "scaled", "infaas"}))
      ->capture_default_str();
  app.add_option("--task-scaling", flags.scaling,
                 "how many copies of tasks' variants stay loaded, decided once a second: greedy_mixed, greedy (the "
                 "paper's), ilp, or none: on demand alone")
      ->check(CLI::IsMember({"greedy_mixed", "greedy", "ilp", "none"}))
      ->capture_default_str();
  app.add_option("--prices", flags.prices, "dollars per hour of a device, by kind: a TOML file, such as cpu = 0.17")
      ->type_name("FILE")
      ->default_str("1 for each kind");
}

void add_target_flag(CLI::App& app, std::filesystem::path& targets) {
  app.add_option("--targets", targets,
                 "file with copies, kinds and largest batches of models, as `foliot plan --apply` writes it; read "
                 "again when it changes")
      ->type_name("FILE");
}

void add_tuner_flags(CLI::App& app, const TunerFlags& flags, const std::string& plans_default) {
  const FlagGroup group(app, "Pipelines");
  app.add_option("--plans", flags.plans,
                 "folder of plans, NAME/plan.toml for each pipeline, as `foliot plan --save` writes them; read again "
                 "when they change")
      ->type_name("FOLDER")
      ->default_str(plans_default);
  app.add_option_function<std::string>(
         "--pipeline-tuner", [&tuner = flags.tuner](const std::string& name) { tuner = name == "none" ? "" : name; },
         "how many copies the models of a planned pipeline have at least: replan (the plan's, or what the last minute "
         "is estimated to need), by_ratio (follows the arrivals, by how many times those of the plan they are), "
         "printed "
         "(InferLine's tuner, dearer) or none")
      ->check(CLI::IsMember({"by_ratio", "printed", "replan", "none"}))
      ->default_str(flags.tuner);
}

Status set_tasks(const TaskFlags& flags, TaskOptions& options, std::string& scaling) {
  options.policy = flags.policy;
  scaling = flags.scaling == "none" ? "" : flags.scaling;
  if (flags.prices.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(options.hourly_dollars, read_price_file(flags.prices));
  return Status();
}

void add_repository_flags(CLI::App& app, const RepositoryFlags& options) {
  const FlagGroup group(app, "Models");
  app.add_option("--cache", options.cache, "folder for compiled models, or s3://BUCKET/PREFIX to share them by")
      ->default_str("REPOSITORY/.foliot");
  app.add_option("--mirror", options.sources.mirror, "folder for the models of a REPOSITORY s3://BUCKET/PREFIX")
      ->type_name("FOLDER");
  add_bytes_flag(app, "mirror-limit", options.sources.mirror_bytes_max, "size of that folder", "no limit");
  app.add_option("--endpoint", options.sources.endpoint, "URL of the object store, for s3://...")
      ->default_str("AWS_ENDPOINT_URL of the environment, or Amazon's");
  app.add_option("--weights-tier", options.weights_tier, "where LOAD finds weights: memory or disk")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, WeightsTier>{{"memory", WeightsTier::kMemory}, {"disk", WeightsTier::kDisk}}))
      ->default_str("memory");
  add_duration_flag(app, "default-slo", options.model_defaults.default_slo,
                    "deadline of requests that bring none, unless model.toml has one", "none: best effort");
}

void add_log_flags(CLI::App& app, LogOptions& options) {
  const FlagGroup group(app, "Record of requests and actions");
  app.add_option("--log", options.folder,
                 "keep a record of every request and action in this folder, for `foliot explain`")
      ->type_name("FOLDER")
      ->default_str("none");
  add_bytes_flag(app, "log-max", options.bytes_max, "size of that folder; the oldest records go first");
}

void add_tracing_flags(CLI::App& app, TracingOptions& options) {
  const FlagGroup group(app, "Traces");
  CLI::Option* const url = app.add_option("--otlp", options.url,
                                          "send spans of traced calls to this collector, by OTLP over HTTP, such as "
                                          "http://localhost:4318")
                               ->type_name("URL")
                               ->default_str("none: nothing is traced");
  app.add_option("--otlp-share", options.share,
                 "trace so many of the calls that bring no traceparent; those that bring one say so themselves")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->needs(url);
}

// Beyond that memory may be short before processors are.
constexpr uint32_t kCompilationsMax = 4;

void add_state_flag(CLI::App& app, std::string& state) {
  app.add_option("--state", state,
                 "where applications keep what they learn: a file of this server's alone, or Redis, by which several "
                 "front ends learn together: redis://HOST[:PORT][/DATABASE] or unix:PATH of its socket; its password "
                 "is FOLIOT_REDIS_PASSWORD of the environment")
      ->type_name("PLACE")
      ->default_str("none: it is lost when the server stops");
}

void add_job_flags(CLI::App& app, KeptJobsOptions& options) {
  const FlagGroup group(app, "Jobs");
  app.add_option("--jobs", options.folder,
                 "folder of jobs that the server keeps: their inputs, outputs and database; without it there are none")
      ->type_name("FOLDER");
  app.add_option("--jobs-running", options.running_max, "jobs that run at a time; others wait")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add_bytes_flag(app, "jobs-bytes-per-key", options.key_bytes_max,
                 "disk for the outputs of all jobs of one key; without keys, of all", "no limit");
  app.add_option("--webhooks", options.webhooks,
                 "HOST or HOST:PORT that jobs may notify when they end; once for each, without it none")
      ->type_name("HOST")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  for (const char* of_jobs : {"--jobs-running", "--jobs-bytes-per-key", "--webhooks"}) {
    app.get_option(of_jobs)->needs(app.get_option("--jobs"));
  }
}

void add_change_flags(CLI::App& app, const ChangeFlags& flags) {
  const FlagGroup group(app, "Compiling and changing models");
  add_duration_flag(app, "watch", flags.watch_interval,
                    "how often to look for models, pipelines and tasks that were added, changed or removed", "off");
  flags.limits.memory_bytes = total_memory_bytes();
  add_bytes_flag(app, "compile-memory", flags.limits.memory_bytes, "address space that compiling one model may take");
  add_duration_flag(app, "compile-time", flags.limits.cpu_time, "CPU time that compiling one model may take");
  app.add_option("--compile-in-background", flags.in_background, "compile new models at idle priority while serving")
      ->capture_default_str();
  flags.compilations = std::clamp(usable_processors(), 1u, kCompilationsMax);
  app.add_option("--compilations", flags.compilations,
                 "models compiled at a time for their smallest batch size, and as many behind these for the others")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
}

void add_container_flags(CLI::App& app, ContainerSafety& safety) {
  const FlagGroup group(app, "Containers");
  app.add_option(
         "--containers",
         [&safety](const CLI::results_t& given) {
           safety.strict = given.front() == "strict";
           return true;
         },
         "confine code of users as far as this kernel can (available), or do not start where it lacks something "
         "(strict)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"available", "strict"}))
      ->default_str("available");
  app.add_option(
         "--containers-kernel",
         [&safety](const CLI::results_t& given) {
           const auto limits = parse_kernel_limits(given.front());
           if (!limits.ok()) throw CLI::ValidationError("--containers-kernel", limits.status().message());
           safety.kernel = *limits;
           return true;
         },
         "for tests: confine them as a lesser kernel could, e.g. landlock=3,namespaces=no")
      ->type_name("LIMITS")
      ->default_str("this kernel");
}

namespace {

// As many as policy overlap makes use of: of a group, and of the next one.
constexpr uint32_t kOverlapContextsMax = 8;

Result<DevicePlaces> places_of(const DeviceFlags& flags) {
  if (flags.threads) return DevicePlaces{{.threads = *flags.threads}};
  FOLIOT_ASSIGN_OR_RETURN(const Topology topology, read_topology());
  if (flags.sets.empty()) return default_device_places(topology);
  return parse_device_places(flags.sets, topology);
}

}  // namespace

Result<DevicePlaces> device_places(const DeviceFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(DevicePlaces places, places_of(flags));
  if (flags.lanes) FOLIOT_RETURN_IF_ERROR(set_lanes(places, *flags.lanes));
  return places;
}

uint32_t default_threads() {
  const Result<DevicePlaces> places = device_places({});
  return places.ok() ? threads_max(*places) : std::max(1u, usable_processors() - 1);
}

uint32_t contexts(const DeviceFlags& flags, const std::string& scheduler, const DevicePlaces& places) {
  if (flags.contexts) return *flags.contexts;
  uint32_t lanes = 1;
  for (const DevicePlace& place : places) lanes = std::max(lanes, place.lanes);
  if (scheduler == "foliot") return 2;  // an unfinished batch beside other EXECs
  if (scheduler != "overlap") return 1;
  return lanes == 1 ? 1 : std::min(2 * lanes, kOverlapContextsMax);
}

CLI::Option* add_lane_flags(CLI::App& app, DeviceFlags& devices) {
  CLI::Option* const sets =
      app.add_option("--devices", devices.sets,
                     "a device for each set of cores, pinned there, e.g. '0-15;16-31'; or a GPU: vulkan, vulkan:0")
          ->type_name("CORES[;CORES]...")
          ->default_str("one for each NUMA node")
          ->check([](const std::string& text) {
            return text.empty() ? std::string("a set without cores; name at least one") : std::string();
          });
  app.add_option("--lanes", devices.lanes, "batches that a device runs at once, on an equal share of its threads each")
      ->default_str("1; 2 on the two cores of a machine that has no more");
  return sets;
}

void add_worker_flags(CLI::App& app, LocalWorkerOptions& options, DeviceFlags& devices) {
  const FlagGroup group(app, "Threads and memory");
  CLI::Option* const sets = add_lane_flags(app, devices);
  app.add_option("--threads", devices.threads, "one device, not pinned, with so many threads for one EXEC")
      ->default_str("all cores but one")
      ->check(CLI::Range(1, 1024))
      ->excludes(sets);
  app.add_option("--contexts", devices.contexts,
                 "unfinished batches that a device holds, for policies that run batches in parts")
      ->default_str(
          "2 where devices have one lane, or serve has --jobs; else 1; with the scheduler overlap, 2 for each "
          "lane, up to 8")
      ->check(CLI::Range(1u, kContextsMax));
  add_bytes_flag(app, "page-cache", options.page_cache_bytes,
                 "memory for weights, of all devices; may be smaller than all models",
                 "all models, up to half of the memory");
  add_bytes_flag(app, "page-size", options.page_bytes, "page of the page cache; weights come in whole pages",
                 "as the models at the start need, up to 16MiB");
  add_bytes_flag(app, "io-cache", options.io_cache_bytes, "memory for inputs and outputs in flight, of each device",
                 "as the models need");
  add_bytes_flag(app, "workspace", options.workspace_bytes,
                 "memory for the intermediates of one batch, for each lane, and each context beyond one",
                 "as the models need");
  app.add_option("--models-max", options.models_max, "models at a time")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 20));
}

}  // namespace foliot
