#include "control/controller/task_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "control/controller/exec_of_rows.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

std::unique_ptr<VariantPolicy> policy_named(const std::string& name) {
  Result<std::unique_ptr<VariantPolicy>> policy = make_variant_policy(name);
  FOLIOT_CHECK(policy.ok());
  return std::move(policy).value();
}

// Of a profile: what takes no time at all cannot be compared.
Duration at_least_something(Duration duration) { return std::max(duration, Duration::nanoseconds(1)); }

std::vector<BatchLatency> seed_latencies(const Runnable& runnable) {
  std::vector<BatchLatency> latencies;
  for (size_t i = 0; i < runnable.batch_sizes.size(); ++i) {
    const bool known = !runnable.seed_exec.empty() && i < runnable.seed_exec.front().size();
    latencies.push_back(
        {runnable.batch_sizes[i], at_least_something(known ? runnable.seed_exec.front()[i] : Duration())});
  }
  return latencies;
}

int64_t picodollars(int64_t nanodollars) {
  return nanodollars < VariantIndex::kNoCostLimit / 1000 ? nanodollars * 1000 : VariantIndex::kNoCostLimit;
}

// The time that is left of what the client asked for, by the planner's margin.
Duration time_left(const Cluster& cluster, const Request& request, TimePoint now) {
  if (request.best_effort()) return Duration::max();
  return request.deadline - now - cluster.least_margin();
}

}  // namespace

TaskRouter::TaskRouter(const Cluster& cluster, const TaskOptions& options)
    : cluster_(cluster), options_(options), policy_(policy_named(options.policy)), work_(cluster) {}

void TaskRouter::add(std::shared_ptr<const TaskInfo> task) {
  const ServedTaskId id = task->id;
  const bool added =
      tasks_.try_emplace(id, Served{.info = std::move(task), .registry = {}, .id = {}, .entries = {}, .monitors = {}})
          .second;
  FOLIOT_CHECK(added);
}

bool TaskRouter::serves(const Request& request) const {
  const auto found = tasks_.find(request.task);
  return found != tasks_.end() && request.bucket.value() < found->second.info->variants.front().model->buckets.size();
}

// ---- Facts ----

void TaskRouter::on_devices_changed() {
  for (auto& [id, served] : tasks_) served.rebuild = true;
}

void TaskRouter::on_residents_changed(ModelId model) {
  for (auto& [id, served] : tasks_) served.residents_stale = served.residents_stale || has_model(served, model);
}

void TaskRouter::on_model_changed(ModelId model) {
  for (auto& [id, served] : tasks_) served.rebuild = served.rebuild || has_model(served, model);
}

void TaskRouter::on_exec(const Action& action, Duration took, TimePoint now) {
  for (auto& [id, served] : tasks_) {
    for (Entry& entry : served.entries) {
      if (served.rebuild || entry.model != action.model) continue;
      if (entry.kind != cluster_.device(action.device).kind()) continue;
      entry.stale = true;
      served.monitors.try_emplace({entry.variant, action.device}, entry.seeds, now)
          .first->second.on_outcome(action.rows.size(), took, now);
    }
  }
}

void TaskRouter::rebuild(Served& served) {
  served.monitors.clear();
  served.entries.clear();
  served.registry = VariantRegistry();
  served.id = served.registry.add_task(served.info->name);
  for (const DeviceModel& device : cluster_.devices) {
    // Room is the controller's business: what is wanted less leaves for what is loaded.
    if (device.up()) served.registry.add_device(device.id(), cluster_.kind_name(device.kind()), 0);
  }
  for (const TaskVariant& variant : served.info->variants) {
    if (cluster_.is_offered(variant.model->id)) add_entries(served, variant);
  }
  served.rebuild = false;
  served.residents_stale = true;
}

void TaskRouter::add_entries(Served& served, const TaskVariant& variant) {
  const ModelInfo& model = cluster_.model(variant.model->id);
  for (const Runnable& runnable : model.runnables) {
    const auto runs_it = [&](const DeviceModel& device) {
      return device.up() && cluster_.kind_name(device.kind()) == runnable.kind &&
             device.page_count() >= runnable.pages && cluster_.may_place(device.id(), model.id);
    };
    const auto device = std::ranges::find_if(cluster_.devices, runs_it);
    if (device == cluster_.devices.end()) continue;
    Variant facts;
    facts.name = model.runnables.size() == 1 ? model.name : fmt::format("{} on {}", model.name, runnable.kind);
    facts.architecture = model.name;
    facts.version = model.version;
    facts.kind = runnable.kind;
    facts.accuracy = variant.accuracy;
    facts.latencies = seed_latencies(runnable);
    facts.load = runnable.seed_load;
    facts.saturation = saturation_within(facts.latencies, served.info->default_slo.value_or(Duration::max()));
    facts.price = per_second_of_hourly(options_.hourly_dollars_of(runnable.kind));
    Result<VariantId> id = served.registry.add_variant(served.id, facts);
    FOLIOT_CHECK(id.ok() && id->value() == served.entries.size());
    served.entries.push_back({.model = model.id, .kind = device->kind(), .variant = *id, .seeds = std::move(facts)});
  }
}

