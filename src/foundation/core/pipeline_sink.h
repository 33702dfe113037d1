// PipelineSink: the part that runs pipelines: the controller of this process.
#ifndef FOLIOT_FOUNDATION_CORE_PIPELINE_SINK_H_
#define FOLIOT_FOUNDATION_CORE_PIPELINE_SINK_H_

#include <functional>
#include <memory>

#include "foundation/core/ids.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {

// Threading: any thread.
class PipelineSink {
 public:
  virtual ~PipelineSink() = default;

  // Requests may name it from now on. REQUIRES: no other pipeline has its id, and the models
  // of its stages were added before.
  virtual void add_pipeline(std::shared_ptr<const PipelineInfo> pipeline) = 0;
  // No request names it any more; those under way end first.
  virtual void remove_pipeline(PipelineId pipeline) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_PIPELINE_SINK_H_
