// OfflineRequest: what a job of the kind "offline" is asked, as JSON:
//
//   {"task": "digits", "inputs": {"x": "rows.npy"}, "output": "answers", "accuracy": 0.9}
//
// "task" or "model" is a served name; paths are relative to the folder of jobs.
#ifndef FOLIOT_EDGE_JOBS_OFFLINE_REQUEST_H_
#define FOLIOT_EDGE_JOBS_OFFLINE_REQUEST_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

struct OfflineRequest {
  std::string name;                           // of a task, or of a model
  bool is_task = false;                       // by what it was called
  std::map<std::string, std::string> inputs;  // paths by input
  std::string output;                         // path of a folder that is not there yet
  std::optional<double> accuracy;             // of a task: at least
  std::optional<double> cost;                 // of a task: at most, of one row, in dollars

  // Errors: kInvalidArgument naming the member, its value and what is allowed.
  static Result<OfflineRequest> parse(std::string_view json);
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_OFFLINE_REQUEST_H_
