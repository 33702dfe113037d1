#include "control/fleet/scalers/worker_autoscaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

uint32_t count_of(const std::vector<WorkerView>& workers, const std::string& kind) {
  return static_cast<uint32_t>(std::ranges::count(workers, kind, &WorkerView::kind));
}

}  // namespace

WorkerAutoscaler::WorkerAutoscaler(WorkerAutoscalerOptions options, WorkerPool& pool)
    : options_(std::move(options)), pool_(pool) {}

DeviceDemand demand_of(const std::map<std::string, uint32_t>& wanted, const std::vector<WorkerView>& workers) {
  DeviceDemand demand;
  for (const auto& [kind, count] : wanted) {
    uint32_t devices = 0;
    uint32_t largest = 0;
    for (const WorkerView& worker : workers) {
      if (worker.kind != kind) continue;
      devices += worker.devices;
      largest = std::max(largest, worker.devices);
    }
    if (devices < count) demand.lacking[kind] = (count - devices - 1) / std::max(largest, 1u) + 1;
    if (devices < count + largest) demand.kept.insert(kind);
  }
  return demand;
}

Status WorkerAutoscaler::step(const std::vector<WorkerView>& workers, const DeviceDemand& demand, TimePoint now) {
  std::erase_if(draining_,
                [&](const std::string& name) { return !std::ranges::count(workers, name, &WorkerView::name); });
  std::erase_if(starting_, [&](const auto& entry) {
    return count_of(workers, entry.first) >= entry.second.workers || now - entry.second.at >= options_.start_up * 3;
  });
  Status first;
  const auto note = [&](const Status& status) {
    if (first.ok()) first = status;
  };
  const std::map<std::string, uint32_t> growing = kinds_to_grow(workers, demand.lacking);
  for (const auto& [kind, limits] : options_.kinds) {
    if (const auto more = growing.find(kind); more != growing.end() || count_of(workers, kind) < limits.least) {
      if (demand.lacking.contains(kind)) keep(kind, workers);
      note(grow(kind, more == growing.end() ? 1 : more->second, workers, now));
    } else if (demand.kept.contains(kind)) {
      keep(kind, workers);
    } else {
      note(shrink(kind, workers, now));
    }
  }
  note(let_go(workers));
  return first;
}

std::map<std::string, uint32_t> WorkerAutoscaler::kinds_to_grow(const std::vector<WorkerView>& workers,
                                                                const std::map<std::string, uint32_t>& lacking) const {
  std::map<std::string, uint32_t> growing = lacking;
  std::map<std::string, uint32_t> overloaded;
  uint32_t overloaded_workers = 0;
  for (const auto& [kind, limits] : options_.kinds) {
    bool any = false, busy = true, interfered = true;
    for (const WorkerView& worker : workers) {
      if (worker.kind != kind || draining_.contains(worker.name)) continue;
      any = true;
      busy = busy && worker.utilisation > options_.utilisation_most;
      interfered = interfered && worker.interfered;
      if (!worker.overloaded) continue;
      ++overloaded[kind];
      ++overloaded_workers;
    }
    if (any && (busy || interfered)) growing.emplace(kind, 1);
  }
  if (overloaded_workers > options_.overloaded_share * static_cast<double>(workers.size())) {
    growing.emplace(std::ranges::max_element(overloaded, {}, [](const auto& entry) { return entry.second; })->first, 1);
  }
  return growing;
}

