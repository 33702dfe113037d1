// PipelineTuners: a Tuner for each pipeline that is served and has a plan, and what its replicas mean for the
// models of its stages (InferLine, section 4.5, in service).
//
// A replica is a device that holds the stage's model: the model of a stage has at least as many copies as the stage
// has replicas, on devices of the plan's kind. A model of several stages has the copies and the kinds of all. Where no
// device of a stage's kind is up, its model may run on any. There is no upper limit: what is beside the plan's
// replicas is the policy's choice, on devices that are there anyway.
//
// A plan holds for the pipeline.toml that it was made for. A pipeline whose plan is missing, damaged or for another
// one is not tuned.
//
// Threading: one owner, not the controller's thread. Time is an argument.
#ifndef FOLIOT_PLANNING_PIPELINES_PIPELINE_TUNERS_H_
#define FOLIOT_PLANNING_PIPELINES_PIPELINE_TUNERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_target.h"
#include "foundation/core/pipeline_info.h"
#include "planning/pipelines/plan_file.h"
#include "planning/pipelines/replan_tuner.h"
#include "planning/pipelines/tuner.h"

namespace foliot {

// How replicas are found: by the envelope of the plan, or by estimates, with this bound on the work of one look, which
// all pipelines share. A plan that has not what estimates take is tuned by ratio.
using TunerMethod = std::variant<TunerOptions, ReplanOptions>;

// What of a pipeline is tuned. It is no lease of its models.
struct TunedPipeline {
  struct Stage {
    std::string name;
    std::string model_name;
    ModelId model;
    StageEdges edges{};
  };
  PipelineId id;
  std::string name;
  std::string content;
  std::vector<Stage> stages;

  explicit TunedPipeline(const PipelineInfo& info);
};

class PipelineTuners {
 public:
  explicit PipelineTuners(const TunerMethod& method) : method_(method) {}

  // By the names of pipelines, in place of those before. In place of a damaged one, what was set before stays; a
  // tuner goes on whose plan has not changed, and begins anew with another plan.
  void set_plans(std::map<std::string, SavedPlan> plans);
  bool has_plans() const { return !plans_.empty(); }

  // In place of an earlier one of this name, whose tuner goes on: models have changed.
  void add(TunedPipeline pipeline);
  void remove(PipelineId pipeline);
  // A run has come. `at` may be earlier than what was there before, and counts as that.
  void arrive(PipelineId pipeline, TimePoint at);

  struct StageReplicas {
    std::string pipeline;
    std::string stage;
    uint32_t wanted = 0;
    uint32_t planned = 0;
    auto operator<=>(const StageReplicas&) const = default;
  };
  struct Step {
    std::map<ModelId, ModelTarget> targets;
    std::vector<StageReplicas> replicas;      // of pipelines that are tuned
    std::map<std::string, uint32_t> devices;  // by kind: the replicas of all stages
    // Sentences by the names of pipelines: why they are not tuned, or not by the file that is there.
    std::map<std::string, std::string> troubles;
    std::map<std::string, std::string> shortages;  // likewise by kinds that have fewer devices than that
  };
  // `up`: devices that are up, by kind.
  Step step(const std::map<std::string, uint32_t>& up, TimePoint now);

 private:
  struct Planned {
    SavedPlan plan;
    std::string damaged;   // what is wrong with a later file; empty: nothing
    std::string mismatch;  // why it is not a plan of what is served; empty: it is, or nothing is served
    std::unique_ptr<ReplicaTuner> tuner{};  // null: not tuned
    ReplanTuner* replans = nullptr;         // the tuner, if it is one that estimates
  };
  // The one that is served, made last. nullptr: none is.
  const TunedPipeline* served(const std::string& name) const;
  // Begins or ends to tune the pipeline of this name.
  void attach(const std::string& name, Planned& planned);
  void make_tuner(const TunedPipeline& pipeline, Planned& planned) const;
  void share_work();
  static std::string trouble_of(const std::string& name, const Planned& planned);
  static void add_targets(const TunedPipeline& pipeline, const Planned& planned, Step& step);

  const TunerMethod method_;
  std::map<std::string, Planned> plans_;
  std::map<PipelineId, TunedPipeline> served_;
  TimePoint last_;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_PIPELINE_TUNERS_H_
