// GroupRunner: models on a device of this machine, and operator groups of them that are run and
// measured there (Abacus, section 5.4), by the worker, executors and threads that serve.
//
// Segments of a group have windows that open at the same instant, as a policy plans them, and each
// runs on its lanes and in its context. What of a query comes before its segment is run first and
// not measured.
//
// Threading: one thread.
#ifndef FOLIOT_NODE_DEVICES_GROUP_RUNNER_H_
#define FOLIOT_NODE_DEVICES_GROUP_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "control/controller/overlap_predictor.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/core/ports.h"
#include "node/devices/compiled_model.h"
#include "node/devices/device_places.h"
#include "node/devices/local_worker.h"
#include "planning/profiling/overlap_sample.h"

namespace foliot {

class GroupRunner : private PayloadStore, private OutcomeSink {
 public:
  // Takes the memory for all of the models and loads them. Errors: LocalWorker::start()'s and
  // Engine's, naming the model; kInvalidArgument for a device of one lane.
  static Result<std::unique_ptr<GroupRunner>> create(const DevicePlace& place,
                                                     const std::vector<CompiledModel>& models);
  ~GroupRunner() override;

  uint32_t lane_count() const { return place_.lanes; }
  const ModelInfo& model(uint32_t position) const { return *models_[position].info; }
  // 1 if a batch of it cannot be cut.
  uint32_t operators(uint32_t position) const { return model(position).only().operator_count(); }

  // The model alone, in all buckets and at all widths: the median of so many runs. Errors: the
  // worker's.
  Result<ProfiledModel> profile(uint32_t position, uint32_t repeats);
  // So many times; the median and the spread. REQUIRES: at most as many parts as lanes. Errors: the
  // worker's.
  Result<OverlapSample> measure(std::span<const OverlapPredictor::Part> parts, uint32_t repeats);

 private:
  struct Model {
    std::shared_ptr<const ModelInfo> info;
    std::vector<std::vector<uint64_t>> input_bytes, output_bytes;  // [bucket][tensor], of a row
  };

  explicit GroupRunner(const DevicePlace& place) : place_(place) {}
  Status start(const std::vector<CompiledModel>& models);
  Status add(const CompiledModel& model, ModelId id);

  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override;
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override;
  void report(const Outcome& outcome) override;

  Action action(const OverlapPredictor::Part& part, LaneInterval lanes, ContextIndex context);
  // Errors: kInternal if one was not done.
  Result<std::vector<Outcome>> run(std::span<const Action> actions);
  Result<Duration> run_alone(const OverlapPredictor::Part& part, LaneInterval lanes);
  Result<Duration> run_group(std::span<const OverlapPredictor::Part> parts);

  const DevicePlace place_;
  std::vector<Model> models_;
  std::vector<std::byte> zeros_;  // all inputs
  std::vector<std::byte> sink_;   // all outputs
  std::unique_ptr<LocalWorker> worker_;
  uint64_t actions_ = 0;

  Mutex mutex_;
  Condition over_;
  std::map<ActionId, Outcome> outcomes_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_NODE_DEVICES_GROUP_RUNNER_H_
