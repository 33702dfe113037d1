// KeptJobs: the jobs of a server: their folder, the store, and what runs them. The store is in the folder, or in Redis,
// by which several servers share jobs.
//
// Threading: one owner; service() as JobService says.
#ifndef FOLIOT_NODE_SERVER_KEPT_JOBS_H_
#define FOLIOT_NODE_SERVER_KEPT_JOBS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/inference/inference.h"
#include "edge/frontend/frontend.h"
#include "edge/jobs/http_webhook_sender.h"
#include "edge/jobs/job_folder.h"
#include "edge/jobs/job_runner.h"
#include "edge/jobs/offline_jobs.h"
#include "edge/jobs/registration_jobs.h"
#include "edge/jobs/shared_jobs.h"
#include "edge/jobs/variant_host.h"
#include "foundation/base/status.h"
#include "foundation/core/catalog.h"
#include "node/repository/variant_process.h"

namespace foliot {

struct KeptJobsOptions {
  std::filesystem::path folder;  // inputs, outputs and the database; empty: no jobs are kept
  // A server of Redis (redis_place.h) that keeps them in place of the database, for all servers that name it; empty:
  // the database does. There are no registrations then.
  std::string store{};
  std::vector<std::string> webhooks{};  // HOST or HOST:PORT that may be notified; empty: none
  uint32_t running_max = 1;             // at a time
  // Of the disk, for the outputs of all jobs of one key; without keys, of all. nullopt: no limit.
  std::optional<uint64_t> key_bytes_max{};
  VariantProcessOptions variants{};  // of registrations
};

class KeptJobs {
 public:
  using Report = std::function<void(const std::string&)>;

  // Reads what is kept. `on_failure`: a line for operators, from any thread. Errors name the folder, the database or
  // the flag.
  // `variants`: of the repository, in which what registrations left is removed. It outlives this. null: there is no
  // repository here, and no registrations. `on_event`: as on_failure, of what is not wrong. Where Redis does not
  // answer, that is reported, and jobs are kept once it does: all else must start without it. REQUIRES: there is no
  // store, or `variants` is null.
  static Result<std::unique_ptr<KeptJobs>> open(
      const KeptJobsOptions& options, VariantHost* variants, Report on_failure,
      Report on_event = [](const std::string&) {});
  ~KeptJobs() { stop(); }

  JobService& service() { return is_shared() ? static_cast<JobService&>(*shared_) : *runner_; }
  bool is_shared() const { return shared_ != nullptr; }
  // Whether this server runs the jobs. Any thread.
  bool is_keeper() const { return !is_shared() || shared_->is_keeper(); }
  // Once: jobs are taken and run from here on. All references outlive this.
  Status start(const Catalog& catalog, Inference& inference, const Frontend& frontend);
  // What runs is interrupted, and goes on when the next server starts. Calling it again does nothing.
  void stop() {
    if (runner_ != nullptr) runner_->stop();
    if (shared_ != nullptr) shared_->stop();
  }

 private:
  KeptJobs(JobFolder folder, VariantHost* variants, const VariantProcessOptions& process)
      : folder_(std::move(folder)), variants_(variants), maker_(process) {}
  Status open_shared(const KeptJobsOptions& options, const Report& on_event);
  HttpWebhookSender* webhooks() { return webhooks_ ? &*webhooks_ : nullptr; }
  // As the runner has them.
  std::vector<Job> list_running() const { return is_shared() ? shared_->list_running() : runner_->list(); }

  JobFolder folder_;
  std::optional<uint64_t> key_bytes_max_;
  VariantHost* const variants_;  // null: no registrations
  VariantProcess maker_;
  std::optional<HttpWebhookSender> webhooks_;  // nullopt: none may be notified
  std::unique_ptr<OfflineJobs> offline_;
  std::unique_ptr<RegistrationJobs> registrations_;  // null: there are none
  JobRunnerOptions runner_options_;
  std::unique_ptr<JobRunner> runner_;   // null: jobs are shared
  std::unique_ptr<SharedJobs> shared_;  // null: they are not
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_KEPT_JOBS_H_
