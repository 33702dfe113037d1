// TaskSpec: what a task.toml says: the variants of a task, by the names of their models, and what
// calls need that say nothing. docs/TASKS.md has the whole format.
//
//   NAME/task.toml in a repository:
//
//   default_slo = "100ms"            # of calls that bring no deadline
//   accuracy = 0.9                   # at least, of calls that ask for none (0)
//   accuracies = "accuracies.toml"   # MODEL = ACCURACY, of variants that have none here
//
//   [[variant]]
//   model = "digits-float32"         # a model or a container of the repository
//   accuracy = 0.98                  # in [0, 1], on the task's validation set
//
//   [[variant]]
//   model = "digits-int8"
#ifndef FOLIOT_ANSWER_TASKS_TASK_SPEC_H_
#define FOLIOT_ANSWER_TASKS_TASK_SPEC_H_

#include <optional>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct VariantSpec {
  std::string model;
  double accuracy = 0;

  bool operator==(const VariantSpec&) const = default;
};

struct TaskSpec {
  std::string name;
  std::string file;     // for messages
  std::string content;  // a hash of what the file says; empty: unknown
  Status status;        // not ok: why it cannot be served
  std::optional<Duration> default_slo;
  double accuracy = 0;
  std::string accuracies_file;        // in the task's folder; empty: it names none
  std::vector<VariantSpec> variants;  // each model once, by accuracy, ascending
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_TASKS_TASK_SPEC_H_
