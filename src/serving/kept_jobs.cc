#include "serving/kept_jobs.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "jobs/sqlite_job_store.h"
#include "platform/clock.h"
#include "platform/wall_clock.h"

namespace foliot {
namespace {

// 64 random bits.
std::string random_job_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

}  // namespace

Result<std::unique_ptr<KeptJobs>> KeptJobs::open(const KeptJobsOptions& options, VariantHost* variants,
                                                 std::function<void(const std::string&)> on_failure) {
  FOLIOT_ASSIGN_OR_RETURN(JobFolder folder, JobFolder::open(options.folder));
  std::unique_ptr<KeptJobs> jobs(new KeptJobs(std::move(folder), variants, options.variants));
  jobs->key_bytes_max_ = options.key_bytes_max;
  if (!options.webhooks.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(jobs->webhooks_, HttpWebhookSender::make(options.webhooks));
  }
  FOLIOT_ASSIGN_OR_RETURN(auto store, SqliteJobStore::open(jobs->folder_.own() / "jobs.sqlite"));
  JobRunnerOptions of_runner{.running_max = options.running_max,
                             .now = wall_now,
                             .make_id = random_job_id,
                             .on_failure = std::move(on_failure)};
  if (variants == nullptr) {
    of_runner.elsewhere.emplace(kRegistrationKind,
                                "register the network at a server of the workers' repository, `foliot serve REPOSITORY "
                                "--jobs FOLDER`; workers with --watch take it");
  }
  FOLIOT_ASSIGN_OR_RETURN(jobs->runner_, JobRunner::open(std::move(of_runner), std::move(store),
                                                         jobs->webhooks_ ? &*jobs->webhooks_ : nullptr));
  if (variants != nullptr) RegistrationJobs::remove_old_drafts(jobs->runner_->list(), *variants);
  return jobs;
}

Status KeptJobs::start(const Catalog& catalog, Inference& inference, const Frontend& frontend) {
  offline_ = std::make_unique<OfflineJobs>(
      OfflineOptions{.now = monotonic_now,
                     .tenant_of = [&frontend](const std::string& owner) { return frontend.tenant_named(owner); },
                     .list_jobs = [this] { return runner_->list(); },
                     .owner_bytes_max = key_bytes_max_},
      folder_, catalog, inference);
  runner_->add(*offline_);
  if (variants_ != nullptr) {
    registrations_ =
        std::make_unique<RegistrationJobs>(folder_, *offline_, maker_, *variants_, [this] { return runner_->list(); });
    runner_->add(*registrations_);
  }
  return runner_->start();
}

}  // namespace foliot
