// The one interface of a task's variants, and the task as clients see it.
#ifndef FOLIOT_ANSWER_TASKS_TASK_INTERFACE_H_
#define FOLIOT_ANSWER_TASKS_TASK_INTERFACE_H_

#include <memory>
#include <string>
#include <vector>

#include "answer/tasks/task_spec.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"
#include "foundation/core/task_info.h"

namespace foliot {

// Why calls of `wanted` do not fit `model`: tensors of other names, types, shapes or order, other
// buckets, or one of the two without a batch dimension. Empty: they fit.
std::string interface_difference(const ModelInfo& wanted, const ModelInfo& model);

// ModelInfo::task of the result is set. It takes as many rows in one batch as each variant does.
// REQUIRES: there are variants, by accuracy. Errors: kInvalidArgument naming file, variant and tensor.
Result<std::shared_ptr<const ModelInfo>> describe_task(const TaskSpec& spec, std::vector<TaskVariant> variants,
                                                       ServedTaskId id);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_TASKS_TASK_INTERFACE_H_
