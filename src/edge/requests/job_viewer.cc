#include "edge/requests/job_viewer.h"

#include <fmt/format.h>

#include <memory>

#include "answer/inference/tenant.h"

namespace foliot {

JobViewer::JobViewer(const Gate& gate, std::string_view authorization)
    : sees_all_(gate.open() || gate.permits(authorization, Scope::kAdmin)) {
  const std::shared_ptr<Tenant> tenant = gate.tenant_of(authorization);
  if (tenant != nullptr) key_ = tenant->statistics().name;
}

Result<Job> JobViewer::find(const JobService& jobs, std::string_view id) const {
  std::optional<Job> job = jobs.find(id);
  if (!job || !sees(*job)) return Status::not_found(fmt::format("there is no job '{}'", id));
  return std::move(job).value();
}

std::optional<Scope> scope_of_job_kind(std::string_view kind) {
  return kind == kRegistrationKind ? std::optional(Scope::kAdmin) : std::nullopt;
}

Status check_served(const JobService* jobs) {
  if (jobs == nullptr) return Status::unimplemented("this server keeps no jobs: start it with --jobs FOLDER");
  return jobs->readable();
}

}  // namespace foliot