Status WorkerAutoscaler::grow(const std::string& kind, uint32_t more, const std::vector<WorkerView>& workers,
                              TimePoint now) {
  idle_since_.erase(kind);
  // One that drains is taken back before another is started.
  for (const WorkerView& worker : workers) {
    if (worker.kind == kind && draining_.erase(worker.name) > 0) return Status();
  }
  const WorkerKind& limits = options_.kinds.at(kind);
  const uint32_t count = count_of(workers, kind);
  const auto starting = starting_.find(kind);
  const uint32_t expected = starting == starting_.end() ? count : starting->second.workers;
  uint32_t workers_then = std::max(expected, std::min(count + more, limits.most));
  if (starting != starting_.end() && workers_then == expected) return Status();
  if (count >= limits.most) {
    return Status::resource_exhausted(
        fmt::format("kind '{}' needs another worker, and has its maximum of {}; raise it", kind, limits.most));
  }
  const MicroDollarsPerSecond price = price_of(workers) + limits.price;
  while (workers_then > expected && price_of(workers) + (workers_then - expected) * limits.price > options_.budget) {
    --workers_then;
  }
  if (workers_then == expected) {
    return Status::resource_exhausted(fmt::format(
        "kind '{}' needs another worker; the workers would cost {} micro-dollars per second, and the budget is "
        "{}; raise it",
        kind, price, options_.budget));
  }
  FOLIOT_RETURN_IF_ERROR(grow_to(kind, workers_then).with_context(fmt::format("workers of kind '{}'", kind)));
  starting_[kind] = {now, workers_then};
  return Status();
}

// Those that the pool is to have and that are not there it brings by itself: never asks for fewer.
Status WorkerAutoscaler::grow_to(const std::string& kind, uint32_t workers) {
  FOLIOT_ASSIGN_OR_RETURN(const uint32_t size, pool_.size(kind));
  return size >= workers ? Status() : pool_.set_size(kind, workers);
}

// Of those that are there and those that start.
MicroDollarsPerSecond WorkerAutoscaler::price_of(const std::vector<WorkerView>& workers) const {
  MicroDollarsPerSecond price = 0;
  for (const auto& [kind, limits] : options_.kinds) {
    const auto starting = starting_.find(kind);
    const uint32_t count = count_of(workers, kind);
    price += limits.price * (starting == starting_.end() ? count : std::max(count, starting->second.workers));
  }
  return price;
}

// Those that drain stay.
void WorkerAutoscaler::keep(const std::string& kind, const std::vector<WorkerView>& workers) {
  idle_since_.erase(kind);
  for (const WorkerView& worker : workers) {
    if (worker.kind == kind) draining_.erase(worker.name);
  }
}

Status WorkerAutoscaler::shrink(const std::string& kind, const std::vector<WorkerView>& workers, TimePoint now) {
  double used = 0;
  uint32_t count = 0;
  bool draining = false;
  for (const WorkerView& worker : workers) {
    if (worker.kind != kind) continue;
    draining = draining || draining_.contains(worker.name);
    used += worker.utilisation;
    ++count;
  }
  const double others_take = 0.8 * options_.utilisation_most * (static_cast<double>(count) - 1);
  if (draining || starting_.contains(kind) || count <= options_.kinds.at(kind).least || count == 0 ||
      used > others_take) {
    idle_since_.erase(kind);
    return Status();
  }
  const TimePoint since = idle_since_.emplace(kind, now).first->second;
  if (now - since < options_.start_up) return Status();
  idle_since_.erase(kind);
  if (const auto leaving = pool_.next_to_leave(kind)) draining_.insert(*leaving);
  return Status();
}

Status WorkerAutoscaler::let_go(const std::vector<WorkerView>& workers) {
  for (const WorkerView& worker : workers) {
    if (!worker.may_leave || !draining_.contains(worker.name)) continue;
    if (pool_.next_to_leave(worker.kind) != worker.name) continue;
    FOLIOT_RETURN_IF_ERROR(shrink_by_one(worker.kind).with_context(fmt::format("workers of kind '{}'", worker.kind)));
  }
  return Status();
}

Status WorkerAutoscaler::shrink_by_one(const std::string& kind) {
  FOLIOT_ASSIGN_OR_RETURN(const uint32_t size, pool_.size(kind));
  return size == 0 ? Status() : pool_.set_size(kind, size - 1);
}

}  // namespace foliot
