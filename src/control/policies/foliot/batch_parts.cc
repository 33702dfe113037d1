#include "control/policies/foliot/batch_parts.h"

#include <algorithm>

namespace foliot::foliot_policy {
namespace {

// What a request may have to wait for; but not so short that the way of an action and back, in which the device idles,
// takes more than a sixteenth of it.
constexpr Duration kPartMin = Duration::milliseconds(1);
constexpr int kDeliveriesMin = 16;
// The outcome of a part and the action of the next one.
constexpr double kWaysBetween = 2;
constexpr Duration kPatience = Duration::seconds(1);
// Other EXECs are in context 0.
constexpr ContextIndex kContext = 1;

}  // namespace

bool BatchParts::may_divide(DeviceId device) const {
  const DeviceModel& own = cluster_.device(device);
  return own.contexts().count() > kContext;
}

Duration BatchParts::longest_part(const ExecShape& shape) const {
  const Runnable& runnable = *cluster_.runnable(shape.device, shape.model);
  double largest = 0;  // operator
  for (uint32_t i = 0; i < runnable.operator_count(); ++i) largest = std::max(largest, runnable.share({i, i + 1}));
  return std::max(longest(shape.device), cluster_.durations().exec(shape).scaled(largest));
}

std::optional<Batch> BatchParts::divide(DeviceId device, const Batch& batch) const {
  if (!may_divide(device)) return std::nullopt;
  Batch smaller = batch;
  ExecShape shape{device, batch.model, batch.bucket, batch.batch_index};
  while (shape.batch_index > 0 && longest_part(shape) > longest(device)) --shape.batch_index;
  smaller.batch_index = shape.batch_index;
  smaller.rows = std::min(batch.rows, cluster_.batch_sizes(device, batch.model)[shape.batch_index]);
  if (part(shape, 0).ends()) return std::nullopt;
  return smaller;
}

Verdict BatchParts::begin(DeviceId device, const Batch& batch, std::span<const RequestId> requests, Window window,
                          Dispatcher& dispatcher) {
  const ExecShape shape{device, batch.model, batch.bucket, batch.batch_index};
  const ExecPart first{.range = part(shape, 0), .lanes = cluster_.device(device).all_lanes(), .context = kContext};
  const uint32_t batch_size = cluster_.batch_sizes(device, batch.model)[batch.batch_index];
  const Duration exec = cluster_.durations().exec(shape);
  const Verdict verdict = dispatcher.begin(device, batch.model, batch.bucket, batch_size, first,
                                           expected(shape, first.range), requests, window);
  if (verdict != Verdict::kAccepted) return verdict;
  if (device.value() >= batches_.size()) batches_.resize(device.value() + 1);
  batches_[device.value()] = {.shape = shape,
                              .end_by = batch.latest.is_infinite() ? batch.latest : batch.latest + exec,
                              .next = first.range.last,
                              .runs = true,
                              .since = {}};
  return verdict;
}

bool BatchParts::may_resume(DeviceId device) const {
  if (unfinished(device) == nullptr || unfinished(device)->runs) return false;
  const DeviceState state = cluster_.device(device).state();
  return state == DeviceState::kUp || state == DeviceState::kDraining;
}

bool BatchParts::overdue(DeviceId device, TimePoint now) const {
  return may_resume(device) && unfinished(device)->offline() && now >= unfinished(device)->since + kPatience;
}

Duration BatchParts::left(DeviceId device) const {
  const Unfinished& own = *unfinished(device);
  const double part = cluster_.runnable(own.shape.device, own.shape.model)->share({own.next, OperatorRange::kEnd});
  return (cluster_.durations().exec(own.shape) + time_between(own.shape)).scaled(part);
}

Duration BatchParts::time_between(const ExecShape& shape) const {
  const Duration exec = cluster_.durations().exec(shape);
  return cluster_.device(shape.device)
      .delivery()
      .scaled(kWaysBetween * exec.to_seconds() / longest(shape.device).to_seconds());
}

Verdict BatchParts::resume(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
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

Verdict BatchParts::abandon(DeviceId device, TimePoint end, Dispatcher& dispatcher) {
  const Verdict verdict = dispatcher.abandon(device, kContext, Refusal::kExpired, end);
  if (verdict == Verdict::kAccepted) on_lost(device);
  return verdict;
}

void BatchParts::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  if (action.type != ActionType::kInfer || action.range.whole() || unfinished(action.device) == nullptr) return;
  if (!outcome.done() || action.range.ends()) return on_lost(action.device);
  Unfinished& own = *batches_[action.device.value()];
  own.runs = false;
  own.since = now;
}

void BatchParts::on_lost(DeviceId device) {
  if (device.value() < batches_.size()) batches_[device.value()].reset();
}

Duration BatchParts::longest(DeviceId device) const {
  return std::max(kPartMin, cluster_.device(device).delivery() * kDeliveriesMin);
}

// As many operators as fit, or one.
OperatorRange BatchParts::part(const ExecShape& shape, uint32_t first) const {
  const Runnable& runnable = *cluster_.runnable(shape.device, shape.model);
  const double share = longest(shape.device).to_seconds() / cluster_.durations().exec(shape).to_seconds();
  uint32_t last = first + 1;
  while (last < runnable.operator_count() && runnable.share({first, last + 1}) <= share) ++last;
  return {first, last < runnable.operator_count() ? last : OperatorRange::kEnd};
}

Duration BatchParts::expected(const ExecShape& shape, OperatorRange range) const {
  return cluster_.durations().exec(shape).scaled(cluster_.runnable(shape.device, shape.model)->share(range));
}

}  // namespace foliot::foliot_policy
