// ServedPipelines: shows pipelines in the catalog, and registers them with the part that runs
// them, for as long as all models of their stages are served.
//
// A pipeline is resolved when its models are ready, and again when one of them changes, as
// another pipeline with an id of its own: new calls get that one, while those under way keep
// the old one, and by it the old model. With its last call the old one leaves the sink, and
// then the old model leaves. Where a model is not served, the pipeline is not, and its reason
// names the model.
//
// Threading: any thread; changes are carried out by the thread that changes the catalog, one
// at a time. The sink is called by whichever thread ends the last call.
#ifndef FOLIOT_PIPELINE_SERVED_PIPELINES_H_
#define FOLIOT_PIPELINE_SERVED_PIPELINES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/catalog.h"
#include "core/pipeline_sink.h"
#include "pipeline/pipeline_spec.h"

namespace foliot {

class ServedPipelines {
 public:
  // The catalog outlives this. The sink is not called after this is gone.
  ServedPipelines(Catalog& catalog, PipelineSink& sink);
  ~ServedPipelines();
  ServedPipelines(const ServedPipelines&) = delete;
  ServedPipelines& operator=(const ServedPipelines&) = delete;

  // Once: shows these from now on; broken ones as unavailable. A model of the same name takes
  // the place of a pipeline.
  void serve(std::vector<PipelineSpec> pipelines);

 private:
  // Outlives this: the last call of a pipeline ends its registration.
  struct Registration {
    std::shared_mutex mutex;  // exclusive: of what changes the pointer
    PipelineSink* sink;       // guarded by it; null: this is gone
    void begin(const ModelInfo& info);
    void end(const ModelInfo& info);
  };

  void check_models(PipelineSpec& pipeline) const;
  void on_change(const std::string& name, const Catalog::EntryPtr& entry);
  // REQUIRES: mutex_ is held.
  void update(const PipelineSpec& pipeline);
  // What the catalog is to show; `shown` if that is right.
  CatalogEntry entry_of(const PipelineSpec& pipeline, const Catalog::EntryPtr& shown);
  std::shared_ptr<const ModelInfo> registered(const std::shared_ptr<const ModelInfo>& info) const;

  Catalog& catalog_;
  const std::shared_ptr<Registration> registration_ = std::make_shared<Registration>();
  // They do not change after serve().
  std::map<std::string, PipelineSpec, std::less<>> pipelines_;
  std::map<std::string, std::vector<const PipelineSpec*>, std::less<>> by_model_;
  std::mutex mutex_;      // of the thread that changes entries of pipelines
  uint32_t last_id_ = 0;  // guarded by it
  Catalog::Watch watch_;  // uses all of the above
};

}  // namespace foliot

#endif  // FOLIOT_PIPELINE_SERVED_PIPELINES_H_
