#include "frontend/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <cmath>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/heap.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Boundaries = Histogram::BucketBoundaries;

constexpr size_t kTenantsShownMax = 100;
constexpr size_t kOutcomes = static_cast<size_t>(kRefusalLast) + 1;

// 100 us to 10 s, ten buckets in each factor of ten.
Boundaries latency_boundaries() {
  Boundaries boundaries;
  for (int i = 0; i <= 50; ++i) boundaries.push_back(std::pow(10.0, -4.0 + i / 10.0));
  return boundaries;
}

// Both sides of zero, 1 us to 1 s, three in each factor of ten.
Boundaries error_boundaries() {
  Boundaries boundaries;
  for (int i = 18; i >= 0; --i) boundaries.push_back(-std::pow(10.0, -6.0 + i / 3.0));
  boundaries.push_back(0);
  for (int i = 0; i <= 18; ++i) boundaries.push_back(std::pow(10.0, -6.0 + i / 3.0));
  return boundaries;
}

Boundaries batch_boundaries() { return {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}; }

std::string outcome_name(Refusal refusal) {
  return refusal == Refusal::kNone ? "served" : std::string(to_string(refusal));
}

template <typename Builder>
auto& family(Builder builder, prometheus::Registry& registry, const char* name, const char* help) {
  return builder.Name(name).Help(help).Register(registry);
}

// One family of counters, a sample for each model.
template <typename Read>
prometheus::MetricFamily counter_family(const char* name, const char* help, const std::vector<ModelStatistics>& models,
                                        Read read) {
  prometheus::MetricFamily collected;
  collected.name = name;
  collected.help = help;
  collected.type = prometheus::MetricType::Counter;
  for (const ModelStatistics& model : models) {
    prometheus::ClientMetric metric;
    metric.label = {{"model", model.name}, {"version", model.version}};
    metric.counter.value = static_cast<double>(read(model));
    collected.metric.push_back(std::move(metric));
  }
  return collected;
}

// The names that existing dashboards know.
void append_triton_families(std::vector<prometheus::MetricFamily>& families,
                            const std::vector<ModelStatistics>& models) {
  const auto add = [&](const char* name, const char* help, auto read) {
    families.push_back(counter_family(name, help, models, read));
  };
  const auto microseconds = [](const DurationCount& duration) { return duration.nanoseconds / 1000; };
  add("nv_inference_request_success", "Calls answered with an inference",
      [](const ModelStatistics& model) { return model.success.count; });
  add("nv_inference_request_failure", "Calls refused or failed",
      [](const ModelStatistics& model) { return model.fail.count; });
  add("nv_inference_count", "Rows inferred", [](const ModelStatistics& model) { return model.inference_count; });
  add("nv_inference_exec_count", "Batches executed",
      [](const ModelStatistics& model) { return model.execution_count; });
  add("nv_inference_request_duration_us", "Time of answered calls, from arrival to answer",
      [&](const ModelStatistics& model) { return microseconds(model.success); });
  add("nv_inference_queue_duration_us", "Time of answered calls in queues",
      [&](const ModelStatistics& model) { return microseconds(model.queue); });
  add("nv_inference_compute_input_duration_us", "Time of answered calls in INPUT",
      [&](const ModelStatistics& model) { return microseconds(model.compute_input); });
  add("nv_inference_compute_infer_duration_us", "Time of answered calls in EXEC",
      [&](const ModelStatistics& model) { return microseconds(model.compute_infer); });
  add("nv_inference_compute_output_duration_us", "Time of answered calls in OUTPUT",
      [&](const ModelStatistics& model) { return microseconds(model.compute_output); });
}

// So that a file of many keys does not make many series.
std::vector<TenantStatistics> bounded(std::vector<TenantStatistics> tenants) {
  if (tenants.size() <= kTenantsShownMax) return tenants;
  TenantStatistics others{.name = "(others)"};
  for (size_t i = kTenantsShownMax; i < tenants.size(); ++i) {
    others.admitted += tenants[i].admitted;
    others.over_rate += tenants[i].over_rate;
    others.over_in_flight += tenants[i].over_in_flight;
    others.served += tenants[i].served;
    others.over_share += tenants[i].over_share;
    others.missed += tenants[i].missed;
    others.in_flight += tenants[i].in_flight;
  }
  tenants.resize(kTenantsShownMax);
  tenants.push_back(others);
  return tenants;
}

