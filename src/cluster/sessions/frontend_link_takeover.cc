// FrontendLink between two controllers: what was asked of the one that is lost, and what is asked meanwhile, waits for
// the one that takes over.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/frontend_link.h"

namespace foliot {
namespace {

template <typename Definition>
bool same(const Definition& a, const Definition& b) {
  return a.name == b.name && a.lines == b.lines;
}

}  // namespace

bool FrontendLink::may_wait(const Request& request, TimePoint now) const {
  if (request.input) return false;
  if (request.task != ServedTaskId()) return false;  // its variants are the lost controller's
  return request.best_effort() || request.deadline - now > kClusterTimeouts.takeover_min;
}

bool FrontendLink::is_named(const Request& request) const {
  if (request.task != ServedTaskId()) {
    const auto task = tasks_.entries.find(request.task);
    return task != tasks_.entries.end() && task->second.name != ServedTaskId();
  }
  if (request.pipeline != PipelineId()) {
    const auto pipeline = pipelines_.entries.find(request.pipeline);
    return pipeline != pipelines_.entries.end() && pipeline->second.name != PipelineId();
  }
  const auto model = models_.find(request.model);
  return model != models_.end() && model->second.name != kUnnamed;
}

bool FrontendLink::lacks_call(const Request& request) const {
  return request.task != ServedTaskId() && request.call_rows > 1 && request.call != request.id &&
         !calls_.contains(request.call);
}

template <typename Kind>
void FrontendLink::forget_names(AllDefined<Kind>& defined) {
  for (auto& [id, entry] : defined.entries) entry.name = typename Kind::Id();
}

void FrontendLink::await_takeover(TimePoint now) {
  takeover_until_ = now + kClusterTimeouts.takeover;
  for (auto& [id, model] : models_) model.name = kUnnamed;
  forget_names(pipelines_);
  forget_names(tasks_);
  std::vector<Slot> asked;
  for (Slot slot = 0; slot < in_flight_.size(); ++slot) {
    if (in_flight_[slot].used && !in_flight_[slot].waits) asked.push_back(slot);
  }
  // Ids grow in the order in which requests were sent.
  std::ranges::sort(asked, {}, [this](Slot slot) { return in_flight_[slot].link_id; });
  for (const Slot slot : asked) {
    InFlight& entry = in_flight_[slot];
    if (entry.cancelled || !may_wait(entry.request, now)) {
      fail(slot, Refusal::kDisconnected, "the controller was lost; try again", now);
      continue;
    }
    if (entry.completion) --unjoined_;
    entry.completion.reset();
    entry.others.clear();
    entry.in_payload.reset();
    entry.link_id = {};
    entry.waits = true;
    waiting_.push_back(slot);
  }
}

void FrontendLink::go_on_taking_over(TimePoint now) {
  const std::vector<Slot> waiting = waiting_;
  for (const Slot slot : waiting) {
    if (now <= in_flight_[slot].request.answer_by()) continue;
    fail(slot, Refusal::kDisconnected, "the controller was lost, and no other took over in time; try again", now);
  }
  if (now >= *takeover_until_) end_takeover(now);
}

// Those whose model the controller has; when it has all of them, the takeover is over.
void FrontendLink::send_waiting(TimePoint now) {
  if (controller_ == nullptr) return;
  std::vector<Slot> waiting = std::exchange(waiting_, {});
  for (const Slot slot : waiting) {
    InFlight& entry = in_flight_[slot];
    if (!is_named(entry.request)) {
      waiting_.push_back(slot);
      continue;
    }
    entry.waits = false;
    if (entry.variants != nullptr) entry.variants = tasks_.entries.at(entry.request.task).models;
    send(slot, true);
  }
  const auto all_named = [](const auto& entries, const auto& none) {
    return std::ranges::all_of(
        entries, [&](const auto& entry) { return entry.second.forgotten_at || entry.second.name != none; });
  };
  if (waiting_.empty() && all_named(models_, kUnnamed) && all_named(pipelines_.entries, PipelineId()) &&
      all_named(tasks_.entries, ServedTaskId())) {
    end_takeover(now);
  }
}

void FrontendLink::refuse_waiting(TimePoint now) {
  const std::vector<Slot> waiting = waiting_;
  for (const Slot slot : waiting) {
    fail(slot, Refusal::kDisconnected, "the controller was lost, and no other serves this yet; try again", now);
  }
}

void FrontendLink::end_takeover(TimePoint now) {
  takeover_until_.reset();
  refuse_waiting(now);
  if (controller_ != nullptr) return show_served(now);
  models_.clear();
  pipelines_.entries.clear();
  tasks_.entries.clear();
  unserved_.clear();
  await_models("the controller cannot be reached; try again");
}

FrontendLink::Model* FrontendLink::unnamed(const ModelInfo& served) {
  const auto found = std::ranges::find_if(models_, [&](const auto& entry) {
    const Model& model = entry.second;
    return model.name == kUnnamed && !model.forgotten_at && model.info->name == served.name &&
           model.info->version == served.version && model.info->content == served.content;
  });
  return found == models_.end() ? nullptr : &found->second;
}

template <typename Kind>
bool FrontendLink::rename(AllDefined<Kind>& defined, const typename Kind::Definition& served) {
  if (Kind::kRole == EntryRole::kTask) return false;
  const auto found = std::ranges::find_if(defined.entries, [&](const auto& entry) {
    return entry.second.name == typename Kind::Id() && !entry.second.forgotten_at &&
           same(entry.second.definition, served);
  });
  if (found == defined.entries.end()) return false;
  auto own_ids = std::make_shared<OwnIds>();
  for (const ModelId own : Kind::models_of(*found->second.info)) {
    const auto model = models_.find(own);
    // One that was replaced meanwhile is still known for a while, but the definition is made of its successor.
    if (model == models_.end() || model->second.name == kUnnamed || model->second.forgotten_at) return false;
    own_ids->emplace(model->second.name, own);
  }
  found->second.name = served.id;
  found->second.models = std::move(own_ids);
  return true;
}

template bool FrontendLink::rename<PipelineKind>(AllDefined<PipelineKind>&, const Pipelines::Pipeline&);
template bool FrontendLink::rename<TaskKind>(AllDefined<TaskKind>&, const Tasks::Task&);

}  // namespace foliot
