#include "answer/model_calls/metrics.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <span>
#include <unordered_map>
#include <utility>

#include "foundation/base/mutex.h"
#include "observe/metrics/families.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using Boundaries = Histogram::BucketBoundaries;

constexpr size_t kTenantsShownMax = 100;
constexpr size_t kOutcomes = static_cast<size_t>(kRefusalLast) + 1;

std::string outcome_name(Refusal refusal) {
  return refusal == Refusal::kNone ? "served" : std::string(to_string(refusal));
}

// One family of counters, a sample for each model.
template <typename Read>
prometheus::MetricFamily collect(const char* name, const char* help, std::span<const ModelStatistics* const> models,
                                 Read read) {
  prometheus::MetricFamily collected;
  collected.name = name;
  collected.help = help;
  collected.type = prometheus::MetricType::Counter;
  for (const ModelStatistics* const model : models) {
    prometheus::ClientMetric metric;
    metric.label = {{"model", model->name}, {"version", model->version}};
    metric.counter.value = static_cast<double>(read(*model));
    collected.metric.push_back(std::move(metric));
  }
  return collected;
}

// The names that existing dashboards know.
void append_triton_families(std::vector<prometheus::MetricFamily>& families,
                            const std::vector<ModelStatistics>& models) {
  std::vector<const ModelStatistics*> all;
  std::vector<const ModelStatistics*> cached;  // their calls were looked for in the cache
  for (const ModelStatistics& model : models) {
    all.push_back(&model);
    if (model.cache_hit.count + model.cache_miss.count > 0) cached.push_back(&model);
  }
  const auto add = [&](const char* name, const char* help, auto read) {
    families.push_back(collect(name, help, all, read));
  };
  const auto add_cached = [&](const char* name, const char* help, auto read) {
    if (!cached.empty()) families.push_back(collect(name, help, cached, read));
  };
  const auto microseconds = [](const DurationCount& duration) { return duration.nanoseconds / 1000; };
  add("nv_inference_request_success", "Calls answered with an inference",
      [](const ModelStatistics& model) { return model.success.count; });
  add("nv_inference_request_failure", "Calls refused or failed",
      [](const ModelStatistics& model) { return model.fail.count; });
  add_cached("nv_cache_num_hits_per_model", "Calls answered with a prediction of the cache",
             [](const ModelStatistics& model) { return model.cache_hit.count; });
  add_cached("nv_cache_num_misses_per_model", "Calls that were not in the cache",
             [](const ModelStatistics& model) { return model.cache_miss.count; });
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
  prometheus::MetricFamily info{.name = "foliot_tenant_info",
                                .help = "The number by which the controller's series name a key",
                                .type = prometheus::MetricType::Gauge};
  for (const TenantStatistics& tenant : tenants) {
    if (tenant.id != TenantId()) {
      prometheus::ClientMetric& metric = info.metric.emplace_back();
      metric.label = {{"tenant", tenant.name}, {"tenant_id", fmt::format("{:08x}", tenant.id.value())}};
      metric.gauge.value = 1;
    }
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
  families.push_back(std::move(info));
}

}  // namespace

struct Metrics::Series {
  // Owned by the registry; null before the model's first request, the histogram
  // before its first answer.
  struct Requests {
    std::array<Counter*, kOutcomes> ended{};
    Counter* with_deadline = nullptr;
    Counter* deadline_missed = nullptr;
    Histogram* request_duration = nullptr;
  };

  explicit Series(CallStatistics& all_statistics) : statistics(all_statistics) {
    // What alerts count has to be there before it counts anything.
    for (const Refusal computed : {Refusal::kNone, Refusal::kLate}) {
      discarded.Add({{"outcome", outcome_name(computed)}});
    }
  }

  Requests& requests_of(const std::string& model) REQUIRES(requests_mutex);
  // `time`: from arrival to the deadline, Duration::max() without one.
  void count_ended(const std::string& model, Refusal refusal, uint32_t rows, Duration waited, Duration time)
      REQUIRES(requests_mutex);

  CallStatistics& statistics;
  prometheus::Registry registry;
  // Few, as each model has them: a quantile between 2 and 250 ms is right within a factor of 2.5.
  const Boundaries model_latencies{0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1};
  const Boundaries latencies = duration_boundaries(-4, 1, 10);
  const Boundaries deadline_parts{0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1, 1.1, 1.5, 2};

  Family<Counter>& ended = counter_family(registry, "foliot_requests_total", "Requests (rows) by how they ended");
  Family<Counter>& deadline_missed =
      counter_family(registry, "foliot_deadline_missed_total",
                     "Requests of foliot_deadline_requests_total that got no answer by their deadline");
  Family<Counter>& with_deadline = counter_family(
      registry, "foliot_deadline_requests_total",
      "Requests with a deadline that an idle device can meet, refused ones included, cancelled ones not");
  Family<Counter>& discarded =
      counter_family(registry, "foliot_discarded_requests_total",
                     "Requests (rows) that ended after their call had been refused at its deadline, by how");
  Family<Histogram>& request_duration =
      histogram_family(registry, "foliot_request_duration_seconds", "Served requests, from arrival to answer");
  // Of all models together.
  Histogram& queue_duration =
      histogram_family(registry, "foliot_queue_duration_seconds", "Served requests, from arrival to the start of EXEC")
          .Add({}, latencies);
  Histogram& exec_duration =
      histogram_family(registry, "foliot_exec_duration_seconds", "Served requests, EXEC on the device")
          .Add({}, latencies);
  Histogram& refusal_ratio =
      histogram_family(registry, "foliot_refusal_deadline_ratio",
                       "Requests refused for want of time, by the part of their time that was over: 1 at the deadline")
          .Add({}, deadline_parts);
  Family<Counter>& unknown_names =
      counter_family(registry, "foliot_unknown_names_total", "Names in requests that are unknown and were ignored");

