#include "control/variants/instance_monitor.h"

#include <algorithm>

namespace foliot {

InstanceMonitor::InstanceMonitor(const Variant& variant, TimePoint now, const MonitorOptions& options)
    : variant_(variant), begin_(now), saturation_(variant.saturation), options_(options) {}

void InstanceMonitor::on_outcome(uint32_t rows, Duration took, TimePoint now) {
  const int64_t number = slot_number(now);
  Slot& slot = slots_[static_cast<size_t>(number % kSlots)];
  if (slot.number != number) slot = {.number = number, .rows = 0, .took = {}, .profiled = {}};
  slot.rows += rows;
  slot.took += took;
  slot.profiled += variant_.latency_of(rows);
}

InstanceMonitor::Slot InstanceMonitor::sum(TimePoint now) const {
  Slot total;
  const int64_t oldest = slot_number(now) - kSlots + 1;
  for (const Slot& slot : slots_) {
    if (slot.number < oldest) continue;
    total.rows += slot.rows;
    total.took += slot.took;
    total.profiled += slot.profiled;
  }
  return total;
}

Duration InstanceMonitor::observed(TimePoint now) const {
  const Duration slot = kWindow / kSlots;
  const int64_t oldest = std::max<int64_t>(0, slot_number(now) - kSlots + 1);
  return std::max(now - (begin_ + slot * oldest), slot);
}

double InstanceMonitor::rate(TimePoint now) { return static_cast<double>(sum(now).rows) / observed(now).to_seconds(); }

InstanceState InstanceMonitor::state(TimePoint now) {
  const Slot total = sum(now);
  const bool was_overloaded = state_ == InstanceState::kOverloaded;
  const bool was_interfered = state_ == InstanceState::kInterfered;
  const double share = was_overloaded ? options_.overloaded_until : options_.overloaded_from;
  const double slowness = was_interfered ? options_.interfered_until : options_.interfered_from;
  if (rate(now) >= share * saturation_) {
    state_ = InstanceState::kOverloaded;
  } else if (total.rows > 0 && total.took.to_seconds() >= slowness * total.profiled.to_seconds()) {
    state_ = InstanceState::kInterfered;
  } else {
    state_ = InstanceState::kActive;
  }
  return state_;
}

}  // namespace foliot
