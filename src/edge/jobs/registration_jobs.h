// RegistrationJobs: jobs of the kind "register": a network becomes variants of a task (INFaaS, Section 3:
// register_model). In steps, each of which lasts once it is done:
//
//   1. its files are copied to a draft, and the VariantMaker makes its int8 form and the rows that measure
//   2. for each variant: the server compiles and serves it, and answers these rows, in the class `offline`
//   3. all of it is moved from the draft into the repository, the task last
//
// A registration that fails or is cancelled leaves nothing that is served: its variants are withdrawn and the draft is
// removed. One that is interrupted goes on after the last step that lasts. While a variant is measured it can be called
// by its own name.
//
// Rows count for the key that submitted the job, with its limits and its share.
#ifndef FOLIOT_EDGE_JOBS_REGISTRATION_JOBS_H_
#define FOLIOT_EDGE_JOBS_REGISTRATION_JOBS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/jobs/job_folder.h"
#include "edge/jobs/job_kind.h"
#include "edge/jobs/offline_jobs.h"
#include "edge/jobs/registration_folder.h"
#include "edge/jobs/registration_request.h"
#include "edge/jobs/variant_host.h"
#include "edge/jobs/variant_maker.h"
#include "foundation/base/status.h"

namespace foliot {

class RegistrationJobs final : public JobKind {
 public:
  // All references outlive this. `list_jobs`: all that are known.
  RegistrationJobs(const JobFolder& folder, OfflineJobs& offline, VariantMaker& maker, VariantHost& host,
                   std::function<std::vector<Job>()> list_jobs)
      : folder_(folder), offline_(offline), maker_(maker), host_(host), list_jobs_(std::move(list_jobs)) {}

  // Removes the drafts of jobs that have ended, or are unknown, and what of these an interrupted publication left. To
  // be called before the models of the repository are looked for.
  static void remove_old_drafts(const std::vector<Job>& jobs, VariantHost& host);

  std::string_view name() const override { return kRegistrationKind; }
  Status accept(Job& job) override;
  void discard(const Job& job) override;
  Status run(const Job& job, JobContext& context) override;

 private:
  Status check_claims(const RegistrationRequest& request) const;
  Result<std::string> identity_of(const RegistrationRequest& request) const;
  void give_back(const RegistrationRequest& request, const RegistrationFolder& draft);
  Status prepare(const Job& job, const RegistrationRequest& request, const RegistrationFolder& draft,
                 JobContext& context);
  Status register_variants(const Job& job, const RegistrationRequest& request, const RegistrationFolder& draft,
                           JobContext& context);
  Result<double> measure(const Job& job, const std::string& model, const RegistrationFolder& draft,
                         JobContext& context);

  const JobFolder& folder_;
  OfflineJobs& offline_;
  VariantMaker& maker_;
  VariantHost& host_;
  const std::function<std::vector<Job>()> list_jobs_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REGISTRATION_JOBS_H_
