// OverlapRun: queries of some GpuModels on simulated GPUs, and what came of them under one policy.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_OVERLAP_RUN_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_OVERLAP_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "control/controller/controller.h"
#include "control/controller/overlap_predictor.h"
#include "foundation/base/random.h"
#include "load/workload/function_trace.h"
#include "virtual/experiments/gpu_models.h"
#include "virtual/world/virtual_cluster.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

struct OverlapRunOptions {
  Controller::PolicyFactory make_policy;
  const std::vector<GpuModel>& models;
  std::vector<uint32_t> deployed;  // positions of the models that are asked
  std::shared_ptr<const OverlapPredictor> predictor;
  uint32_t devices = 1;
  uint32_t lanes = kGpuLanes;
  std::optional<Duration> qos{};  // of all models; nullopt: as each model has it
  double rate = 50;               // of all models together, a Poisson process
  // In place of that: functions ask for the models in turn. Outlives the run.
  const FunctionTrace* trace = nullptr;
  Duration duration;
  uint64_t seed = 1;
};

class OverlapRun {
 public:
  struct Result {
    uint64_t queries = 0;
    uint64_t in_time = 0;
    double p99 = 0;   // of answers, as a share of their QoS targets
    double mean = 0;  // likewise
    double violations() const { return 1 - static_cast<double>(in_time) / static_cast<double>(queries); }
  };

  explicit OverlapRun(OverlapRunOptions options);

  Result run();

 private:
  static VirtualClusterOptions cluster_options(const OverlapRunOptions& options);
  void submit(uint32_t model, uint16_t bucket, TimePoint deadline);
  void ask(uint32_t model);
  // Of the Poisson process, and of the trace.
  void arrive();
  void replay();
  void on_completion(const Completion& completion);
  Duration qos(uint32_t model) const { return options_.qos.value_or(options_.models[model].qos); }

  const OverlapRunOptions options_;
  Random random_;
  VirtualLoop loop_;
  VirtualCluster cluster_;
  std::unique_ptr<TraceReplay> replay_;  // null: a Poisson process
  TimePoint begin_;
  TimePoint end_;
  uint64_t sent_ = 0;
  Result result_;
  std::vector<double> latencies_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_OVERLAP_RUN_H_
