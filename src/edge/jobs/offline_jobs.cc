#include "edge/jobs/offline_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "edge/jobs/offline_run.h"

namespace foliot {
namespace {

// By input; all have as many rows.
Result<std::map<std::string, InputFile>> open_inputs(const JobFolder& folder, const OfflineRequest& request) {
  std::map<std::string, InputFile> inputs;
  for (const auto& [name, path] : request.inputs) {
    Result<InputFile> file = InputFile::open(folder, path);
    if (!file.ok()) return file.status().with_context(fmt::format("input '{}'", name));
    inputs.emplace(name, std::move(file).value());
  }
  const auto& [first_name, first] = *inputs.begin();
  for (const auto& [name, input] : inputs) {
    if (input.rows() == first.rows()) continue;
    return Status::invalid_argument(
        fmt::format("input '{}' has {} rows, and '{}' has {}", name, input.rows(), first_name, first.rows()));
  }
  return inputs;
}

std::string identity_of(const std::map<std::string, InputFile>& inputs) {
  std::string identity;
  for (const auto& [name, input] : inputs)
    identity += fmt::format("{}{}={}", identity.empty() ? "" : "; ", name, input.identity());
  return identity;
}

}  // namespace

Status OfflineJobs::check_name(const OfflineRequest& request) const {
  const Catalog::EntryPtr entry = catalog_.find(request.name);
  if (entry == nullptr)
    return Status::not_found(fmt::format("unknown {} '{}'", request.is_task ? "task" : "model", request.name));
  if (request.is_task && entry->role != EntryRole::kTask) {
    return Status::invalid_argument(
        fmt::format("'{}' is no task but a {}: name it as 'model'", request.name, to_string(entry->role)));
  }
  if (entry->role == EntryRole::kPersonal) {
    return Status::invalid_argument(
        fmt::format("'{}' is a personal model, which offline jobs do not ask", request.name));
  }
  return Status();
}

// A new folder; or an empty one that is no job's, as a process leaves it that is killed before it has kept the job.
Status OfflineJobs::claim_output(const std::string& path) const {
  Status made = folder_.make_folder(path);
  if (made.code() != StatusCode::kAlreadyExists || !folder_.is_empty_folder(path)) return made;
  for (const Job& other : options_.list_jobs()) {
    if (other.kind != name() || other.has_ended()) continue;
    const Result<OfflineRequest> asked = OfflineRequest::parse(other.request);
    if (asked.ok() && folder_.is_same_folder(asked->output, path)) return made;
  }
  return Status();
}

uint64_t OfflineJobs::bytes_of_others(const Job& job) const {
  uint64_t bytes = 0;
  for (const Job& other : options_.list_jobs()) {
    if (other.id == job.id || other.owner != job.owner || other.kind != name() || other.bytes == 0) continue;
    const Result<OfflineRequest> asked = OfflineRequest::parse(other.request);
    if (asked.ok() && folder_.open_folder(asked->output).ok()) bytes += other.bytes;
  }
  return bytes;
}

Status OfflineJobs::check_room(const Job& job, uint64_t bytes) const {
  if (!options_.owner_bytes_max) return Status();
  const uint64_t others = bytes_of_others(job);
  if (others + bytes <= *options_.owner_bytes_max) return Status();
  return Status::resource_exhausted(
      fmt::format("its outputs take {} bytes, and those of other jobs of the same key {}; at most {} are allowed "
                  "(--jobs-bytes-per-key): remove outputs that are not needed",
                  bytes, others, *options_.owner_bytes_max));
}

Status OfflineJobs::claim_room(const Job& job, uint64_t bytes, JobContext& context) {
  if (job.kind != name()) return Status();  // what is measured is removed with its draft
  const MutexLock lock(room_mutex_);
  FOLIOT_RETURN_IF_ERROR(check_room(job, bytes));
  context.keep_bytes(bytes);
  return Status();
}

Status OfflineJobs::accept(Job& job) {
  FOLIOT_ASSIGN_OR_RETURN(const OfflineRequest request, OfflineRequest::parse(job.request));
  FOLIOT_RETURN_IF_ERROR(check_name(request));
  FOLIOT_ASSIGN_OR_RETURN(const auto inputs, open_inputs(folder_, request));
  // At least a byte; how many more is known with the first answer.
  FOLIOT_RETURN_IF_ERROR(check_room(job, 1));
  // Last: nothing else may fail once it is there.
  FOLIOT_RETURN_IF_ERROR(claim_output(request.output).with_context("'output'"));
  job.total = inputs.begin()->second.rows();
  job.inputs = identity_of(inputs);
  return Status();
}

void OfflineJobs::discard(const Job& job) {
  const Result<OfflineRequest> request = OfflineRequest::parse(job.request);
  if (request.ok()) folder_.remove_folder(request->output);
}

Result<std::shared_ptr<const ModelInfo>> OfflineJobs::wait_until_served(const std::string& name,
                                                                        JobContext& context) const {
  Duration wait = options_.wait_first;
  while (!context.is_over()) {
    auto model = names_.find(name, "");
    if (model.ok() || model.status().code() != StatusCode::kUnavailable) return model;
    context.set_waiting(model.status().message());
    context.wait(wait);
    wait = std::min(wait * 2, options_.wait_most);
  }
  return std::shared_ptr<const ModelInfo>();
}

Status OfflineJobs::run(const Job& job, JobContext& context) {
  FOLIOT_ASSIGN_OR_RETURN(OfflineRequest request, OfflineRequest::parse(job.request));
  FOLIOT_ASSIGN_OR_RETURN(auto inputs, open_inputs(folder_, request));
  if (identity_of(inputs) != job.inputs) {
    return Status::invalid_argument(
        fmt::format("inputs have changed since the job was submitted: they were {}, and are {}; submit it again",
                    job.inputs, identity_of(inputs)));
  }
  Result<Descriptor> output = folder_.open_folder(request.output);
  if (!output.ok()) return output.status().with_context("'output'");
  const auto find_output = [this, path = request.output] { return folder_.open_folder(path); };
  return answer(std::move(request), {std::move(inputs), std::move(output).value(), find_output}, job, context);
}

Status OfflineJobs::answer(OfflineRequest request, RowFiles files, const Job& job, JobContext& context) {
  FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<Tenant> tenant, options_.tenant_of(job.owner));
  FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<const ModelInfo> model, wait_until_served(request.name, context));
  if (model == nullptr) return Status::unavailable("the run was ended before it began");
  std::unique_ptr<AnswerInbox> inbox = borrow_inbox();
  OfflineRun run({.options = options_,
                  .inference = inference_,
                  .context = context,
                  .inbox = *inbox,
                  .model = std::move(model),
                  .tenant = std::move(tenant),
                  .inputs = std::move(files.inputs),
                  .output = std::move(files.output),
                  .claim_room = [&](uint64_t bytes) { return claim_room(job, bytes, context); },
                  .find_output = std::move(files.find_output)},
                 std::move(request), job);
  const Status status = run.run();
  give_back(std::move(inbox));
  return status;
}

std::unique_ptr<AnswerInbox> OfflineJobs::borrow_inbox() {
  const MutexLock lock(mutex_);
  // A call brings its answer and a refusal of one of its rows at most.
  if (idle_inboxes_.empty()) return std::make_unique<AnswerInbox>(2 * options_.calls_max * options_.rows_max);
  std::unique_ptr<AnswerInbox> inbox = std::move(idle_inboxes_.back());
  idle_inboxes_.pop_back();
  return inbox;
}

void OfflineJobs::give_back(std::unique_ptr<AnswerInbox> inbox) {
  const MutexLock lock(mutex_);
  idle_inboxes_.push_back(std::move(inbox));
}

}  // namespace foliot