void append_tenant_families(std::vector<prometheus::MetricFamily>& families,
                            const std::vector<TenantStatistics>& tenants) {
  prometheus::MetricFamily requests{.name = "foliot_tenant_requests_total",
                                    .help = "Requests (rows) by the key that asked, and whether its limits let them in",
                                    .type = prometheus::MetricType::Counter};
  prometheus::MetricFamily answers{
      .name = "foliot_tenant_answers_total",
      .help = "Requests (rows) of a key that the controller was asked for, by how they ended",
      .type = prometheus::MetricType::Counter};
  prometheus::MetricFamily in_flight{.name = "foliot_tenant_requests_in_flight",
                                     .help = "Requests (rows) of a key that are not answered yet",
                                     .type = prometheus::MetricType::Gauge};
  for (const TenantStatistics& tenant : tenants) {
    const auto add = [&](prometheus::MetricFamily& family, const char* outcome, uint64_t count) {
      prometheus::ClientMetric& metric = family.metric.emplace_back();
      metric.label = {{"tenant", tenant.name}, {"outcome", outcome}};
      metric.counter.value = static_cast<double>(count);
    };
    add(requests, "admitted", tenant.admitted);
    add(requests, "rate", tenant.over_rate);
    add(requests, "in_flight", tenant.over_in_flight);
    add(answers, "served", tenant.served);
    add(answers, "over_share", tenant.over_share);
    add(answers, "missed", tenant.missed);
    prometheus::ClientMetric& metric = in_flight.metric.emplace_back();
    metric.label = {{"tenant", tenant.name}};
    metric.gauge.value = static_cast<double>(tenant.in_flight);
  }
  families.push_back(std::move(requests));
  families.push_back(std::move(answers));
  families.push_back(std::move(in_flight));
}

prometheus::MetricFamily exec_heap_family() {
  prometheus::MetricFamily family{.name = "foliot_exec_heap_allocations_total",
                                  .help = "Objects made with operator new within EXEC, on the thread that runs it",
                                  .type = prometheus::MetricType::Counter};
  family.metric.emplace_back().counter.value = static_cast<double>(exec_heap_allocations());
  return family;
}

}  // namespace

struct Metrics::Series {
  // Owned by the registry; null until something happens.
  struct Model {
    std::string name;
    std::shared_ptr<ModelCounters> counters;
    Counter* loads = nullptr;
    Counter* unloads = nullptr;
    Histogram* batch_size = nullptr;
  };
  struct Requests {
    std::array<Counter*, kOutcomes> ended{};
    Counter* deadline_missed = nullptr;
    Histogram* request_duration = nullptr;
    Histogram* queue_duration = nullptr;
    Histogram* exec_duration = nullptr;
  };

  explicit Series(Statistics& all_statistics) : statistics(all_statistics) {}

  static Counter& counter(Counter*& cached, Family<Counter>& owner, const std::string& model) {
    if (cached == nullptr) cached = &owner.Add({{"model", model}});
    return *cached;
  }
  static Histogram& histogram(Histogram*& cached, Family<Histogram>& owner, const std::string& model,
                              const Boundaries& boundaries) {
    if (cached == nullptr) cached = &owner.Add({{"model", model}}, boundaries);
    return *cached;
  }
  Model* find(ModelId id) {
    const auto found = models.find(id);
    return found == models.end() ? nullptr : &found->second;
  }
  // REQUIRES: requests_mutex is held.
  void count_ended(const std::string& model, Requests& counted, Refusal refusal, uint32_t rows, bool missed);
  void count_inference(Model& model, const Action& action, const Outcome& outcome);

  Statistics& statistics;
  prometheus::Registry registry;
  const Boundaries latencies = latency_boundaries();
  const Boundaries errors = error_boundaries();
  const Boundaries batches = batch_boundaries();

  Family<Counter>& ended =
      family(prometheus::BuildCounter(), registry, "foliot_requests_total", "Requests (rows) by how they ended");
  Family<Counter>& deadline_missed =
      family(prometheus::BuildCounter(), registry, "foliot_deadline_missed_total",
             "Requests with a deadline that got no answer by it, refused ones included, cancelled ones not");
  Family<Counter>& loads = family(prometheus::BuildCounter(), registry, "foliot_loads_total", "LOAD actions done");
  Family<Counter>& unloads =
      family(prometheus::BuildCounter(), registry, "foliot_unloads_total", "UNLOAD actions done");
  Family<Histogram>& request_duration =
      family(prometheus::BuildHistogram(), registry, "foliot_request_duration_seconds",
             "Served requests, from arrival to answer");
  Family<Histogram>& queue_duration = family(prometheus::BuildHistogram(), registry, "foliot_queue_duration_seconds",
                                             "Served requests, from arrival to the start of EXEC");
  Family<Histogram>& exec_duration = family(prometheus::BuildHistogram(), registry, "foliot_exec_duration_seconds",
                                            "Served requests, EXEC on the device");
  Family<Histogram>& batch_size =
      family(prometheus::BuildHistogram(), registry, "foliot_batch_size", "Rows in each INFER action done");
  Family<Histogram>& prediction_error =
      family(prometheus::BuildHistogram(), registry, "foliot_prediction_error_seconds",
             "Measured minus predicted duration of each action done; above zero: it took longer");
  Family<Gauge>& pages =
      family(prometheus::BuildGauge(), registry, "foliot_page_cache_pages", "Pages of the page cache by state");
  Family<Gauge>& device_up = family(prometheus::BuildGauge(), registry, "foliot_device_up", "1 if it is given work");
  Family<Counter>& device_changes = family(prometheus::BuildCounter(), registry, "foliot_device_changes_total",
                                           "How often a device came to be in a state, and by which trouble");
  Family<Counter>& unknown_names = family(prometheus::BuildCounter(), registry, "foliot_unknown_names_total",
                                          "Names in requests that are unknown and were ignored");

