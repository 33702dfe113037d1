// resolve(): of a PipelineSpec and the models that it names, the pipeline as it is run, and
// the interface that clients see.
//
// Rows of a call are runs, so each model needs a batch dimension. A stage runs its model in
// one bucket: the one whose shapes are those of the sources, exactly. What the call feeds may
// be smaller than the bucket, as for a model, and is padded. One stage of a pipeline, at most,
// may have several buckets that fit, if the call alone feeds its variable dimensions: the call
// chooses then (PipelineStage::bucket is none), and ModelInfo::buckets are that model's.
//
// A variable dimension has its model's name for clients, or STAGE.NAME if another stage has
// that name already.
//
// Pure function.
#ifndef FOLIOT_ANSWER_PIPELINES_RESOLVE_H_
#define FOLIOT_ANSWER_PIPELINES_RESOLVE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"

namespace foliot {

using ModelsByName = std::map<std::string, std::shared_ptr<const ModelInfo>, std::less<>>;

// ModelInfo::pipeline of the result is set, and keeps the models. Of its runnables only the
// batch sizes say something: in each of them, every stage can run. REQUIRES: spec.status is ok.
// Errors: kInvalidArgument naming file and line, stage, tensor and model.
Result<std::shared_ptr<const ModelInfo>> resolve(const PipelineSpec& spec, const ModelsByName& models, PipelineId id);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PIPELINES_RESOLVE_H_
