#include "observe/monitor/monitor.h"

#include <algorithm>
#include <map>

namespace foliot {
namespace {

uint64_t positive(int64_t number) { return static_cast<uint64_t>(std::max<int64_t>(0, number)); }
uint32_t narrow(const PublishedCount& count) { return static_cast<uint32_t>(positive(count.value())); }

}  // namespace

MonitorOutcomes Monitor::outcomes() const {
  MonitorOutcomes outcomes;
  std::ranges::transform(outcomes_, outcomes.begin(),
                         [](const PublishedCount& count) { return positive(count.value()); });
  return outcomes;
}

MonitorModel Monitor::view(const Model& model, const char* name) {
  MonitorModel view{.name = name,
                    .pages = narrow(model.pages),
                    .copies = narrow(model.copies),
                    .holders = model.holders.load(std::memory_order_relaxed)};
  // A request counts where it is later before it leaves where it was, so none is negative for long.
  const int64_t rows_sent = model.rows_sent.value();
  int64_t ended = 0;
  for (size_t i = 0; i < kMonitorOutcomes; ++i) {
    const int64_t count = model.outcomes[i].value();
    view.outcomes[i] = positive(count);
    ended += count;
  }
  const int64_t arrivals = model.arrivals.value();
  view.arrivals = positive(arrivals);
  view.sent = positive(rows_sent);
  view.waiting = positive(arrivals - ended - rows_sent);
  return view;
}

// Versions of a model are models of their own, of one name.
std::vector<MonitorModel> Monitor::models() const {
  std::map<std::string_view, MonitorModel> by_name;
  models_.for_each([&](uint32_t, const Model& model) {
    const char* const name = model.name.load(std::memory_order_acquire);
    if (name == nullptr) return;
    const MonitorModel one = view(model, name);
    if (one.arrivals == 0 && one.copies == 0) return;
    MonitorModel& sum = by_name[one.name];
    sum.name = one.name;
    sum.pages = one.pages;
    sum.copies += one.copies;
    sum.holders |= one.holders;
    sum.arrivals += one.arrivals;
    sum.waiting += one.waiting;
    sum.sent += one.sent;
    for (size_t i = 0; i < kMonitorOutcomes; ++i) sum.outcomes[i] += one.outcomes[i];
  });
  std::vector<MonitorModel> views;
  views.reserve(by_name.size());
  for (const auto& [name, model] : by_name) views.push_back(model);
  return views;
}

std::vector<MonitorDevice> Monitor::devices() const {
  std::vector<MonitorDevice> views;
  devices_.for_each([&](uint32_t id, const Device& device) {
    const char* const kind = device.kind.load(std::memory_order_acquire);
    if (kind == nullptr) return;
    const DeviceState state = device.state.load(std::memory_order_relaxed);
    const DeviceTrouble trouble = device.trouble.load(std::memory_order_relaxed);
    if (state == DeviceState::kLost && trouble == DeviceTrouble::kLeft) return;
    views.push_back({.id = DeviceId(id),
                     .kind = kind,
                     .state = state,
                     .trouble = trouble,
                     .since = TimePoint::from_nanoseconds(device.since.value()),
                     .lanes = narrow(device.lanes),
                     .pages_used = narrow(device.pages_used),
                     .pages = narrow(device.pages),
                     .residents = narrow(device.residents),
                     .actions = narrow(device.actions),
                     .margin = Duration::nanoseconds(device.margin.value()),
                     .lookahead = Duration::nanoseconds(device.lookahead.value())});
  });
  return views;
}

const char* Monitor::name_of(ModelId model) const {
  const Model* const known = models_.find(model.value());
  const char* const name = known == nullptr ? nullptr : known->name.load(std::memory_order_relaxed);
  return name == nullptr ? "" : name;
}

// The sets of residents grow here, so that they do not with a LOAD's outcome.
void Monitor::on_model(const ModelInfo& info) {
  Model* const known = models_.make(info.id.value());
  if (known == nullptr) return;
  known->pages.set(info.runnables.empty() ? 0 : info.runnables.front().pages);
  known->name.store(names_.keep(info.name).data(), std::memory_order_release);
  if (info.id.value() < models_end_) return;
  models_end_ = info.id.value() + 1;
  for (BitSet& residents : residents_) {
    if (residents.contains(info.id.value())) continue;
    residents.insert(info.id.value());
    residents.erase(info.id.value());
  }
}

void Monitor::on_request(const Request& request, TimePoint /*now*/) {
  if (Model* const model = models_.find(request.model.value()); model != nullptr) model->arrivals.add(1);
}

MonitorAction Monitor::event_of(const Action& action, const Sent& sent) const {
  MonitorAction event{.id = action.id,
                      .device = action.device,
                      .type = action.type,
                      .model = name_of(action.model),
                      .sent = sent.at,
                      .expected_begin = sent.expected_begin,
                      .expected = action.expected};
  if (action.type == ActionType::kInfer) {
    event.lane = static_cast<uint8_t>(action.lanes.first);
    event.lanes = static_cast<uint8_t>(action.lanes.count);
    event.batch_size = static_cast<uint16_t>(action.batch_size);
    event.rows = static_cast<uint16_t>(action.rows.size());
  }
  return event;
}

void Monitor::on_action(const Action& action, TimePoint now) {
  Sent& kept = sent(action.id) = {action.id, now, timelines_.send(action, now)};
  events_.push(event_of(action, kept));
  if (Device* const device = devices_.find(action.device.value()); device != nullptr) device->actions.add(1);
  if (action.type != ActionType::kInfer) return;
  if (Model* const model = models_.find(action.model.value()); model != nullptr) {
    model->rows_sent.add(action.rows.size());
  }
}

void Monitor::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  timelines_.end(action, outcome);
  Sent known = sent(action.id);
  if (known.id != action.id) known = {action.id, TimePoint::infinite_future(), TimePoint::infinite_future()};
  MonitorAction event = event_of(action, known);
  event.over = true;
  event.status = outcome.status;
  event.begin = outcome.start;
  event.end = outcome.end;
  events_.push(event);
  if (Device* const device = devices_.find(action.device.value()); device != nullptr) device->actions.add(-1);
  if (action.type == ActionType::kInfer) {
    Model* const model = models_.find(action.model.value());
    if (model != nullptr) model->rows_sent.add(-int64_t{action.rows.size()});
  } else if (outcome.done()) {
    set_resident(action.device, action.model, action.type == ActionType::kLoad);
  }
}

