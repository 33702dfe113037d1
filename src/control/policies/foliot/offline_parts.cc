#include "control/policies/foliot/offline_parts.h"

#include <algorithm>

namespace foliot::foliot_policy {
namespace {

// What a request may have to wait for; but not so short that the way of an action and back, in which the device idles,
// takes more than an eighth of it.
constexpr Duration kPartMin = Duration::milliseconds(1);
constexpr int kDeliveriesMin = 8;
constexpr Duration kPatience = Duration::seconds(1);
// Other EXECs are in context 0.
constexpr ContextIndex kContext = 1;

}  // namespace

std::optional<Batch> OfflineParts::divide(DeviceId device, const Batch& batch) const {
  const DeviceModel& own = cluster_.device(device);
  if (own.lane_count() > 1 || !own.contexts().may_begin(kContext, {0, 1})) return std::nullopt;
  const Runnable& runnable = *cluster_.runnable(device, batch.model);
  double largest = 0;  // operator
  for (uint32_t i = 0; i < runnable.operator_count(); ++i) largest = std::max(largest, runnable.share({i, i + 1}));
  Batch smaller = batch;
  ExecShape shape{device, batch.model, batch.bucket, batch.batch_index};
  while (shape.batch_index > 0 && cluster_.durations().exec(shape).scaled(largest) > longest(device)) {
    --shape.batch_index;
  }
  smaller.batch_index = shape.batch_index;
  smaller.rows = std::min(batch.rows, cluster_.batch_sizes(device, batch.model)[shape.batch_index]);
  if (part(shape, 0).ends()) return std::nullopt;
  return smaller;
}

Verdict OfflineParts::begin(DeviceId device, const Batch& batch, std::span<const RequestId> requests, Window window,
                            Dispatcher& dispatcher) {
  const ExecShape shape{device, batch.model, batch.bucket, batch.batch_index};
  const ExecPart first{.range = part(shape, 0), .lanes = cluster_.device(device).all_lanes(), .context = kContext};
  const uint32_t batch_size = cluster_.batch_sizes(device, batch.model)[batch.batch_index];
  const Verdict verdict = dispatcher.begin(device, batch.model, batch.bucket, batch_size, first,
                                           expected(shape, first.range), requests, window);
  if (verdict != Verdict::kAccepted) return verdict;
  if (device.value() >= batches_.size()) batches_.resize(device.value() + 1);
  batches_[device.value()] = {.shape = shape, .next = first.range.last, .runs = true, .since = {}};
  return verdict;
}

bool OfflineParts::may_resume(DeviceId device) const {
  if (batch(device) == nullptr || batch(device)->runs) return false;
  const DeviceState state = cluster_.device(device).state();
  return state == DeviceState::kUp || state == DeviceState::kDraining;
}

bool OfflineParts::overdue(DeviceId device, TimePoint now) const {
  return may_resume(device) && now >= batch(device)->since + kPatience;
}

Verdict OfflineParts::resume(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  Unfinished& own = *batches_[device.value()];
  OperatorRange range = part(own.shape, own.next);
  if (overdue(device, now)) range.last = OperatorRange::kEnd;
  const Verdict verdict = dispatcher.resume(device, kContext, range.last, cluster_.device(device).all_lanes(),
                                            expected(own.shape, range), {now, TimePoint::infinite_future()});
  if (verdict != Verdict::kAccepted) return verdict;
  own.next = range.last;
  own.runs = true;
  return verdict;
}

void OfflineParts::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  if (action.type != ActionType::kInfer || action.range.whole() || batch(action.device) == nullptr) return;
  if (!outcome.done() || action.range.ends()) return on_lost(action.device);
  Unfinished& own = *batches_[action.device.value()];
  own.runs = false;
  own.since = now;
}

void OfflineParts::on_lost(DeviceId device) {
  if (device.value() < batches_.size()) batches_[device.value()].reset();
}

Duration OfflineParts::longest(DeviceId device) const {
  return std::max(kPartMin, cluster_.device(device).delivery() * kDeliveriesMin);
}

// As many operators as fit, or one.
OperatorRange OfflineParts::part(const ExecShape& shape, uint32_t first) const {
  const Runnable& runnable = *cluster_.runnable(shape.device, shape.model);
  const double share = longest(shape.device).to_seconds() / cluster_.durations().exec(shape).to_seconds();
  uint32_t last = first + 1;
  while (last < runnable.operator_count() && runnable.share({first, last + 1}) <= share) ++last;
  return {first, last < runnable.operator_count() ? last : OperatorRange::kEnd};
}

Duration OfflineParts::expected(const ExecShape& shape, OperatorRange range) const {
  return cluster_.durations().exec(shape).scaled(cluster_.runnable(shape.device, shape.model)->share(range));
}

}  // namespace foliot::foliot_policy
