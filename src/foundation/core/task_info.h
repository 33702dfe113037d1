// TaskInfo: a task (INFaaS; what the paper calls an application) as it is served: one name for
// several models, its *variants*, that answer the same question at different accuracy, speed and
// cost.
//
// A request for a task says what it needs and names no model. The controller chooses one
// variant for all rows of a call (control/controller/task_router.h). All variants have equal inputs,
// outputs and buckets, so that what a call sends fits whichever is chosen.
#ifndef FOLIOT_FOUNDATION_CORE_TASK_INFO_H_
#define FOLIOT_FOUNDATION_CORE_TASK_INFO_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"

namespace foliot {

inline constexpr uint32_t kTaskVariantsMax = 64;

struct TaskVariant {
  std::shared_ptr<const ModelInfo> model;
  double accuracy = 0;  // in [0, 1], on the task's validation set
};

struct TaskInfo {
  ServedTaskId id;
  std::string name;
  double accuracy = 0;                  // at least, of calls that ask for none; in [0, 1]
  std::optional<Duration> default_slo;  // of calls that bring no deadline
  std::vector<TaskVariant> variants;    // 1 to kTaskVariantsMax, by accuracy, ascending

  // nullptr: no variant has this model.
  const TaskVariant* find(ModelId model) const {
    for (const TaskVariant& variant : variants) {
      if (variant.model->id == model) return &variant;
    }
    return nullptr;
  }
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_TASK_INFO_H_