void Monitor::on_completion(const Completion& completion, TimePoint /*now*/) {
  const auto refusal = static_cast<size_t>(completion.refusal);
  outcomes_[refusal].add(1);
  if (Model* const model = models_.find(completion.model.value()); model != nullptr) model->outcomes[refusal].add(1);
  MonitorRequest event{.id = completion.id,
                       .model = name_of(completion.model),
                       .refusal = completion.refusal,
                       .cold_start = completion.cold_start,
                       .arrival = completion.arrival,
                       .deadline = completion.deadline,
                       .finished = completion.finished};
  if (completion.earliest_completion != TimePoint()) event.earliest_completion = completion.earliest_completion;
  if (completion.batch_size > 0) {
    event.batch_size = static_cast<uint16_t>(completion.batch_size);
    event.device = completion.device;
    event.action = completion.action;
    event.exec_begin = completion.exec_start;
    event.input = completion.input_duration;
    event.exec = completion.exec_duration;
    event.output = completion.output_duration;
  }
  events_.push(event);
}

void Monitor::set_resident(DeviceId device, ModelId model, bool resident) {
  if (device.value() >= residents_.size() || model.value() >= models_end_) return;
  BitSet& of_device = residents_[device.value()];
  if (of_device.contains(model.value()) == resident) return;
  if (resident) {
    of_device.insert(model.value());
  } else {
    of_device.erase(model.value());
  }
  Model& known = *models_.find(model.value());
  known.copies.add(resident ? 1 : -1);
  if (device.value() < kHoldersMax) known.holders.fetch_xor(uint64_t{1} << device.value(), std::memory_order_relaxed);
  devices_.find(device.value())->residents.set(of_device.size());
}

void Monitor::forget_residents(DeviceId device) {
  if (device.value() >= residents_.size()) return;
  residents_[device.value()].for_each([&](uint32_t model) { set_resident(device, ModelId(model), false); });
}

void Monitor::on_device(const DeviceChange& change, TimePoint now) {
  const uint32_t id = change.device.value();
  Device* const device = devices_.make(id);
  if (device == nullptr) return;
  device->state.store(change.state, std::memory_order_relaxed);
  device->trouble.store(change.trouble, std::memory_order_relaxed);
  device->since.set(now.nanoseconds());
  if (change.state == DeviceState::kLost) forget_residents(change.device);
  if (!change.joined) return;
  device->lanes.set(change.lane_count);
  device->kind.store(names_.keep(change.kind).data(), std::memory_order_release);
  if (id >= residents_.size()) residents_.resize(id + 1);
  if (models_end_ > 0) {
    residents_[id].insert(models_end_ - 1);
    residents_[id].clear();
  }
  for (const ModelId resident : change.residents) set_resident(change.device, resident, true);
}

void Monitor::on_timing(DeviceId device, Duration margin, Duration lookahead, TimePoint /*now*/) {
  Device* const known = devices_.find(device.value());
  if (known == nullptr) return;
  known->margin.set(margin.nanoseconds());
  known->lookahead.set(lookahead.nanoseconds());
}

void Monitor::on_pages(DeviceId device, uint32_t used, uint32_t total) {
  Device* const known = devices_.find(device.value());
  if (known == nullptr) return;
  known->pages_used.set(used);
  known->pages.set(total);
}

}  // namespace foliot
