// VariantHost: what compiles variants, serves them while they are measured, and takes them into the repository: a port
// to the server (node/repository/repository_variants.h).
#ifndef FOLIOT_EDGE_JOBS_VARIANT_HOST_H_
#define FOLIOT_EDGE_JOBS_VARIANT_HOST_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "edge/jobs/job_kind.h"
#include "foundation/base/status.h"

namespace foliot {

struct MeasuredVariant {
  std::string model;
  double accuracy = 0;
};

// What a registration adds to the repository.
struct TaskAddition {
  std::string task;
  std::vector<MeasuredVariant> variants;
  std::optional<double> accuracy;  // of a task that is not there yet, here and below
  std::string default_slo;
  std::string remark;  // a comment of task.toml; one line
};

// Threading: any.
class VariantHost {
 public:
  virtual ~VariantHost() = default;
  // A folder beside the models that is not served; a registration has one in it, named by its id.
  virtual std::filesystem::path drafts() const = 0;
  // Whether publish() could take it now, whatever the accuracies are. Errors: kAlreadyExists for names that are taken,
  // kInvalidArgument.
  virtual Status check(const TaskAddition& addition) const = 0;
  // Compiles the model of this folder and serves it under its name. Returns when it is served, or early once the
  // context is over. Errors: the compiler's and the server's.
  virtual Status try_out(const std::string& model, const std::filesystem::path& folder, const JobContext& context) = 0;
  // It is served no longer, if it is. Returns when its last call has ended.
  virtual void withdraw(const std::string& model) = 0;
  // Moves the variants' folders from the draft into the repository, and then the task: all of it or, with an error,
  // nothing. A call that ended with the process is made again. Errors: kAlreadyExists, kInvalidArgument,
  // kResourceExhausted, each naming the file.
  virtual Status publish(const std::filesystem::path& draft, const TaskAddition& addition) = 0;
  // What a publish() that ended with the process had moved is in the draft again. Nothing, if none had begun.
  virtual void take_back(const std::filesystem::path& draft) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_VARIANT_HOST_H_
