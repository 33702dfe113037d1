// TaskSink: the part that chooses variants of tasks: the controller of this process.
#ifndef FOLIOT_FOUNDATION_CORE_TASK_SINK_H_
#define FOLIOT_FOUNDATION_CORE_TASK_SINK_H_

#include <memory>

#include "foundation/core/ids.h"
#include "foundation/core/task_info.h"

namespace foliot {

// Threading: any thread.
class TaskSink {
 public:
  virtual ~TaskSink() = default;

  // Requests may name it from now on. REQUIRES: no other task has its id, and the models of its
  // variants were added before.
  virtual void add_task(std::shared_ptr<const TaskInfo> task) = 0;
  // No request names it any more; those under way end first.
  virtual void remove_task(ServedTaskId task) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_TASK_SINK_H_
