#include "control/controller/cluster_view_observer.h"

#include <algorithm>

namespace foliot {

// ---- Events ----

ModelView* ClusterViewObserver::view_of(ModelId model) {
  return model.value() < view_.models.size() ? &view_.models[model.value()] : nullptr;
}

void ClusterViewObserver::set_queued(Open& open, bool queued) {
  if (open.queued == queued) return;
  open.queued = queued;
  view_of(open.model)->queued[static_cast<size_t>(open.request_class)] += queued ? 1 : -1;
}

void ClusterViewObserver::on_model(const ModelInfo& model) {
  const uint32_t id = model.id.value();
  if (id >= view_.models.size()) {
    view_.models.resize(id + 1);
    arrivals_before_.resize(id + 1);
  }
  view_.models[id] = {.served = true};
  arrivals_before_[id] = 0;
  measured_.insert(id);
}

void ClusterViewObserver::on_request(const Request& request, TimePoint now) {
  if (!counts(now)) return;
  ModelView* const model = view_of(request.model);
  if (model == nullptr) return;
  ++model->arrivals;
  Open open{.model = request.model, .request_class = request.request_class(), .queued = false};
  set_queued(open, true);
  open_.insert(request.id, open);
}

void ClusterViewObserver::on_action(const Action& action, TimePoint now) {
  if (!counts(now)) return;
  for (const BatchRows::Row& row : action.rows) {
    if (Open* const open = open_.find(row.request)) set_queued(*open, false);
  }
}

void ClusterViewObserver::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  measured_.insert(action.model.value());
  if (!counts(now)) return;
  if (action.type != ActionType::kInfer) return;
  if (outcome.done()) {
    const uint16_t kind = cluster_.device(action.device).kind().value();
    if (kind >= busy_.size()) busy_.resize(cluster_.kind_count());
    busy_[kind] += outcome.duration;
    return;
  }
  // They wait again; completions of those that do not follow.
  for (const BatchRows::Row& row : action.rows) {
    if (Open* const open = open_.find(row.request)) set_queued(*open, true);
  }
}

void ClusterViewObserver::on_completion(const Completion& completion, TimePoint now) {
  if (!counts(now)) return;
  Open* const open = open_.find(completion.id);
  if (open == nullptr) return;
  set_queued(*open, false);
  ModelView& model = *view_of(open->model);
  ++(completion.served() ? model.in_time : completion.refusal == Refusal::kLate ? model.late : model.refused);
  open_.erase(completion.id);
}

// ---- Views ----

void ClusterViewObserver::on_time(TimePoint now) { static_cast<void>(counts(now)); }

bool ClusterViewObserver::counts(TimePoint now) {
  if (sink_.wants_view() != wanted_) {
    wanted_ = !wanted_;
    // What is open is not followed meanwhile.
    open_.clear();
    for (uint32_t id = 0; id < view_.models.size(); ++id) {
      view_.models[id].queued = {};
      arrivals_before_[id] = view_.models[id].arrivals;
    }
    std::ranges::fill(busy_, Duration());
    last_ = now;
  }
  if (wanted_ && now - last_ >= interval_) make_view(now);
  return wanted_;
}

void ClusterViewObserver::make_view(TimePoint now) {
  view_.at = now;
  view_.interval = now - last_;
  last_ = now;
  look_at_kinds();
  look_at_models();
  sink_.on_view(view_);
}

void ClusterViewObserver::look_at_kinds() {
  const size_t count = cluster_.kind_count();
  view_.kinds.resize(count);
  busy_.resize(count);
  stands_for_.assign(count, DeviceId(static_cast<uint32_t>(cluster_.devices.size())));
  for (uint16_t kind = 0; kind < count; ++kind) {
    KindView& view = view_.kinds[kind];
    if (view.name.empty()) view.name = cluster_.kind_name(KindId(kind));
    view.devices_up = 0;
    view.pages = view.free_pages = 0;
  }
  for (const DeviceModel& device : cluster_.devices) {
    const uint16_t kind = device.kind().value();
    stands_for_[kind] = std::min(stands_for_[kind], device.id());
    if (!device.up()) continue;
    ++view_.kinds[kind].devices_up;
    view_.kinds[kind].pages += device.page_count();
    view_.kinds[kind].free_pages += device.free_pages();
  }
  for (uint16_t kind = 0; kind < count; ++kind) {
    const double time = view_.interval.to_seconds() * std::max(1U, view_.kinds[kind].devices_up);
    view_.kinds[kind].busy = std::min(1.0, busy_[kind].to_seconds() / time);
    busy_[kind] = Duration();
  }
}

void ClusterViewObserver::look_at_models() {
  for (uint32_t id = 0; id < view_.models.size(); ++id) {
    ModelView& view = view_.models[id];
    view.served = cluster_.has_model(ModelId(id));
    view.copies = view.served ? cluster_.copies[id] : 0;
    view.rate = static_cast<double>(view.arrivals - arrivals_before_[id]) / view_.interval.to_seconds();
    arrivals_before_[id] = view.arrivals;
  }
  measured_.for_each([this](uint32_t id) {
    if (cluster_.has_model(ModelId(id))) look_at_durations(ModelId(id));
  });
  measured_.clear();
}

void ClusterViewObserver::look_at_durations(ModelId model) {
  std::vector<ModelView::OnKind>& kinds = view_.models[model.value()].kinds;
  size_t used = 0;
  for (uint16_t kind = 0; kind < stands_for_.size(); ++kind) {
    const Runnable* const runnable = cluster_.runnable_of(KindId(kind), model);
    if (runnable == nullptr || stands_for_[kind].value() >= cluster_.devices.size()) continue;
    if (used == kinds.size()) kinds.emplace_back();
    ModelView::OnKind& own = kinds[used++];
    own.kind = KindId(kind);
    own.batch_sizes = runnable->batch_sizes;
    own.load = cluster_.durations().load(stands_for_[kind], model);
    own.execs.resize(own.batch_sizes.size());
    for (uint32_t i = 0; i < own.execs.size(); ++i) {
      own.execs[i] = cluster_.durations().exec({stands_for_[kind], model, BucketId(0), i});
    }
  }
  kinds.resize(used);
}

}  // namespace foliot