  std::mutex requests_mutex;
  std::unordered_map<std::string, Requests> requests;  // by model; guarded by requests_mutex

  // Of the controller's loop:
  std::unordered_map<ModelId, Model> models;
  Histogram& load_error = prediction_error.Add({{"action", "LOAD"}}, errors);
  Histogram& infer_error = prediction_error.Add({{"action", "INFER"}}, errors);
};

Metrics::Metrics(Statistics& statistics) : series_(std::make_unique<Series>(statistics)) {}
Metrics::~Metrics() = default;

void Metrics::count_refused(const ModelInfo& model, Refusal refusal, uint32_t rows, bool had_deadline) {
  const std::lock_guard lock(series_->requests_mutex);
  series_->count_ended(model.name, series_->requests[model.name], refusal, rows, had_deadline);
}

void Metrics::count_unknown_name(std::string_view place, std::string_view name) {
  series_->unknown_names.Add({{"place", std::string(place)}, {"name", std::string(name)}}).Increment();
}

std::string Metrics::text(const std::vector<TenantStatistics>& tenants) const {
  std::vector<prometheus::MetricFamily> families = series_->registry.Collect();
  families.push_back(exec_heap_family());
  if (!tenants.empty()) append_tenant_families(families, bounded(tenants));
  append_triton_families(families, series_->statistics.snapshot());
  return prometheus::TextSerializer().Serialize(families);
}

void Metrics::on_model(const ModelInfo& model) {
  Series::Model& known = series_->models[model.id];
  known.counters = series_->statistics.of(model);
  if (known.name == model.name) return;
  known = Series::Model{.name = model.name, .counters = known.counters};
}

void Metrics::Series::count_ended(const std::string& model, Requests& counted, Refusal refusal, uint32_t rows,
                                  bool missed) {
  Counter*& outcome = counted.ended[static_cast<size_t>(refusal)];
  if (outcome == nullptr) outcome = &ended.Add({{"model", model}, {"outcome", outcome_name(refusal)}});
  outcome->Increment(rows);
  if (missed) counter(counted.deadline_missed, deadline_missed, model).Increment(rows);
}

void Metrics::count(const ModelInfo& model, const Completion& completion) {
  Series& series = *series_;
  const std::lock_guard lock(series.requests_mutex);
  Series::Requests& counted = series.requests[model.name];
  const bool had_deadline = !completion.deadline.is_infinite();
  const bool missed = had_deadline && !completion.served() && completion.refusal != Refusal::kCancelled;
  series.count_ended(model.name, counted, completion.refusal, 1, missed);
  if (!completion.served()) return;

  const auto observe = [&](Histogram*& cached, Family<Histogram>& owner, Duration duration) {
    Series::histogram(cached, owner, model.name, series.latencies).Observe(duration.to_seconds());
  };
  observe(counted.request_duration, series.request_duration, completion.finished - completion.arrival);
  observe(counted.queue_duration, series.queue_duration, completion.exec_start - completion.arrival);
  observe(counted.exec_duration, series.exec_duration, completion.exec_duration);
}

void Metrics::Series::count_inference(Model& model, const Action& action, const Outcome& outcome) {
  histogram(model.batch_size, batch_size, model.name, batches).Observe(action.rows.size());
  model.counters->count_execution(action.rows.size(), outcome);
  infer_error.Observe((outcome.duration - action.expected).to_seconds());
}

void Metrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  Series& series = *series_;
  Series::Model* model = series.find(action.model);
  if (model == nullptr || !outcome.done()) return;
  switch (action.type) {
    case ActionType::kInfer: series.count_inference(*model, action, outcome); break;
    case ActionType::kUnload: Series::counter(model->unloads, series.unloads, model->name).Increment(); break;
    case ActionType::kLoad:
      Series::counter(model->loads, series.loads, model->name).Increment();
      series.load_error.Observe((outcome.duration - action.expected).to_seconds());
      break;
  }
}

void Metrics::on_device(const DeviceChange& change, TimePoint /*now*/) {
  series_->device_up.Add({{"device", std::to_string(change.device.value())}}).Set(change.state == DeviceState::kUp);
  const std::string state(to_string(change.state));
  series_->device_changes.Add({{"state", state}, {"trouble", std::string(to_string(change.trouble))}}).Increment();
}

void Metrics::on_pages(DeviceId device, uint32_t used, uint32_t total) {
  const std::string name = std::to_string(device.value());
  series_->pages.Add({{"device", name}, {"state", "used"}}).Set(used);
  series_->pages.Add({{"device", name}, {"state", "free"}}).Set(total - used);
}

}  // namespace foliot
