#include "control/policies/foliot/device_shares.h"

#include <algorithm>
#include <utility>

namespace foliot::foliot_policy {
namespace {

// Of so many requests of a model, the last ones weighing most, no more than this part may ask for too much. Of a model
// that asks for a tenth more than its share nearly all do, and of one that asks for all of its share some.
constexpr double kRequests = 16;
constexpr double kTooMuchMax = 0.75;
// The same part were each request twice as large.
constexpr double kTwiceTooMuchMax = 0.25;
// A model that was asked for within this time wants to be in memory.
constexpr Duration kLately = Duration::seconds(10);

}  // namespace

void DeviceShares::on_request(ModelId id, const Demand& demand, TimePoint now) {
  if (id.value() >= models_.size()) models_.resize(id.value() + 1);
  if (demand.kind.value() >= kinds_.size()) kinds_.resize(demand.kind.value() + 1);
  Model& model = models_[id.value()];
  if (model.has_work && model.kind != demand.kind) drop_work(kinds_[model.kind.value()], model);
  Kind& kind = kinds_[demand.kind.value()];
  kind.devices = demand.devices;
  advance(kind, now);
  note_asked(id, demand, now);
  if (!model.has_work) {
    model.end = kind.time;
    if (kind.working == 0) model.end_of_twice = kind.time;  // the others' time stood still, too
    model.weight = demand.weight;
    model.kind = demand.kind;
    model.has_work = true;
    model.over = false;
    kind.weights += model.weight;
    ++kind.working;
    kind.ends.emplace(model.end, id.value());
  }
  const double part = 1 / std::min(kRequests, static_cast<double>(++model.requests));
  model.others += (kind.weights - model.weight - model.others) * part;
  const double most = kind.time + demand.patience.to_seconds() * kind.devices / (model.others + model.weight);
  const double device_time = demand.device_time.to_seconds() / model.weight;
  const double end = model.end + device_time;
  model.over |= end > most;
  model.too_much += ((model.over ? 1 : 0) - model.too_much) / kRequests;
  model.end = std::min(end, std::max(model.end, most));

  const double end_of_twice = std::max(model.end_of_twice, kind.time) + 2 * device_time;
  model.twice_too_much += ((end_of_twice > most ? 1 : 0) - model.twice_too_much) / kRequests;
  model.end_of_twice = std::min(end_of_twice, std::max(model.end_of_twice, most));
}

void DeviceShares::note_asked(ModelId id, const Demand& demand, TimePoint now) {
  Model& model = models_[id.value()];
  model.memory = demand.memory;
  model.asked_at = now;
  if (model.asked_weight == 0) {
    model.asked_weight = demand.weight;
    model.asked_kind = demand.kind;
    kinds_[demand.kind.value()].asked += demand.weight;
    if (!std::exchange(model.in_asked, true)) asked_.emplace(now, id.value());
  }
  // Some each time, so that no decision takes long: more than come.
  for (int looked = 0; looked < 2 && asked_.front().first + kLately <= now; ++looked) {
    const auto [at, id_of_other] = asked_.front();
    Model& other = models_[id_of_other];
    asked_.pop();
    if (other.asked_at > at) {
      asked_.emplace(other.asked_at, id_of_other);
    } else {
      note_not_asked(other);
      other.in_asked = false;
    }
  }
}

// Rounding errors of weights do not leave it below zero.
void DeviceShares::note_not_asked(Model& model) {
  double& asked = kinds_[model.asked_kind.value()].asked;
  asked = std::max(0.0, asked - model.asked_weight);
  model.asked_weight = 0;
}

void DeviceShares::forget(ModelId id) {
  if (id.value() >= models_.size()) return;
  Model& model = models_[id.value()];
  if (model.asked_weight > 0) note_not_asked(model);
  if (model.has_work) drop_work(kinds_[model.kind.value()], model);
  model.too_much = 0;
  model.end_of_twice = 0;
  model.twice_too_much = 0;
  model.requests = 0;
}

bool DeviceShares::modest(ModelId id) const {
  return id.value() >= models_.size() || models_[id.value()].too_much <= kTooMuchMax;
}

bool DeviceShares::keeps_share(ModelId id) const {
  if (id.value() >= models_.size()) return true;
  const Model& model = models_[id.value()];
  if (model.twice_too_much > kTwiceTooMuchMax) return false;
  return model.asked_weight > 0 && model.memory * kinds_[model.asked_kind.value()].asked <= model.asked_weight;
}

// Of what ends by then, the rest is faster for it.
void DeviceShares::advance(Kind& kind, TimePoint now) {
  double passed = std::max(0.0, (now - kind.now).to_seconds());
  kind.now = std::max(kind.now, now);
  while (!kind.ends.empty() && kind.devices > 0) {
    const auto [end, id] = kind.ends.top();
    Model& model = models_[id];
    const bool works_here = model.has_work && &kinds_[model.kind.value()] == &kind;
    if (works_here && model.end <= end) {
      const double needed = (end - kind.time) * kind.weights / kind.devices;
      if (needed > passed) break;
      passed -= std::max(0.0, needed);
      kind.time = std::max(kind.time, end);
      drop_work(kind, model);
    }
    kind.ends.pop();
    if (works_here && model.has_work) kind.ends.emplace(model.end, id);
  }
  if (kind.working > 0) kind.time += passed * kind.devices / kind.weights;
}

// Rounding errors of weights do not add up.
void DeviceShares::drop_work(Kind& kind, Model& model) {
  model.has_work = false;
  --kind.working;
  kind.weights = kind.working == 0 ? 0 : kind.weights - model.weight;
}

}  // namespace foliot::foliot_policy
