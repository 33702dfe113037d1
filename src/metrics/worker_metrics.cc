#include "metrics/worker_metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/heap.h"
#include "metrics/families.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr size_t kActionTypes = static_cast<size_t>(ActionType::kInfer) + 1;
constexpr size_t kOutcomeStatuses = static_cast<size_t>(OutcomeStatus::kLost) + 1;

prometheus::MetricFamily exec_heap_family() {
  prometheus::MetricFamily family{.name = "foliot_exec_heap_allocations_total",
                                  .help = "Objects made with operator new within EXEC, on the thread that runs it",
                                  .type = prometheus::MetricType::Counter};
  family.metric.emplace_back().counter.value = static_cast<double>(exec_heap_allocations());
  return family;
}

}  // namespace

struct WorkerMetrics::Series {
  explicit Series(Links links) {
    if (links == Links::kNone) return;
    controller =
        &gauge_family(registry, "foliot_worker_controller_connected", "1 if it is registered with its controller")
             .Add({});
    frontends = &gauge_family(registry, "foliot_worker_frontends", "Front ends that are attached").Add({});
  }
  void count(ActionType type, OutcomeStatus status);
  void move_pages(const Action& action);
  void read_memory();

  prometheus::Registry registry;

  Family<Counter>& actions =
      counter_family(registry, "foliot_worker_actions_total", "Actions that the worker was given, by how they ended");
  Family<Histogram>& durations = histogram_family(registry, "foliot_worker_action_duration_seconds",
                                                  "LOAD and EXEC on the device, of actions done");
  Family<Counter>& busy =
      counter_family(registry, "foliot_worker_executor_busy_seconds_total", "Time that an executor worked");
  Family<Gauge>& pages = gauge_family(registry, "foliot_worker_pages", "Pages of the page cache by state");
  Family<Gauge>& io_cache = gauge_family(registry, "foliot_worker_io_cache_bytes", "Bytes of the io cache by state");

  std::array<std::array<Counter*, kOutcomeStatuses>, kActionTypes>
      ended{};  // owned by the registry; null until one ended so
  Histogram& load_duration = durations.Add({{"action", "LOAD"}}, duration_boundaries(-5, 1, 5));
  Histogram& exec_duration = durations.Add({{"action", "EXEC"}}, duration_boundaries(-5, 1, 5));
  Counter& load_busy = busy.Add({{"executor", "load"}});
  Counter& input_busy = busy.Add({{"executor", "input"}});
  Counter& exec_busy = busy.Add({{"executor", "exec"}});
  Counter& output_busy = busy.Add({{"executor", "output"}});
  Gauge& outstanding = gauge_family(registry, "foliot_worker_actions_outstanding",
                                    "Actions that the worker was given and that have not ended")
                           .Add({});
  Gauge* controller = nullptr;  // null: there are no links
  Gauge* frontends = nullptr;

  std::mutex memory_mutex;
  WorkerMemory memory;  // guarded by memory_mutex

  std::atomic<uint32_t> used{0};  // pages; written by the thread that observes
  // Of the thread that observes:
  std::unordered_map<ModelId, uint32_t> model_pages;
};

WorkerMetrics::WorkerMetrics(Links links) : series_(std::make_unique<Series>(links)) {}
WorkerMetrics::~WorkerMetrics() = default;

void WorkerMetrics::set_memory(WorkerMemory memory) {
  const std::lock_guard lock(series_->memory_mutex);
  series_->memory = std::move(memory);
}

void WorkerMetrics::on_controller(bool connected) {
  if (series_->controller != nullptr) series_->controller->Set(connected);
}
void WorkerMetrics::on_frontends(uint32_t count) {
  if (series_->frontends != nullptr) series_->frontends->Set(count);
}

std::string WorkerMetrics::text() const {
  series_->read_memory();
  std::vector<prometheus::MetricFamily> families = series_->registry.Collect();
  families.push_back(exec_heap_family());
  return prometheus::TextSerializer().Serialize(families);
}

void WorkerMetrics::on_model(const ModelInfo& model) { series_->model_pages[model.id] = model.only().pages; }

void WorkerMetrics::on_action(const Action& /*action*/, TimePoint /*now*/) { series_->outstanding.Increment(); }

void WorkerMetrics::Series::count(ActionType type, OutcomeStatus status) {
  Counter*& counted = ended[static_cast<size_t>(type)][static_cast<size_t>(status)];
  if (counted == nullptr) {
    counted = &actions.Add({{"action", std::string(to_string(type))}, {"status", label_value(to_string(status))}});
  }
  counted->Increment();
}

// REQUIRES: a LOAD or an UNLOAD that was done.
void WorkerMetrics::Series::move_pages(const Action& action) {
  const uint32_t moved = model_pages[action.model];
  action.type == ActionType::kLoad ? used += moved : used -= moved;
}

void WorkerMetrics::Series::read_memory() {
  const std::lock_guard lock(memory_mutex);
  if (!memory.io_cache) return;
  const auto show = [](Family<Gauge>& owner, uint64_t in_use, uint64_t total) {
    owner.Add({{"state", "used"}}).Set(static_cast<double>(in_use));
    owner.Add({{"state", "free"}}).Set(static_cast<double>(total - in_use));
  };
  show(pages, used.load(), memory.page_count);
  const IoCacheBytes bytes = memory.io_cache();
  show(io_cache, bytes.used, bytes.all);
}

void WorkerMetrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  Series& series = *series_;
  series.outstanding.Decrement();
  series.count(action.type, outcome.status);
  if (!outcome.done()) return;
  switch (action.type) {
    case ActionType::kUnload: series.move_pages(action); break;
    case ActionType::kLoad:
      series.move_pages(action);
      series.load_duration.Observe(outcome.duration.to_seconds());
      series.load_busy.Increment(outcome.duration.to_seconds());
      break;
    case ActionType::kInfer:
      series.exec_duration.Observe(outcome.duration.to_seconds());
      series.input_busy.Increment(outcome.input_duration.to_seconds());
      series.exec_busy.Increment(outcome.duration.to_seconds());
      series.output_busy.Increment(outcome.output_duration.to_seconds());
      break;
  }
}

}  // namespace foliot
