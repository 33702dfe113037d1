// KeptJobs: the jobs of a server: their folder, the store in it, and what runs them.
//
// Threading: one owner; service() as JobService says.
#ifndef FOLIOT_SERVING_KEPT_JOBS_H_
#define FOLIOT_SERVING_KEPT_JOBS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/catalog.h"
#include "frontend/frontend.h"
#include "inference/inference.h"
#include "jobs/http_webhook_sender.h"
#include "jobs/job_folder.h"
#include "jobs/job_runner.h"
#include "jobs/offline_jobs.h"
#include "jobs/registration_jobs.h"
#include "jobs/variant_host.h"
#include "serving/variant_process.h"

namespace foliot {

struct KeptJobsOptions {
  std::filesystem::path folder;         // inputs, outputs and the database; empty: no jobs are kept
  std::vector<std::string> webhooks{};  // HOST or HOST:PORT that may be notified; empty: none
  uint32_t running_max = 1;             // at a time
  // Of the disk, for the outputs of all jobs of one key; without keys, of all. nullopt: no limit.
  std::optional<uint64_t> key_bytes_max{};
  VariantProcessOptions variants{};  // of registrations
};

class KeptJobs {
 public:
  // Reads what is kept. `on_failure`: a line for operators, from any thread. Errors name the folder, the database or
  // the flag.
  // `variants`: of the repository, in which what registrations left is removed. It outlives this. null: there is no
  // repository here, and no registrations.
  static Result<std::unique_ptr<KeptJobs>> open(const KeptJobsOptions& options, VariantHost* variants,
                                                std::function<void(const std::string&)> on_failure);
  ~KeptJobs() { stop(); }

  JobService& service() { return *runner_; }
  // Once: jobs are taken and run from here on. All references outlive this.
  Status start(const Catalog& catalog, Inference& inference, const Frontend& frontend);
  // What runs is interrupted, and goes on when the next server starts. Calling it again does nothing.
  void stop() {
    if (runner_ != nullptr) runner_->stop();
  }

 private:
  KeptJobs(JobFolder folder, VariantHost* variants, const VariantProcessOptions& process)
      : folder_(std::move(folder)), variants_(variants), maker_(process) {}

  JobFolder folder_;
  std::optional<uint64_t> key_bytes_max_;
  VariantHost* const variants_;  // null: no registrations
  VariantProcess maker_;
  std::optional<HttpWebhookSender> webhooks_;  // nullopt: none may be notified
  std::unique_ptr<OfflineJobs> offline_;
  std::unique_ptr<RegistrationJobs> registrations_;  // null: there are none
  std::unique_ptr<JobRunner> runner_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_KEPT_JOBS_H_
