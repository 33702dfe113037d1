// The checks of a PipelineSpec that need no models, and the order of its stages.
#ifndef FOLIOT_ANSWER_PIPELINES_SPEC_CHECK_H_
#define FOLIOT_ANSWER_PIPELINES_SPEC_CHECK_H_

#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"

namespace foliot {

// Checks the names and the graph, and puts each stage after those that it depends on; else
// they keep their order. Does not touch `spec.status`. Errors: kInvalidArgument naming the
// file and the line of what is wrong.
Status check_and_order(PipelineSpec& spec);

// By position: whether every run visits the stage, whatever the conditions say. REQUIRES:
// checked and in order.
std::vector<bool> always_visited(const PipelineSpec& spec);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PIPELINES_SPEC_CHECK_H_
