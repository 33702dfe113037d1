#include "observe/metrics/controller_metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/metrics/families.h"
#include "observe/metrics/gone_models.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr size_t kRefusals = static_cast<size_t>(kRefusalLast) + 1;
constexpr size_t kTypes = static_cast<size_t>(ActionType::kInfer) + 1;
constexpr size_t kStatuses = static_cast<size_t>(kOutcomeStatusLast) + 1;

}  // namespace

struct ControllerMetrics::Series {
  // Owned by the registry; null until something happens.
  struct Model {
    std::string name;
    Counter* loads = nullptr;
    Counter* unloads = nullptr;
    Counter* batches = nullptr;
    Counter* batch_rows = nullptr;
  };
  struct Device {
    bool has_left = false;  // then it has no gauges
    Gauge* up = nullptr;
    Gauge* margin = nullptr;
    Gauge* lookahead = nullptr;
    Gauge* pages_used = nullptr;
    Gauge* pages_free = nullptr;
    std::array<std::array<Counter*, kStatuses>, kTypes> actions{};
  };

  Series() {
    for (size_t i = 0; i < kRefusals; ++i) {
      const auto refusal = static_cast<Refusal>(i);
      const std::string outcome(refusal == Refusal::kNone ? "served" : to_string(refusal));
      completions[i] = &completed.Add({{"outcome", outcome}});
    }
    Family<Gauge>& waiting =
        gauge_family(registry, "foliot_queued_requests", "Requests (rows) that wait for an action, by class");
    for (size_t i = 0; i < kRequestClasses; ++i) {
      queued[i] = &waiting.Add({{"class", std::string(to_string(static_cast<RequestClass>(i)))}});
    }
  }

  Device& device(DeviceId id) {
    if (id.value() >= devices.size()) devices.resize(id.value() + 1);
    return devices[id.value()];
  }
  Model* find(ModelId id) {
    const auto found = models.find(id);
    return found == models.end() ? nullptr : &found->second;
  }
  void count(const Action& action, OutcomeStatus status);
  void remove_gauges(Device& device);
  void forget(const std::string& model);

  prometheus::Registry registry;
  Family<Counter>& loads = counter_family(registry, "foliot_loads_total", "LOAD actions done");
  Family<Counter>& unloads = counter_family(registry, "foliot_unloads_total", "UNLOAD actions done");
  Family<Counter>& actions = counter_family(registry, "foliot_actions_total", "Actions of a device by how they ended");
  Family<Counter>& batches = counter_family(registry, "foliot_batches_total", "INFER actions done");
  Family<Counter>& batch_rows =
      counter_family(registry, "foliot_batch_rows_total", "Rows of INFER actions done, by model");
  Histogram& batch_size =
      histogram_family(registry, "foliot_batch_size", "Rows in each INFER action done, of all models together")
          .Add({}, batch_boundaries());
  Family<Histogram>& prediction_error =
      histogram_family(registry, "foliot_prediction_error_seconds",
                       "Measured minus predicted duration of each action done; above zero: it took longer");
  Family<Gauge>& pages = gauge_family(registry, "foliot_page_cache_pages", "Pages of the page cache by state");
  Family<Gauge>& device_up = gauge_family(registry, "foliot_device_up", "1 if it is given work");
  Family<Gauge>& margin =
      gauge_family(registry, "foliot_deadline_margin_seconds",
                   "How long before the deadlines of its requests an EXEC is planned to end, as measured");
  Family<Gauge>& lookahead =
      gauge_family(registry, "foliot_lookahead_seconds", "How far ahead a device has to be given work, as measured");
  Family<Counter>& device_changes =
      counter_family(registry, "foliot_device_changes_total", "How often a device entered a state, and by which cause");
  Family<Counter>& completed =
      counter_family(registry, "foliot_controller_requests_total", "Requests (rows) by how the controller ended them");
  Histogram& turns = histogram_family(registry, "foliot_turn_duration_seconds",
                                      "How long the policy decided, in each turn of the loop")
                         .Add({}, duration_boundaries(-6, 0, 3));
  Gauge& outstanding =
      gauge_family(registry, "foliot_actions_outstanding", "Actions sent that have no outcome yet").Add({});

  std::unordered_map<ModelId, Model> models;
  GoneModels gone_models;
  std::vector<Device> devices;  // by DeviceId
  std::array<Counter*, kRefusals> completions{};
  std::array<Gauge*, kRequestClasses> queued{};
  Histogram& load_error = prediction_error.Add({{"action", "LOAD"}}, error_boundaries());
  Histogram& infer_error = prediction_error.Add({{"action", "INFER"}}, error_boundaries());
};

ControllerMetrics::ControllerMetrics() : series_(std::make_unique<Series>()) {}
ControllerMetrics::~ControllerMetrics() = default;

