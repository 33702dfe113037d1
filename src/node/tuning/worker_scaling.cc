#include "node/tuning/worker_scaling.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

constexpr int kWorkerScalingNice = 10;
// Of child processes that wait for their time: those that are to start again, and those that leave.
constexpr Duration kLookInterval = Duration::milliseconds(500);

std::vector<std::string> names_of(const ProcessWorkerPoolOptions& processes) {
  std::vector<std::string> names;
  for (const auto& [kind, command] : processes.commands) names.push_back(kind);
  return names;
}

}  // namespace

WorkerScaling::WorkerScaling(WorkerPoolFile pools, const Cluster& cluster, WorkerLoads::WorkerOf worker_of,
                             DevicesWanted devices_wanted, OnLine on_line)
    : devices_wanted_(std::move(devices_wanted)),
      on_line_(std::move(on_line)),
      interval_(pools.autoscaler.interval),
      process_kinds_(names_of(pools.processes)),
      loads_(
          cluster, std::move(worker_of),
          [this](const std::vector<WorkerView>& views) {
            const MutexLock lock(mutex_);
            views_ = views;
            seen_at_ = monotonic_now();
          },
          monotonic_now()),
      processes_(std::move(pools.processes),
                 [this](std::string_view worker, std::string_view line) {
                   on_line_(fmt::format("{}: {}", worker, line), false);
                 }),
      kubernetes_(pools.kubernetes),
      pools_([this](std::string_view kind, uint32_t workers) {
        on_line_(fmt::format("kind '{}' is to have {} worker{}", kind, workers, workers == 1 ? "" : "s"), false);
      }),
      autoscaler_(std::move(pools.autoscaler), pools_) {
  for (const std::string& kind : process_kinds_) pools_.add(kind, processes_);
  for (const auto& [kind, stateful_set] : pools.kubernetes.stateful_sets) pools_.add(kind, kubernetes_);
}

Status WorkerScaling::start() {
  stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.is_open()) return Status::resource_exhausted("no descriptor is left for the scaling of workers");
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "workers", .nice = kWorkerScalingNice}, [this] { run(); }));
  return Status();
}

void WorkerScaling::stop() {
  if (stop_.is_open()) ::eventfd_write(stop_.number(), 1);
  thread_.join();
}

bool WorkerScaling::stopping() const {
  pollfd polled{stop_.number(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

void WorkerScaling::run() {
  TimePoint next_step = monotonic_now();
  while (!stopping()) {
    const TimePoint now = monotonic_now();
    if (now >= next_step) {
      step(now);
      next_step = now + interval_;
    }
    processes_.attend(now);
    processes_.wait(std::min(kLookInterval, next_step - now), stop_.number());
  }
  let_processes_leave();
}

void WorkerScaling::step(TimePoint now) {
  const std::vector<WorkerView> workers = views(now);
  const Status status = autoscaler_.step(workers, demand_of(devices_wanted_(), workers), now);
  if (!status.ok() && status.message() != trouble_) on_line_(status.message(), true);
  trouble_ = status.message();
}

// Without events there are no views: then nothing runs.
std::vector<WorkerView> WorkerScaling::views(TimePoint now) {
  const MutexLock lock(mutex_);
  std::vector<WorkerView> views = views_;
  if (now - seen_at_ > WorkerLoads::kInterval * 2) {
    for (WorkerView& view : views) {
      view.utilisation = 0;
      view.overloaded = view.interfered = false;
    }
  }
  return views;
}

// The pool kills those that take too long.
void WorkerScaling::let_processes_leave() {
  for (const std::string& kind : process_kinds_) FOLIOT_CHECK(processes_.set_size(kind, 0).ok());
  processes_.attend(monotonic_now());
  while (processes_.running() > 0) {
    processes_.wait(kLookInterval, -1);
    processes_.attend(monotonic_now());
  }
}

}  // namespace foliot
