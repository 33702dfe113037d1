// TunedPipelines: the tuners of pipelines that a server has, beside the controller of a simulated cluster: each
// pipeline that comes is tuned by a plan that is made for its models' profiles and for a rate.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_TUNED_PIPELINES_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_TUNED_PIPELINES_H_

#include <map>
#include <optional>
#include <string>

#include "planning/pipelines/pipeline_tuners.h"
#include "virtual/cluster/simulated_scaler.h"

namespace foliot {

class TunedPipelines : public SimulatedScaler {
 public:
  // `rate`: runs of each pipeline per second that its plan is made for; above 0. With one replica of each stage, in
  // whole batches, as far as that keeps up.
  explicit TunedPipelines(double rate, const TunerMethod& method = TunerOptions::by_ratio())
      : rate_(rate), tuners_(method) {}

  std::optional<Targets> step(TimePoint now) override;
  void on_pipeline(const PipelineInfo& pipeline) override;
  void on_pipeline_removed(PipelineId pipeline) override { tuners_.remove(pipeline); }
  void on_run(const Request& request, const PipelineInfo* pipeline, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;

 private:
  struct Device {
    std::string kind;
    bool up = false;
  };

  const double rate_;
  PipelineTuners tuners_;
  std::map<std::string, SavedPlan> plans_;
  std::map<DeviceId, Device> devices_;
  std::map<ModelId, ModelTarget> targets_;  // that were wanted last
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_TUNED_PIPELINES_H_
