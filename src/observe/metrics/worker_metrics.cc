#include "observe/metrics/worker_metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <atomic>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/base/heap.h"
#include "foundation/base/mutex.h"
#include "observe/metrics/families.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr size_t kActionTypes = static_cast<size_t>(ActionType::kInfer) + 1;
constexpr size_t kOutcomeStatuses = static_cast<size_t>(kOutcomeStatusLast) + 1;

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
    auto& stage_inputs = counter_family(registry, "foliot_worker_stage_input_bytes_total",
                                        "Outputs of stages of pipelines that became inputs of others, by where they "
                                        "were held");
    stage_inputs_held = &stage_inputs.Add({{"from", "own_memory"}});
    stage_inputs_fetched = &stage_inputs.Add({{"from", "other_worker"}});
  }
  // Of one device.
  struct Device {
    Device(Series& series, size_t position);
    // As labels, with the device's own before them.
    std::map<std::string, std::string> labels(std::map<std::string, std::string> others = {}) const;

    const std::string name;  // its position
    std::array<std::array<Counter*, kOutcomeStatuses>, kActionTypes>
        ended{};  // owned by the registry; null until one ended so
    Histogram& load_duration;
    Histogram& exec_duration;
    Counter& load_busy;
    Counter& input_busy;
    Counter& exec_busy;
    Counter& output_busy;
    Gauge& outstanding;
    std::atomic<uint32_t> pages_used{0};  // written by the thread that observes
  };
  // REQUIRES: memory_mutex is held.
  void make_devices(size_t count) {
    while (devices.size() < count) devices.push_back(std::make_unique<Device>(*this, devices.size()));
  }
  Device& device(DeviceId id) { return *devices.at(id.value()); }
  void count(Device& device, ActionType type, OutcomeStatus status);
  void move_pages(Device& device, const Action& action);
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

  Family<Gauge>& outstanding = gauge_family(registry, "foliot_worker_actions_outstanding",
                                            "Actions that the worker was given and that have not ended");
  Gauge* controller = nullptr;  // null: there are no links
  Gauge* frontends = nullptr;
  Counter* stage_inputs_held = nullptr;
  Counter* stage_inputs_fetched = nullptr;

  // Once made there for good.
  std::vector<std::unique_ptr<Device>> devices;

  Mutex memory_mutex;
  std::vector<WorkerMemory> memory GUARDED_BY(memory_mutex);  // by device

  // Of the thread that observes:
  std::unordered_map<ModelId, uint32_t> model_pages;
};

WorkerMetrics::Series::Device::Device(Series& series, size_t position)
    : name(std::to_string(position)),
      load_duration(series.durations.Add(labels({{"action", "LOAD"}}), duration_boundaries(-5, 1, 5))),
      exec_duration(series.durations.Add(labels({{"action", "EXEC"}}), duration_boundaries(-5, 1, 5))),
      load_busy(series.busy.Add(labels({{"executor", "load"}}))),
      input_busy(series.busy.Add(labels({{"executor", "input"}}))),
      exec_busy(series.busy.Add(labels({{"executor", "exec"}}))),
      output_busy(series.busy.Add(labels({{"executor", "output"}}))),
      outstanding(series.outstanding.Add(labels())) {}

std::map<std::string, std::string> WorkerMetrics::Series::Device::labels(
    std::map<std::string, std::string> others) const {
  others.emplace("device", name);
  return others;
}

WorkerMetrics::WorkerMetrics(Links links) : series_(std::make_unique<Series>(links)) {}
WorkerMetrics::~WorkerMetrics() = default;

void WorkerMetrics::set_memory(std::vector<WorkerMemory> devices) {
  const MutexLock lock(series_->memory_mutex);
  series_->make_devices(devices.size());
  series_->memory = std::move(devices);
}

void WorkerMetrics::on_device(const DeviceChange& change, TimePoint /*now*/) {
  const MutexLock lock(series_->memory_mutex);
  series_->make_devices(change.device.value() + 1);
}

void WorkerMetrics::on_controller(bool connected) {
  if (series_->controller != nullptr) series_->controller->Set(connected);
}
void WorkerMetrics::on_frontends(uint32_t count) {
  if (series_->frontends != nullptr) series_->frontends->Set(count);
}

void WorkerMetrics::on_stage_inputs(uint64_t bytes, bool fetched) {
  Counter* counter = fetched ? series_->stage_inputs_fetched : series_->stage_inputs_held;
  if (counter != nullptr) counter->Increment(static_cast<double>(bytes));
}

std::string WorkerMetrics::text() const {
  series_->read_memory();
  std::vector<prometheus::MetricFamily> families = series_->registry.Collect();
  families.push_back(exec_heap_family());
  return prometheus::TextSerializer().Serialize(families);
}

void WorkerMetrics::on_model(const ModelInfo& model) { series_->model_pages[model.id] = model.only().pages; }

void WorkerMetrics::on_action(const Action& action, TimePoint /*now*/) {
  series_->device(action.device).outstanding.Increment();
}

void WorkerMetrics::Series::count(Device& device, ActionType type, OutcomeStatus status) {
  Counter*& counted = device.ended[static_cast<size_t>(type)][static_cast<size_t>(status)];
  if (counted == nullptr) {
    counted = &actions.Add(
        device.labels({{"action", std::string(to_string(type))}, {"status", label_value(to_string(status))}}));
  }
  counted->Increment();
}

// REQUIRES: a LOAD or an UNLOAD that was done.
void WorkerMetrics::Series::move_pages(Device& device, const Action& action) {
  const uint32_t moved = model_pages[action.model];
  action.type == ActionType::kLoad ? device.pages_used += moved : device.pages_used -= moved;
}

void WorkerMetrics::Series::read_memory() {
  const MutexLock lock(memory_mutex);
  for (size_t i = 0; i < memory.size(); ++i) {
    const Device& device = *devices[i];
    const auto show = [&device](Family<Gauge>& owner, uint64_t in_use, uint64_t total) {
      owner.Add(device.labels({{"state", "used"}})).Set(static_cast<double>(in_use));
      owner.Add(device.labels({{"state", "free"}})).Set(static_cast<double>(total - in_use));
    };
    show(pages, device.pages_used.load(), memory[i].page_count);
    const IoCacheBytes bytes = memory[i].io_cache();
    show(io_cache, bytes.used, bytes.all);
  }
}

void WorkerMetrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  Series::Device& device = series_->device(action.device);
  device.outstanding.Decrement();
  // Before it is counted: a reader of the count sees the pages, too.
  if (outcome.done() && action.type != ActionType::kInfer) series_->move_pages(device, action);
  series_->count(device, action.type, outcome.status);
  if (!outcome.done()) return;
  switch (action.type) {
    case ActionType::kUnload: break;
    case ActionType::kLoad:
      device.load_duration.Observe(outcome.duration.to_seconds());
      device.load_busy.Increment(outcome.duration.to_seconds());
      break;
    case ActionType::kInfer:
      device.exec_duration.Observe(outcome.duration.to_seconds());
      device.input_busy.Increment(outcome.input_duration.to_seconds());
      device.exec_busy.Increment(outcome.duration.to_seconds());
      device.output_busy.Increment(outcome.output_duration.to_seconds());
      break;
  }
}

}  // namespace foliot
