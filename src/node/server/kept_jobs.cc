#include "node/server/kept_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>
#include <utility>

#include "edge/jobs/folder_mark.h"
#include "edge/jobs/sqlite_job_store.h"
#include "foundation/base/check.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/wall_clock.h"
#include "node/files/redis_place.h"

namespace foliot {
namespace {

// 64 random bits.
std::string random_job_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

// "frontend-2 (process 71)".
std::string process_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"a front end"};
  return fmt::format("{} (process {})", host.data(), ::getpid());
}

}  // namespace

Result<std::unique_ptr<KeptJobs>> KeptJobs::open(const KeptJobsOptions& options, VariantHost* variants,
                                                 Report on_failure, Report on_event) {
  FOLIOT_CHECK(options.store.empty() || variants == nullptr);
  FOLIOT_ASSIGN_OR_RETURN(JobFolder folder, JobFolder::open(options.folder));
  std::unique_ptr<KeptJobs> jobs(new KeptJobs(std::move(folder), variants, options.variants));
  jobs->key_bytes_max_ = options.key_bytes_max;
  if (!options.webhooks.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(jobs->webhooks_, HttpWebhookSender::make(options.webhooks));
  }
  jobs->runner_options_ = {.running_max = options.running_max,
                           .now = wall_now,
                           .make_id = random_job_id,
                           .on_failure = std::move(on_failure)};
  if (variants == nullptr) {
    jobs->runner_options_.elsewhere.emplace(
        kRegistrationKind,
        "register the network at a server of the workers' repository, `foliot serve REPOSITORY --jobs FOLDER`; workers "
        "with --watch take it");
  }
  if (!options.store.empty()) {
    FOLIOT_RETURN_IF_ERROR(jobs->open_shared(options, on_event));
    return jobs;
  }
  FOLIOT_ASSIGN_OR_RETURN(auto store, SqliteJobStore::open(jobs->folder_.own() / "jobs.sqlite",
                                                           {.on_damaged = jobs->runner_options_.on_failure}));
  FOLIOT_ASSIGN_OR_RETURN(jobs->runner_, JobRunner::open(jobs->runner_options_, std::move(store), jobs->webhooks()));
  if (variants != nullptr) RegistrationJobs::remove_old_drafts(jobs->runner_->list(), *variants);
  return jobs;
}

Status KeptJobs::open_shared(const KeptJobsOptions& options, const Report& on_event) {
  Result<RedisAddress> redis = redis_place(options.store);
  if (!redis.ok()) return redis.status().with_context("--jobs-store");
  FOLIOT_ASSIGN_OR_RETURN(const std::string mark, folder_mark(folder_.own(), random_job_id()));
  runner_options_.keeps_waiting = true;
  runner_options_.why_stopped = "this front end does not keep the jobs any more; nothing was done: try again";
  shared_ = std::make_unique<SharedJobs>(SharedJobsOptions{.redis = std::move(redis).value(),
                                                           .name = process_name(),
                                                           .folder_mark = mark,
                                                           .now = monotonic_now,
                                                           .make_id = random_job_id,
                                                           .on_event = on_event,
                                                           .on_failure = runner_options_.on_failure});
  Status connected = shared_->connect();
  if (connected.code() != StatusCode::kUnavailable) return connected;
  runner_options_.on_failure(
      fmt::format("--jobs-store: {}; jobs are refused until it answers, and all else goes on", connected.message()));
  return Status();
}

Status KeptJobs::start(const Catalog& catalog, Inference& inference, const Frontend& frontend) {
  offline_ = std::make_unique<OfflineJobs>(
      OfflineOptions{.now = monotonic_now,
                     .tenant_of = [&frontend](const std::string& owner) { return frontend.tenant_named(owner); },
                     .list_jobs = [this] { return list_running(); },
                     .owner_bytes_max = key_bytes_max_},
      folder_, catalog, inference);
  if (is_shared()) {
    return shared_->start([this](std::unique_ptr<JobStore> store) -> Result<std::unique_ptr<JobRunner>> {
      FOLIOT_ASSIGN_OR_RETURN(auto runner, JobRunner::open(runner_options_, std::move(store), webhooks()));
      runner->add(*offline_);
      return runner;
    });
  }
  runner_->add(*offline_);
  if (variants_ != nullptr) {
    registrations_ =
        std::make_unique<RegistrationJobs>(folder_, *offline_, maker_, *variants_, [this] { return runner_->list(); });
    runner_->add(*registrations_);
  }
  return runner_->start();
}

}  // namespace foliot
