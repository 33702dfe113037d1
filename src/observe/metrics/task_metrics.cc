#include "observe/metrics/task_metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/metrics/families.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;

constexpr size_t kTaskOutcomes = static_cast<size_t>(kRefusalLast) + 1;

}  // namespace

struct TaskMetrics::Series {
  // Of one variant of a task; owned by the registry, null until something happens.
  struct Counts {
    std::array<Counter*, kTaskOutcomes> requests{};
    Counter* dollars = nullptr;
  };

  prometheus::Labels labels(ServedTaskId task, ModelId model) {
    return {{"task", tasks[task]}, {"variant", models[model]}};
  }

  DevicePrices prices;
  prometheus::Registry registry;
  Family<Counter>& requests =
      counter_family(registry, "foliot_task_requests_total",
                     "Requests (rows) of tasks by the variant that was chosen and how they ended");
  Family<Counter>& dollars = counter_family(registry, "foliot_task_dollars_total",
                                            "What the devices' time for rows of tasks cost, by variant");
  std::unordered_map<ModelId, std::string> models;
  std::unordered_map<ServedTaskId, std::string> tasks;
  std::map<std::pair<ServedTaskId, ModelId>, Counts> counts;  // of tasks that are served
  std::vector<double> dollars_per_second;                     // by DeviceId
  std::unordered_map<RequestId, ServedTaskId> open;           // requests of tasks without a completion
};

TaskMetrics::TaskMetrics(DevicePrices prices) : series_(std::make_unique<Series>()) {
  series_->prices = std::move(prices);
}
TaskMetrics::~TaskMetrics() = default;

std::string TaskMetrics::text() const { return prometheus::TextSerializer().Serialize(series_->registry.Collect()); }

void TaskMetrics::on_model(const ModelInfo& model) { series_->models[model.id] = model.name; }

void TaskMetrics::on_task(const TaskInfo& task) { series_->tasks[task.id] = task.name; }

void TaskMetrics::on_task_removed(ServedTaskId task) {
  series_->tasks.erase(task);
  std::erase_if(series_->counts, [&](const auto& entry) { return entry.first.first == task; });
}

void TaskMetrics::on_device(const DeviceChange& change, TimePoint /*now*/) {
  if (!change.joined) return;
  const size_t device = change.device.value();
  if (device >= series_->dollars_per_second.size()) series_->dollars_per_second.resize(device + 1);
  series_->dollars_per_second[device] = series_->prices.dollars_per_second(change.kind);
}

void TaskMetrics::on_request(const Request& request, TimePoint /*now*/) {
  if (request.task != ServedTaskId()) series_->open[request.id] = request.task;
}

void TaskMetrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  if (action.type != ActionType::kInfer || !outcome.done() || series_->open.empty()) return;
  const size_t device = action.device.value();
  const double price = device < series_->dollars_per_second.size() ? series_->dollars_per_second[device] : 0;
  for (const BatchRows::Row& row : action.rows) {
    const auto found = series_->open.find(row.request);
    if (found == series_->open.end()) continue;
    Counter*& counted = series_->counts[{found->second, action.model}].dollars;
    if (counted == nullptr) counted = &series_->dollars.Add(series_->labels(found->second, action.model));
    counted->Increment(outcome.duration.to_seconds() * price / action.rows.size());
  }
}

void TaskMetrics::on_completion(const Completion& completion, TimePoint /*now*/) {
  if (completion.task == ServedTaskId()) return;
  series_->open.erase(completion.id);
  Counter*& counted =
      series_->counts[{completion.task, completion.model}].requests[static_cast<size_t>(completion.refusal)];
  if (counted == nullptr) {
    auto labels = series_->labels(completion.task, completion.model);
    labels["outcome"] = completion.served() ? "served" : std::string(to_string(completion.refusal));
    counted = &series_->requests.Add(labels);
  }
  counted->Increment();
}

}  // namespace foliot