void TaskRouter::follow_residents(Served& served) {
  served.residents_stale = false;
  for (const Entry& entry : served.entries) {
    for (const auto& [device, facts] : served.registry.devices()) {
      if (cluster_.device(device).kind() != entry.kind) continue;
      const bool has = served.registry.has_instance(entry.variant, device);
      const bool holds = cluster_.placed(device, entry.model);
      if (has == holds) continue;
      served.monitors.erase({entry.variant, device});
      holds ? served.registry.add_instance(entry.variant, device)
            : served.registry.remove_instance(entry.variant, device);
    }
  }
}

void TaskRouter::follow_durations(Served& served) {
  for (Entry& entry : served.entries) {
    if (!std::exchange(entry.stale, false)) continue;
    const auto device = std::ranges::find_if(
        cluster_.devices, [&](const DeviceModel& each) { return each.up() && each.kind() == entry.kind; });
    if (device == cluster_.devices.end()) continue;
    const std::span<const Duration> execs = cluster_.durations().execs(device->id(), entry.model, BucketId(), 0);
    const size_t sizes = entry.seeds.latencies.size();
    if (execs.size() < sizes) continue;
    std::vector<Duration> latencies(execs.begin(), execs.begin() + static_cast<std::ptrdiff_t>(sizes));
    for (Duration& latency : latencies) latency = at_least_something(latency);
    served.registry.set_profile(entry.variant, latencies, cluster_.durations().load(device->id(), entry.model));
  }
}

void TaskRouter::count_queues(const Served& served) {
  queues_.clear();
  for (const auto& [device, facts] : served.registry.devices()) {
    const size_t kind = cluster_.device(device).kind().value();
    if (kind >= queues_.size()) queues_.resize(kind + 1);
    ++queues_[kind].devices;
  }
  for (uint16_t kind = 0; kind < queues_.size(); ++kind) queues_[kind].waiting = work_.on_kind(KindId(kind));
}

void TaskRouter::follow_queues(Served& served, const VariantRequirements& asked, const Request& request,
                               TimePoint now) {
  count_queues(served);
  for (const Entry& entry : served.entries) {
    const Variant& facts = served.registry.variant(entry.variant);
    if (facts.accuracy < asked.accuracy || facts.query_picodollars() > asked.cost_picodollars) continue;
    begins_.clear();
    for (const VariantRegistry::Instance& instance : served.registry.instances(entry.variant)) {
      begins_.push_back(answered(entry, instance.device, request, now) - facts.latency());
    }
    served.registry.set_begins(entry.variant, begins_);
    for (auto monitor = served.monitors.lower_bound({entry.variant, DeviceId()});
         monitor != served.monitors.end() && monitor->first.first == entry.variant; ++monitor) {
      if (!served.registry.has_instance(entry.variant, monitor->first.second)) continue;
      served.registry.set_state(entry.variant, monitor->first.second, monitor->second.state(now));
    }
  }
}

TimePoint TaskRouter::answered(const Entry& entry, DeviceId device, const Request& request, TimePoint now) const {
  const DeviceModel& own = cluster_.device(device);
  TimePoint start = own.exec_available(now);
  if (own.residency(entry.model) == Residency::kLoading) start = std::max(start, own.loaded_at(entry.model));
  const KindQueue& queue = queues_[entry.kind.value()];
  const std::span<const Duration> execs = cluster_.durations().execs(device, entry.model, request.bucket, 0);
  const Duration alone = exec_of_rows(cluster_.batch_sizes(device, entry.model), request.call_rows,
                                      [&](size_t index) { return execs[index]; });
  if (!work_.has(entry.model)) return start + queue.waiting / queue.devices + alone;
  const Duration waiting = work_.of_model(device, entry.model, request.bucket, 0);
  const Duration with_it = work_.of_model(device, entry.model, request.bucket, request.call_rows);
  const Duration others = std::max(Duration(), queue.waiting - waiting);
  return start + others / queue.devices + std::max(alone, with_it / queue.devices);
}

// ---- Choices ----

