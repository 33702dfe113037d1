#include "edge/jobs/registration_jobs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "edge/jobs/class_accuracy.h"
#include "foundation/base/error_text.h"
#include "foundation/base/folder_listing.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// Of a run of rows that is one step of a registration.
class MeasuringContext final : public JobContext {
 public:
  MeasuringContext(JobContext& job, std::string model) : job_(job), model_(std::move(model)) {}

  bool is_over() const override { return job_.is_over(); }
  bool is_cancelled() const override { return job_.is_cancelled(); }
  void keep(uint64_t done, uint64_t total, const std::map<std::string, uint64_t>& /*variants*/) override {
    job_.set_waiting(fmt::format("measuring '{}': {} of {} rows", model_, done, total));
  }
  void keep_accuracy(const std::string& /*model*/, double /*accuracy*/) override {}
  void keep_bytes(uint64_t /*bytes*/) override {}
  void set_waiting(std::string why) override { job_.set_waiting(fmt::format("measuring '{}': {}", model_, why)); }
  void wait(Duration duration) override { job_.wait(duration); }

 private:
  JobContext& job_;
  const std::string model_;
};

uint64_t steps_of(const RegistrationRequest& request) { return request.precisions.size() + 2; }

// What is known of it before it is measured.
TaskAddition addition_of(const RegistrationRequest& request) {
  TaskAddition addition{.task = request.task,
                        .variants = {},
                        .accuracy = request.accuracy,
                        .default_slo = request.default_slo,
                        .remark = {}};
  for (std::string& model : request.models()) addition.variants.push_back({.model = std::move(model)});
  return addition;
}

Status over() { return Status::unavailable("the run was ended before all steps were done"); }

Result<std::string> file_identity(const JobFolder& folder, const std::string& path) {
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor file, folder.open_file(path));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) {
    return Status::internal(fmt::format("{}: {}", path, error_text(errno)));
  }
  return fmt::format("{}:{}:{}.{:09}", path, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

}  // namespace

void RegistrationJobs::remove_old_drafts(const std::vector<Job>& jobs, VariantHost& host) {
  std::map<std::string, const Job*> by_id;
  for (const Job& job : jobs) by_id[job.id] = &job;
  const auto drafts = list_folder(host.drafts());
  if (!drafts.ok()) return;  // There are none yet.
  for (const fs::path& draft : *drafts) {
    const auto job = by_id.find(draft.filename().string());
    if (job != by_id.end() && !job->second->has_ended()) continue;
    host.take_back(draft);
    RegistrationFolder(draft).remove();
  }
}

Result<std::string> RegistrationJobs::identity_of(const RegistrationRequest& request) const {
  Result<std::string> file = file_identity(folder_, request.file);
  if (!file.ok()) return file.status().with_context("'file'");
  Result<std::string> validation = file_identity(folder_, request.validation);
  if (!validation.ok()) return validation.status().with_context("'validation'");
  return fmt::format("file={}; validation={}", *file, *validation);
}

// No other registration under way makes a model of the same name.
Status RegistrationJobs::check_claims(const RegistrationRequest& request) const {
  const std::vector<std::string> models = request.models();
  for (const Job& other : list_jobs_()) {
    if (other.kind != kRegistrationKind || other.has_ended()) continue;
    const auto asked = RegistrationRequest::parse(other.request);
    if (!asked.ok()) continue;
    for (const std::string& model : asked->models()) {
      if (std::ranges::find(models, model) == models.end() && model != request.task) continue;
      return Status::already_exists(
          fmt::format("job '{}' makes '{}' already; cancel it, or give another 'name'", other.id, model));
    }
  }
  return Status();
}

Status RegistrationJobs::accept(Job& job) {
  FOLIOT_ASSIGN_OR_RETURN(const RegistrationRequest request, RegistrationRequest::parse(job.request));
  FOLIOT_RETURN_IF_ERROR(host_.check(addition_of(request)));
  FOLIOT_RETURN_IF_ERROR(check_claims(request));
  FOLIOT_ASSIGN_OR_RETURN(job.inputs, identity_of(request));
  job.total = steps_of(request);
  return Status();
}

void RegistrationJobs::discard(const Job& job) {
  const RegistrationFolder draft(host_.drafts() / job.id);
  const auto request = RegistrationRequest::parse(job.request);
  if (request.ok()) give_back(*request, draft);
}