  void forget(const std::string& model) REQUIRES(requests_mutex);

  Mutex requests_mutex;
  std::unordered_map<std::string, Requests> requests GUARDED_BY(requests_mutex);     // by model
  std::unordered_map<std::string, TimePoint> gone_since GUARDED_BY(requests_mutex);  // of those that are not served

  // Of the controller's loop:
  std::unordered_map<ModelId, std::shared_ptr<ModelCounters>> counters;
};

Metrics::Metrics(CallStatistics& statistics) : series_(std::make_unique<Series>(statistics)) {}
Metrics::~Metrics() = default;

void Metrics::count_refused(const ModelInfo& model, Refusal refusal, uint32_t rows, Duration waited, Duration time) {
  const MutexLock lock(series_->requests_mutex);
  series_->count_ended(model.name, refusal, rows, waited, time);
}

void Metrics::count_discarded(Refusal refusal) {
  series_->discarded.Add({{"outcome", outcome_name(refusal)}}).Increment();
}

void Metrics::count_unknown_name(std::string_view place, std::string_view name) {
  series_->unknown_names.Add({{"place", std::string(place)}, {"name", std::string(name)}}).Increment();
}

std::string Metrics::text(const std::vector<TenantStatistics>& tenants) const {
  std::vector<prometheus::MetricFamily> families = series_->registry.Collect();
  if (!tenants.empty()) append_tenant_families(families, bounded(tenants));
  append_triton_families(families, series_->statistics.snapshot());
  return prometheus::TextSerializer().Serialize(families);
}

Metrics::Series::Requests& Metrics::Series::requests_of(const std::string& model) {
  const auto [found, added] = requests.try_emplace(model);
  Requests& counted = found->second;
  if (!added) return counted;
  for (size_t i = 0; i < kOutcomes; ++i) {
    counted.ended[i] = &ended.Add({{"model", model}, {"outcome", outcome_name(static_cast<Refusal>(i))}});
  }
  counted.with_deadline = &with_deadline.Add({{"model", model}});
  counted.deadline_missed = &deadline_missed.Add({{"model", model}});
  return counted;
}

void Metrics::Series::count_ended(const std::string& model, Refusal refusal, uint32_t rows, Duration waited,
                                  Duration time) {
  Requests& counted = requests_of(model);
  counted.ended[static_cast<size_t>(refusal)]->Increment(rows);
  // A deadline that nothing could meet is a client's mistake.
  if (time == Duration::max() || refusal == Refusal::kCancelled || refusal == Refusal::kUnmeetable) return;
  counted.with_deadline->Increment(rows);
  if (refusal == Refusal::kNone) return;
  counted.deadline_missed->Increment(rows);
  if (refusal != Refusal::kOverload && refusal != Refusal::kExpired && refusal != Refusal::kLate) return;
  for (uint32_t row = 0; row < rows; ++row) refusal_ratio.Observe(waited.to_seconds() / time.to_seconds());
}

void Metrics::count(const ModelInfo& model, const Completion& completion) {
  Series& series = *series_;
  const MutexLock lock(series.requests_mutex);
  series.count_ended(model.name, completion.refusal, 1, completion.finished - completion.arrival,
                     completion.deadline - completion.arrival);
  if (!completion.served()) return;
  Series::Requests& counted = series.requests_of(model.name);

  if (counted.request_duration == nullptr) {
    counted.request_duration = &series.request_duration.Add({{"model", model.name}}, series.model_latencies);
  }
  counted.request_duration->Observe((completion.finished - completion.arrival).to_seconds());
  series.queue_duration.Observe((completion.exec_start - completion.arrival).to_seconds());
  series.exec_duration.Observe(completion.exec_duration.to_seconds());
}

void Metrics::Series::forget(const std::string& model) {
  const auto found = requests.find(model);
  if (found == requests.end()) return;
  Requests& gone = found->second;
  for (Counter* const counter : gone.ended) ended.Remove(counter);
  with_deadline.Remove(gone.with_deadline);
  deadline_missed.Remove(gone.deadline_missed);
  if (gone.request_duration != nullptr) request_duration.Remove(gone.request_duration);
  requests.erase(found);
}

void Metrics::forget_gone(const std::function<bool(const std::string&)>& is_served, TimePoint now) const {
  Series& series = *series_;
  const MutexLock lock(series.requests_mutex);
  std::unordered_map<std::string, TimePoint> still_gone;
  for (const std::string& model : series.statistics.names()) {
    if (is_served(model)) continue;
    const auto seen = series.gone_since.find(model);
    const TimePoint since = seen == series.gone_since.end() ? now : seen->second;
    if (now - since < kGoneModelTime) {
      still_gone.emplace(model, since);
      continue;
    }
    series.forget(model);
    series.statistics.forget(model);
  }
  series.gone_since = std::move(still_gone);
}

void Metrics::on_model(const ModelInfo& model) { series_->counters[model.id] = series_->statistics.of(model); }

void Metrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  const auto found = series_->counters.find(action.model);
  if (found == series_->counters.end() || !outcome.done() || action.type != ActionType::kInfer) return;
  found->second->count_execution(action.rows.size(), outcome);
}

}  // namespace foliot
