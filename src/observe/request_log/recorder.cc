#include "observe/request_log/recorder.h"

#include <algorithm>

namespace foliot {

Recorder::Model& Recorder::model(ModelId id) {
  if (id.value() >= models_.size()) models_.resize(id.value() + 1);
  return models_[id.value()];
}

void Recorder::on_model(const ModelInfo& info) { model(info.id) = {names_.keep(info.name), info.runnables, 0}; }

void Recorder::on_task(const TaskInfo& task) { tasks_[task.id] = names_.keep(task.name); }

void Recorder::on_model_extended(const ModelInfo& info) { model(info.id).runnables = info.runnables; }

std::string_view Recorder::kind_of(DeviceId device) const {
  return device.value() < kinds_.size() ? kinds_[device.value()] : kDefaultKind;
}

uint32_t Recorder::pages_of(const Action& action) {
  const std::vector<Runnable>& runnables = model(action.model).runnables;
  const auto found = std::ranges::find(runnables, kind_of(action.device), &Runnable::kind);
  return found == runnables.end() ? 0 : found->pages;
}

void Recorder::on_label(RequestId request, std::shared_ptr<const CallLabel> label) {
  labelled_ = request;
  label_ = std::move(label);
}

void Recorder::on_request(const Request& request, TimePoint /*now*/) {
  const Model& its_model = model(request.model);
  OpenRequest& opened = open(request, its_model.name, its_model.copies == 0);
  if (const auto task = tasks_.find(request.task); task != tasks_.end()) opened.record.task = task->second;
  ++queued_;
}

void Recorder::on_run(const Request& request, const PipelineInfo* pipeline, TimePoint /*now*/) {
  open(request, names_.keep(pipeline != nullptr ? pipeline->name : ""), false).queued = false;
}

Recorder::OpenRequest& Recorder::open(const Request& request, std::string_view name, bool cold_start) {
  RequestRecord record{.id = request.id,
                       .model = name,
                       .bucket = request.bucket,
                       .arrival = request.arrival,
                       .request_class = request.request_class(),
                       .deadline = request.answer_by(),
                       .queue_length = queued_,
                       .cold_start = cold_start};
  if (!request.best_effort()) record.slo = request.answer_by() - request.arrival;
  if (label_ != nullptr && labelled_ == request.id) record.label = std::move(label_);
  return requests_.insert_or_assign(request.id, OpenRequest{std::move(record)}).first->second;
}

void Recorder::on_completion(const Completion& completion, TimePoint /*now*/) {
  const auto found = requests_.find(completion.id);
  if (found == requests_.end()) return;
  if (found->second.queued) --queued_;
  RequestRecord& record = found->second.record;
  record.refusal = completion.refusal;
  record.unmet = completion.unmet;
  record.departure = completion.finished;
  if (completion.earliest_completion != TimePoint()) record.earliest_completion = completion.earliest_completion;
  if (completion.batch_size > 0) {
    record.exec_start = completion.exec_start;
    record.input_duration = completion.input_duration;
    record.exec_duration = completion.exec_duration;
    record.output_duration = completion.output_duration;
  }
  if (record.cold_start && !record.action) find_awaited_load(completion.model, record);
  sink_->add(record);
  requests_.erase(found);
}

void Recorder::on_run_over(const Completion& completion, TimePoint now) { on_completion(completion, now); }

// Of a request that never ran: the LOAD that could have served it.
void Recorder::find_awaited_load(ModelId model, RequestRecord& record) const {
  for (auto it = placements_.lower_bound({model, DeviceId()}); it != placements_.end() && it->first.first == model;
       ++it) {
    if (it->second.loaded_at > record.arrival) record.load = it->second.load;
  }
}

void Recorder::on_action(const Action& action, TimePoint now) {
  switch (action.type) {
    case ActionType::kLoad: placements_[{action.model, action.device}] = {.load = action.id}; break;
    case ActionType::kUnload:
      model(action.model).copies -= std::min(1u, model(action.model).copies);
      placements_[{action.model, action.device}].leaving = true;
      break;
    case ActionType::kInfer:
      for (const BatchRows::Row& row : action.rows) row_sent(action, row.request);
      break;
  }
  actions_[action.id] = {.sent = now, .expected_start = timelines_.send(action, now), .queue_length = queued_};
}

void Recorder::row_sent(const Action& action, RequestId row) {
  const auto found = requests_.find(row);
  if (found == requests_.end()) return;
  RequestRecord& record = found->second.record;
  if (found->second.queued) --queued_;  // not of what goes on
  found->second.queued = false;
  record.action = action.id;
  record.device = action.device;
  record.batch_size = action.batch_size;
  const auto placement = placements_.find({action.model, action.device});
  if (placement != placements_.end() && placement->second.loaded_at > record.arrival) {
    record.load = placement->second.load;
  }
}

// Models of a lost device are gone; those that a new device brings were loaded before
// the log began.
void Recorder::on_device(const DeviceChange& change, TimePoint /*now*/) {
  if (change.joined) {
    if (change.device.value() >= kinds_.size()) kinds_.resize(change.device.value() + 1, kDefaultKind);
    kinds_[change.device.value()] = names_.keep(change.kind);
  }
  if (change.state == DeviceState::kLost) {
    std::erase_if(placements_, [&](const auto& entry) {
      if (entry.first.second != change.device) return false;
      if (entry.second.loaded_at != kNoTime && !entry.second.leaving) --model(entry.first.first).copies;
      return true;
    });
  }
  for (const ModelId resident : change.residents) {
    placements_[{resident, change.device}] = {.loaded_at = TimePoint()};
    ++model(resident).copies;
  }
}

void Recorder::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  if (action.type == ActionType::kLoad) load_over(action, outcome);
  if (action.type == ActionType::kUnload) unload_over(action, outcome);
  const auto found = actions_.find(action.id);
  if (found == actions_.end()) return;
  timelines_.end(action, outcome);
  const OpenAction& open = found->second;
  BoundedArray<RequestId, kBatchSizeMax> requests;  // of the record
  ActionRecord record{.id = action.id,
                      .type = action.type,
                      .device = action.device,
                      .model = model(action.model).name,
                      .pages = pages_of(action),
                      .sent = open.sent,
                      .outcome = now,
                      .earliest = action.earliest,
                      .latest = action.latest,
                      .expected_start = open.expected_start,
                      .expected_end = open.expected_start + action.expected,
                      .expected_duration = action.expected,
                      .start = outcome.start,
                      .end = outcome.end,
                      .duration = outcome.duration,
                      .status = outcome.status,
                      .queue_length = open.queue_length,
                      .kind = kind_of(action.device)};
  if (action.type == ActionType::kInfer) {
    record.bucket = action.bucket;
    record.batch_size = action.batch_size;
    record.lanes = action.lanes;
    record.input_duration = outcome.input_duration;
    record.output_duration = outcome.output_duration;
    if (outcome.done()) record.output_end = outcome.output_end;
    for (const BatchRows::Row& row : action.rows) requests.add(row.request);
    record.rows = requests.size();
    record.requests = {requests.begin(), requests.end()};
    // These come back into the queue, or are refused at once.
    const bool began = outcome.done() || outcome.status == OutcomeStatus::kFailed;
    const bool refused = !began && outcome.status != OutcomeStatus::kModelError;
    for (const BatchRows::Row& row : action.rows) {
      if (refused) row_returned(row.request);
    }
  }
  sink_->add(record);
  actions_.erase(found);
}

void Recorder::row_returned(RequestId row) {
  const auto found = requests_.find(row);
  if (found == requests_.end()) return;
  ++found->second.record.returns;
  found->second.queued = true;
  ++queued_;
}

void Recorder::load_over(const Action& action, const Outcome& outcome) {
  const auto placement = placements_.find({action.model, action.device});
  if (placement == placements_.end() || placement->second.load != action.id) return;
  if (outcome.done()) {
    placement->second.loaded_at = outcome.end;
    ++model(action.model).copies;
  } else {
    placements_.erase(placement);
  }
}

void Recorder::unload_over(const Action& action, const Outcome& outcome) {
  if (outcome.status == OutcomeStatus::kLost) return;  // on_device() has seen to it
  if (!outcome.done()) {
    ++model(action.model).copies;
    placements_[{action.model, action.device}].leaving = false;
    return;
  }
  // Unless it has been loaded anew since.
  const auto placement = placements_.find({action.model, action.device});
  if (placement != placements_.end() && placement->second.load < action.id) placements_.erase(placement);
}

}  // namespace foliot
