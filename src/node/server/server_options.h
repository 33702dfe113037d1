// ServerOptions: all options of `foliot serve`.
#ifndef FOLIOT_NODE_SERVER_SERVER_OPTIONS_H_
#define FOLIOT_NODE_SERVER_SERVER_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/controller/controller.h"
#include "edge/frontend/frontend.h"
#include "engine/program/package.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "models/repository/compile_process.h"
#include "models/repository/model_config.h"
#include "models/repository/package_share.h"
#include "node/devices/local_worker.h"
#include "node/repository/container_check.h"
#include "node/server/kept_jobs.h"
#include "observe/request_log/log_writer.h"
#include "observe/tracing/tracing.h"

namespace foliot {

struct ServerOptions {
  std::filesystem::path repository;
  std::filesystem::path cache;                  // empty: <repository>/.foliot
  std::shared_ptr<PackageShare> package_share;  // of PackageStore; null: none
  std::string state;                            // where applications keep what they learn (StateKeeper); empty: nowhere
  std::filesystem::path observations;  // folder of what personal models observe; empty: <repository>/.observations
  uint32_t personal_threads = 1;       // of predictions and topK of personal models
  KeptJobsOptions jobs;
  FrontendOptions frontend;
  ControllerOptions controller;
  std::string scheduler = "foliot";
  // Solver of how many copies tasks' variants have (node/tuning/task_scaling.h); empty: they are loaded on
  // demand alone.
  std::string task_scaling = "greedy_mixed";
  // What follows the arrivals of pipelines that have a plan (node/tuning/pipeline_tuning.h); empty: nothing.
  std::string pipeline_tuner = "replan";
  std::filesystem::path plans;    // folder of NAME/plan.toml; empty: the repository
  std::filesystem::path targets;  // file of what should be of models (node/files/target_file.h); empty: none
  ModelConfig model_defaults;
  std::vector<std::string>
      compile_command;  // starts the process that compiles one model (models/repository/compile_process.h)
  CompileLimits compile_limits;
  // Starts the process of a container (engine/container/container_launch.h).
  std::vector<std::string> container_command;
  ContainerSafety containers;
  std::filesystem::path python_package;    // the folder that the Python package `foliot` lies in
  bool compile_in_background = true;       // where nothing else wants the CPU, once models are served
  uint32_t compilations = 1;               // at a time (node/repository/repository_service.h)
  std::optional<Duration> watch_interval;  // how often to look for changes of the repository; nullopt: never
  WeightsTier weights_tier = WeightsTier::kMemory;
  LocalWorkerOptions worker;  // of all devices; their actions in flight follow from `controller`
  LogOptions log;             // no folder: none is kept; its origin is the start of the server
  TracingOptions tracing;
  Duration drain_timeout = Duration::seconds(30);
  // Called for models that the watch saw and that cannot be served, from a thread of
  // its own.
  std::function<void(const std::string&)> on_failure = [](const std::string&) {};
  // Called with what replicas of containers print, and why one is started again, from any thread.
  std::function<void(Severity, const std::string&)> on_replica = [](Severity, const std::string&) {};
  // Called with what the tuners of pipelines do, and why they cannot, from a thread of their own.
  std::function<void(Severity, const std::string&)> on_tuning = [](Severity, const std::string&) {};
  // Called with what becomes of the retrainings of personal models, from a thread of their own.
  std::function<void(bool is_failure, const std::string&)> on_retraining = [](bool, const std::string&) {};
  // Called with what the compiler noted of a model, from any thread.
  std::function<void(const std::string&)> on_note = [](const std::string&) {};
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_SERVER_OPTIONS_H_