std::string ControllerMetrics::text() const {
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

void ControllerMetrics::on_turn(Duration decision, const CountByClass& queued, uint64_t actions_outstanding) {
  series_->turns.Observe(decision.to_seconds());
  for (size_t i = 0; i < kRequestClasses; ++i) series_->queued[i]->Set(static_cast<double>(queued[i]));
  series_->outstanding.Set(static_cast<double>(actions_outstanding));
}

void ControllerMetrics::on_model(const ModelInfo& model) {
  Series::Model& known = series_->models[model.id];
  if (known.name != model.name) known = Series::Model{.name = model.name};
  series_->gone_models.on_model(model.id, model.name);
}

void ControllerMetrics::on_model_removed(ModelId model, TimePoint now) {
  series_->gone_models.on_removed(model, now);
  series_->models.erase(model);
}

void ControllerMetrics::Series::forget(const std::string& model) {
  const prometheus::Labels labels{{"model", model}};
  for (Family<Counter>* const family : {&loads, &unloads, &batches, &batch_rows}) {
    if (family->Has(labels)) family->Remove(&family->Add(labels));
  }
}

void ControllerMetrics::on_completion(const Completion& completion, TimePoint now) {
  series_->gone_models.expire(now, [this](const std::string& model) { series_->forget(model); });
  series_->completions[static_cast<size_t>(completion.refusal)]->Increment();
}

void ControllerMetrics::Series::count(const Action& action, OutcomeStatus status) {
  Counter*& counted = device(action.device).actions[static_cast<size_t>(action.type)][static_cast<size_t>(status)];
  if (counted == nullptr) {
    counted = &actions.Add({{"device", std::to_string(action.device.value())},
                            {"action", std::string(to_string(action.type))},
                            {"status", label_value(to_string(status))}});
  }
  counted->Increment();
}

void ControllerMetrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  Series& series = *series_;
  series.count(action, outcome.status);
  Series::Model* model = series.find(action.model);
  if (model == nullptr || !outcome.done()) return;
  const auto increment = [&](Counter*& cached, Family<Counter>& owner, uint32_t by = 1) {
    if (cached == nullptr) cached = &owner.Add({{"model", model->name}});
    cached->Increment(by);
  };
  const double error = (outcome.duration - action.expected).to_seconds();
  switch (action.type) {
    case ActionType::kUnload: increment(model->unloads, series.unloads); break;
    case ActionType::kLoad:
      increment(model->loads, series.loads);
      series.load_error.Observe(error);
      break;
    case ActionType::kInfer:
      increment(model->batches, series.batches);
      increment(model->batch_rows, series.batch_rows, action.rows.size());
      series.batch_size.Observe(action.rows.size());
      series.infer_error.Observe(error);
      break;
  }
}

void ControllerMetrics::on_device(const DeviceChange& change, TimePoint /*now*/) {
  const std::string state(to_string(change.state));
  series_->device_changes.Add({{"state", state}, {"trouble", std::string(to_string(change.trouble))}}).Increment();
  Series::Device& known = series_->device(change.device);
  known.has_left = change.state == DeviceState::kLost && change.trouble == DeviceTrouble::kLeft;
  if (known.has_left) return series_->remove_gauges(known);
  if (known.up == nullptr) known.up = &series_->device_up.Add({{"device", std::to_string(change.device.value())}});
  known.up->Set(change.state == DeviceState::kUp);
}

void ControllerMetrics::Series::remove_gauges(Device& device) {
  const auto remove = [](Family<Gauge>& family, Gauge*& gauge) {
    if (gauge != nullptr) family.Remove(std::exchange(gauge, nullptr));
  };
  remove(device_up, device.up);
  remove(margin, device.margin);
  remove(lookahead, device.lookahead);
  remove(pages, device.pages_used);
  remove(pages, device.pages_free);
}

void ControllerMetrics::on_timing(DeviceId device, Duration margin, Duration lookahead, TimePoint /*now*/) {
  Series::Device& known = series_->device(device);
  if (known.has_left) return;
  if (known.margin == nullptr) {
    const std::string name = std::to_string(device.value());
    known.margin = &series_->margin.Add({{"device", name}});
    known.lookahead = &series_->lookahead.Add({{"device", name}});
  }
  known.margin->Set(margin.to_seconds());
  known.lookahead->Set(lookahead.to_seconds());
}

void ControllerMetrics::on_pages(DeviceId device, uint32_t used, uint32_t total) {
  Series::Device& known = series_->device(device);
  if (known.has_left) return;
  if (known.pages_used == nullptr) {
    const std::string name = std::to_string(device.value());
    known.pages_used = &series_->pages.Add({{"device", name}, {"state", "used"}});
    known.pages_free = &series_->pages.Add({{"device", name}, {"state", "free"}});
  }
  known.pages_used->Set(used);
  known.pages_free->Set(total - used);
}

}  // namespace foliot
