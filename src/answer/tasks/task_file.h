// Reads the task.toml of a folder of a repository (answer/tasks/task_spec.h has the format).
#ifndef FOLIOT_ANSWER_TASKS_TASK_FILE_H_
#define FOLIOT_ANSWER_TASKS_TASK_FILE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "answer/tasks/task_spec.h"
#include "foundation/base/status.h"

namespace foliot {

// By the names of models.
using Accuracies = std::map<std::string, double, std::less<>>;

// Checked as far as that needs no models. Errors: kInvalidArgument naming file, line and what
// is wrong, as the task's status.
TaskSpec read_task(const std::string& name, const std::filesystem::path& file);

// The same of what such a file says; `file` is what errors call it, and `read_accuracies` gets what
// its `accuracies` says.
TaskSpec parse_task(const std::string& name, const std::string& file, std::string_view text,
                    const std::function<Result<Accuracies>(const std::string& file)>& read_accuracies);

// Of a line for each model. Errors: kInvalidArgument naming file and line.
Result<Accuracies> parse_accuracies(std::string_view text, const std::string& file);

// All tasks of a repository, by name; broken ones with their status. Errors: kInternal if it
// cannot be read.
Result<std::vector<TaskSpec>> scan_tasks(const std::filesystem::path& repository);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_TASKS_TASK_FILE_H_