// Nothing of it is served, or on the disk.
void RegistrationJobs::give_back(const RegistrationRequest& request, const RegistrationFolder& draft) {
  host_.take_back(draft.path());
  for (const std::string& model : request.models()) host_.withdraw(model);
  draft.remove();
}

Status RegistrationJobs::run(const Job& job, JobContext& context) {
  FOLIOT_ASSIGN_OR_RETURN(const RegistrationRequest request, RegistrationRequest::parse(job.request));
  const RegistrationFolder draft(host_.drafts() / job.id);
  Status status = prepare(job, request, draft, context);
  if (status.ok()) status = register_variants(job, request, draft, context);
  // It goes on from the draft.
  const bool is_interrupted = !status.ok() && context.is_over() && !context.is_cancelled();
  if (is_interrupted) return status;
  if (!status.ok()) {
    give_back(request, draft);
  } else {
    draft.remove();
  }
  return status;
}

Status RegistrationJobs::prepare(const Job& job, const RegistrationRequest& request, const RegistrationFolder& draft,
                                 JobContext& context) {
  if (job.done > 0) return Status();
  context.set_waiting("making variants");
  FOLIOT_ASSIGN_OR_RETURN(const std::string found, identity_of(request));
  if (found != job.inputs) {
    return Status::invalid_argument(
        fmt::format("files have changed since the job was submitted: they were {}, and are {}; submit it again",
                    job.inputs, found));
  }
  FOLIOT_RETURN_IF_ERROR(draft.make());
  FOLIOT_RETURN_IF_ERROR(draft.copy_source(folder_, request, context));
  FOLIOT_RETURN_IF_ERROR(maker_.make(draft, context));
  if (context.is_over()) return over();
  FOLIOT_RETURN_IF_ERROR(draft.make_variants(request));
  FOLIOT_RETURN_IF_ERROR(draft.measuring_set().status());
  context.keep(1, job.total, {});
  return Status();
}

Status RegistrationJobs::register_variants(const Job& job, const RegistrationRequest& request,
                                           const RegistrationFolder& draft, JobContext& context) {
  TaskAddition addition = addition_of(request);
  uint64_t done = 1;
  for (MeasuredVariant& variant : addition.variants) {
    const auto known = job.accuracies.find(variant.model);
    if (job.done > done && known != job.accuracies.end()) {
      variant.accuracy = known->second;
    } else {
      FOLIOT_ASSIGN_OR_RETURN(variant.accuracy, measure(job, variant.model, draft, context));
      context.keep_accuracy(variant.model, variant.accuracy);
      context.keep(done + 1, job.total, {});
    }
    ++done;
  }
  FOLIOT_ASSIGN_OR_RETURN(const MeasuringSet set, draft.measuring_set());
  addition.remark = fmt::format("{}: accuracies of {} rows of {}; {} calibrated int8", request.name,
                                set.rows - set.calibrated, set.rows, set.calibrated);
  context.set_waiting("taking the variants into the repository");
  FOLIOT_RETURN_IF_ERROR(host_.publish(draft.path(), addition));
  context.keep(job.total, job.total, {});
  return Status();
}

Result<double> RegistrationJobs::measure(const Job& job, const std::string& model, const RegistrationFolder& draft,
                                         JobContext& context) {
  const auto named = [&](const Status& status) { return status.with_context(fmt::format("variant '{}'", model)); };
  context.set_waiting(fmt::format("compiling '{}'", model));
  const Status tried = host_.try_out(model, draft.variant(model), context);
  if (!tried.ok()) return named(tried);
  if (context.is_over()) return over();
  FOLIOT_ASSIGN_OR_RETURN(MeasuringSet set, draft.measuring_set());
  FOLIOT_ASSIGN_OR_RETURN(Descriptor answers, draft.make_answers());
  OfflineRequest request;
  request.name = model;
  Job rows;
  rows.id = job.id;
  rows.owner = job.owner;
  rows.total = set.labels.rows();
  MeasuringContext measuring(context, model);
  const Status answered =
      offline_.answer(std::move(request), {std::move(set.inputs), std::move(answers)}, rows, measuring);
  if (!answered.ok()) return named(answered);
  const Result<InputFile> output = draft.answers(set.output);
  if (!output.ok()) return named(output.status());
  const Result<double> accuracy = class_accuracy(*output, set.labels);
  return accuracy.ok() ? accuracy : named(accuracy.status());
}

}  // namespace foliot
