// Flags of a server's parts, the same whether they are one process or several.
#ifndef FOLIOT_APP_COMMANDS_PART_FLAGS_H_
#define FOLIOT_APP_COMMANDS_PART_FLAGS_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "control/controller/task_options.h"
#include "edge/frontend/frontend.h"
#include "engine/container/container_options.h"
#include "engine/program/package.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "models/mirror/object_sources.h"
#include "models/repository/compile_process.h"
#include "models/repository/model_config.h"
#include "node/devices/device_places.h"
#include "node/devices/local_worker.h"
#include "node/server/kept_jobs.h"
#include "observe/request_log/log_writer.h"
#include "observe/tracing/tracing.h"

namespace foliot {

// How a repository is read.
struct RepositoryFlags {
  std::filesystem::path& cache;
  WeightsTier& weights_tier;
  ModelConfig& model_defaults;
  ObjectSourceOptions& sources;
};

void add_frontend_flags(CLI::App& app, FrontendOptions& options);
void add_repository_flags(CLI::App& app, const RepositoryFlags& options);
void add_log_flags(CLI::App& app, LogOptions& options);
void add_tracing_flags(CLI::App& app, TracingOptions& options);
// How models come, change and go while others are served. Sets the default of
// `limits.memory_bytes`: all of the machine; and of `compilations`: as many as processors,
// up to 4.
struct ChangeFlags {
  std::optional<Duration>& watch_interval;
  CompileLimits& limits;
  bool& in_background;
  uint32_t& compilations;
};
void add_change_flags(CLI::App& app, const ChangeFlags& flags);
// These flags say how containers are confined.
void add_container_flags(CLI::App& app, ContainerSafety& safety);
// Where applications keep what they learn.
void add_state_flag(CLI::App& app, std::string& state);
// Which jobs are kept, and where.
void add_job_flags(CLI::App& app, KeptJobsOptions& options);
// Where devices run, as it was asked for.
struct DeviceFlags {
  std::optional<uint32_t> threads;   // of the one device
  std::string sets;                  // of cores; empty: neither is given, and the machine decides
  std::optional<uint32_t> lanes;     // of each device
  std::optional<uint32_t> contexts;  // likewise
};
// --devices, which it returns, and --lanes; add_worker_flags() adds them, too.
CLI::Option* add_lane_flags(CLI::App& app, DeviceFlags& devices);
void add_worker_flags(CLI::App& app, LocalWorkerOptions& options, DeviceFlags& devices);
// On this machine. Errors: kInvalidArgument naming the flag.
Result<DevicePlaces> device_places(const DeviceFlags& flags);
// How tasks' variants are chosen and kept loaded.
struct TaskFlags {
  std::string policy = TaskOptions().policy;
  std::string scaling = "greedy_mixed";
  std::filesystem::path prices;  // empty: none
};
void add_task_flags(CLI::App& app, TaskFlags& flags);
// The file of what should be of models.
void add_target_flag(CLI::App& app, std::filesystem::path& targets);
// How pipelines that have a plan are tuned. `plans_default`: what holds without --plans, for --help.
struct TunerFlags {
  std::string& tuner;  // empty for none
  std::filesystem::path& plans;
};
void add_tuner_flags(CLI::App& app, const TunerFlags& flags, const std::string& plans_default);
// As they were given; `scaling` is empty for none. Errors: kInvalidArgument naming the file of prices.
Status set_tasks(const TaskFlags& flags, TaskOptions& options, std::string& scaling);

// Of one EXEC in `foliot serve` without flags, so that packages are compiled alike.
uint32_t default_threads();

// Returns how many contexts each device gets with this policy.
uint32_t contexts(const DeviceFlags& flags, const std::string& scheduler, const DevicePlaces& places);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_PART_FLAGS_H_