TaskRouter::Route TaskRouter::route(const Request& request, TimePoint now) {
  if (OpenCall* open = request.call_rows > 1 ? calls_.find(request.call) : nullptr) {
    const Route route{.model = open->model, .chosen = true};
    if (--open->rows_left == 0) calls_.erase(request.call);
    return route;
  }
  Served& served = tasks_.at(request.task);
  if (served.rebuild) rebuild(served);
  if (served.residents_stale) follow_residents(served);
  follow_durations(served);
  const VariantRequirements asked{.latency = time_left(cluster_, request, now),
                                  .accuracy = request.requirements.accuracy,
                                  .cost_picodollars = picodollars(request.requirements.cost_nanodollars_most)};
  follow_queues(served, asked, request, now);
  Route route = choose(served, asked, request, now);
  if (route.chosen && request.call_rows > 1) {
    calls_.insert(request.call, {.model = route.model, .rows_left = request.call_rows - 1});
  }
  return route;
}

TaskRouter::Route TaskRouter::choose(Served& served, const VariantRequirements& asked, const Request& request,
                                     TimePoint now) {
  if (asked.latency > Duration()) {
    const VariantChoice choice = policy_->get_variant(served.registry, served.id, asked, now);
    if (choice.chosen()) return {.model = served.entries[choice.variant->value()].model, .chosen = true};
  }
  return first_to_answer(served, asked, request, now);
}

TaskRouter::Route TaskRouter::first_to_answer(Served& served, const VariantRequirements& asked, const Request& request,
                                              TimePoint now) {
  const Entry* best = nullptr;
  bool accurate = false;
  TimePoint best_at = TimePoint::infinite_future();
  for (const Entry& entry : served.entries) {
    const Variant& facts = served.registry.variant(entry.variant);
    if (facts.accuracy < asked.accuracy) continue;
    accurate = true;
    if (facts.query_picodollars() > asked.cost_picodollars) continue;
    TimePoint at = TimePoint::infinite_future();
    if (const auto& instances = served.registry.instances(entry.variant); !instances.empty()) {
      at = std::max(now, instances.front().begins) + facts.latency();
    } else if (const std::optional<DeviceId> device = served.registry.loading_device(entry.variant)) {
      at = std::max(cluster_.device(*device).load_available(now) + facts.load, now) + facts.latency();
      at = std::max(at, answered(entry, *device, request, now));
    }
    if (best != nullptr && at >= best_at) continue;
    best = &entry;
    best_at = at;
  }
  if (best != nullptr) return {.model = best->model, .chosen = true};
  if (accurate) return refuse(served, asked);
  // On no device that is up: what the controller says of such a model.
  for (const TaskVariant& variant : served.info->variants) {
    const bool offered = cluster_.is_offered(variant.model->id);
    if (offered && variant.accuracy >= asked.accuracy) return {.model = variant.model->id, .chosen = true};
  }
  return {.model = served.info->variants.back().model->id,
          .detail = fmt::format("task '{}' has no variant with an accuracy of at least {} now", served.info->name,
                                asked.accuracy),
          .unmet = UnmetRequirement::kAccuracy};
}

TaskRouter::Route TaskRouter::refuse(const Served& served, const VariantRequirements& asked) {
  const Entry* nearest = nullptr;
  const auto cost_of = [&](const Entry& entry) { return served.registry.variant(entry.variant).query_picodollars(); };
  for (const Entry& entry : served.entries) {
    if (served.registry.variant(entry.variant).accuracy < asked.accuracy) continue;
    if (nearest == nullptr || cost_of(entry) < cost_of(*nearest)) nearest = &entry;
  }
  const auto dollars = [](int64_t amount) { return static_cast<double>(amount) * 1e-12; };
  return {
      .model = nearest->model,
      .detail = fmt::format(
          "task '{}' has no variant with an accuracy of at least {} that costs at most ${:.3g} a row; the nearest is "
          "'{}': accuracy {}, ${:.3g}",
          served.info->name, asked.accuracy, dollars(asked.cost_picodollars),
          served.registry.variant(nearest->variant).name, served.registry.variant(nearest->variant).accuracy,
          dollars(cost_of(*nearest))),
      .unmet = UnmetRequirement::kCost};
}

std::string TaskRouter::unmeetable_detail(const Request& request) const {
  const auto found = tasks_.find(request.task);
  if (found == tasks_.end()) return {};
  const Served& served = found->second;
  for (const Entry& entry : served.entries) {
    if (entry.model != request.model) continue;
    const Variant& facts = served.registry.variant(entry.variant);
    return fmt::format("of task '{}', variant '{}' comes nearest: accuracy {}, {:.3g} ms", served.info->name,
                       facts.name, facts.accuracy, facts.latency().to_milliseconds());
  }
  return {};
}

}  // namespace foliot
