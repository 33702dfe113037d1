// PipelineRegistry: the pipelines that a cluster serves (decision 0121). Workers offer the
// pipeline.toml files of their repositories. A pipeline is served while all workers that offer
// one of its name offer the same, and the models of its stages are served; whenever one of these
// changes it is resolved again, as another pipeline with an id of its own, which is never used
// again.
//
// A pipeline that retires is no longer shown to clients, and runs for those that asked before
// they were notified; then it leaves the controller.
//
// A state machine without time or links of its own: calls are what has happened, and decide()
// and take_retired() return what is to be done.
#ifndef FOLIOT_CLUSTER_PIPELINE_REGISTRY_H_
#define FOLIOT_CLUSTER_PIPELINE_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/model_registry.h"
#include "core/pipeline_info.h"
#include "pipeline/pipeline_spec.h"
#include "pipeline/resolve.h"
#include "transport/message.h"

namespace foliot {

// A pipeline.toml as messages carry it, and back.
std::vector<std::string> lines_of(std::string_view text);
PipelineSpec spec_of(const Pipelines::Pipeline& pipeline);

class PipelineRegistry {
 public:
  using WorkerId = ModelRegistry::WorkerId;

  // All that the worker offers from now on.
  void offer(WorkerId worker, const Pipelines& pipelines);
  void lose(WorkerId worker);
  // Offers have changed since decide().
  bool changed() const { return changed_; }

  struct Decisions {
    std::vector<std::shared_ptr<const PipelineInfo>> added;  // to the controller
    std::vector<std::string> served;                         // names: others than before
    std::map<std::string, std::string> unserved;             // with the reason, which is new
    bool news = false;                                       // for clients
  };
  // `models`: those that are served.
  Decisions decide(const ModelsByName& models, TimePoint now);
  // Those that leave the controller now.
  std::vector<PipelineId> take_retired(TimePoint now);
  // When take_retired() may return some though nothing happens before.
  TimePoint next() const;

  Pipelines served() const;
  // By name, with the reason.
  const std::map<std::string, std::string>& unserved() const { return unserved_; }

  // Whether a request for a pipeline that has this model is not answered.
  bool uses(ModelId model) const;
  // Requests for a pipeline, and their answers. Returns it; nullptr: there is none.
  const PipelineInfo* on_request(PipelineId pipeline);
  const PipelineInfo* on_answer(PipelineId pipeline);

 private:
  struct Offer {
    Pipelines::Pipeline file;
    PipelineSpec spec;
  };
  struct Entry {
    std::string name;
    std::vector<std::string> lines;
    std::string content;                    // of the file
    std::shared_ptr<const ModelInfo> info;  // resolved
    uint64_t in_flight = 0;
    bool retiring = false;
    TimePoint since;  // retiring
  };
  // The one that all workers that offer it agree on; nullptr and the reason: they do not.
  const Offer* agreed(const std::string& name, std::string& reason) const;
  std::string serve(const std::string& name, const ModelsByName& models, Decisions& decisions, TimePoint now);
  void retire(const std::string& name, Decisions& decisions, TimePoint now);
  const PipelineInfo* count(PipelineId pipeline, int64_t change);

  std::map<WorkerId, std::map<std::string, Offer>> offers_;  // by name
  std::map<PipelineId, Entry> entries_;
  std::map<std::string, PipelineId> served_;     // by name
  std::map<std::string, std::string> unserved_;  // reasons by name
  uint32_t last_id_ = 0;
  bool changed_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_PIPELINE_REGISTRY_H_
