#include "virtual/simulation/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/flat_map.h"
#include "foundation/core/stage_slots.h"
#include "foundation/core/stage_visit.h"
#include "load/workload/workload_arrivals.h"
#include "virtual/simulation/simulated_pipeline.h"
#include "virtual/simulation/simulation_meter.h"
#include "virtual/world/virtual_cluster.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {
namespace {

// A policy that has not answered what it was preloaded with by then never will.
constexpr Duration kPreloadMax = Duration::seconds(600);
// The same of the requests that are left when no more come.
constexpr Duration kDrainMax = Duration::seconds(3600) * 24;

using SharedModels = std::vector<std::shared_ptr<ModelInfo>>;

std::vector<VirtualDevices> devices_of(const SimulationOptions& options) {
  const auto pages = [&](uint64_t bytes) { return static_cast<uint32_t>(bytes / options.page_bytes); };
  if (options.kinds.empty()) return {{.count = options.devices, .pages = pages(options.page_cache_bytes)}};
  std::vector<VirtualDevices> devices;
  for (const SimulatedKind& kind : options.kinds) {
    devices.push_back({kind.name, kind.devices, pages(kind.page_cache_bytes)});
  }
  return devices;
}

Status check(const SimulationOptions& options) {
  const auto wrong = [](const std::string& what) { return Status::invalid_argument(what); };
  if (options.devices == 0) return wrong("devices must be above 0");
  if (options.page_bytes == 0) return wrong("page_size must be above 0");
  uint32_t devices = 0;
  std::set<std::string> kinds;
  for (const VirtualDevices& kind : devices_of(options)) {
    if (kind.pages == 0) return wrong("page_cache must hold a page");
    if (!is_kind_name(kind.kind)) return wrong("a kind needs a name of letters, digits and .:_-");
    if (!kinds.insert(kind.kind).second) return wrong("kind '" + kind.kind + "' is given twice");
    devices += kind.count;
  }
  if (kinds.size() >= kKindsMax) return wrong("there are too many kinds");
  if (devices != options.devices) return wrong("devices must be those of all kinds");
  if (options.duration <= Duration()) return wrong("duration must be above 0");
  if (options.warm_up < Duration() || options.warm_up >= options.duration) {
    return wrong("warm_up must not be negative, and shorter than duration");
  }
  if (options.interval <= Duration()) return wrong("interval must be above 0");
  if (options.link < Duration() || options.link_jitter < Duration()) return wrong("link must not be negative");
  return Status();
}

Result<const ModelProfile*> find_profile(const ModelGroup& group, const std::string& name,
                                         const ProfileTable& profiles) {
  const ModelProfile* profile = profiles.find(name);
  if (profile != nullptr) return profile;
  return Status::invalid_argument(
      fmt::format("models '{}': there is no profile '{}'; there are {}", group.name, name, profiles.names()));
}

std::string kind_names(const SimulationOptions& options) {
  std::string names;
  for (const VirtualDevices& kind : devices_of(options)) names += (names.empty() ? "" : ", ") + kind.kind;
  return names;
}

// As the kinds of the cluster run the group's models.
Result<std::vector<Runnable>> make_runnables(const SimulationOptions& options, const ModelGroup& group,
                                             const ProfileTable& profiles) {
  std::vector<Runnable> runnables;
  std::string its_kinds;
  for (const ModelGroup::RunsOn& runs_on : group.runs_on) its_kinds += (its_kinds.empty() ? "" : ", ") + runs_on.kind;
  for (const VirtualDevices& kind : devices_of(options)) {
    const auto runs_on = std::ranges::find(group.runs_on, kind.kind, &ModelGroup::RunsOn::kind);
    if (runs_on == group.runs_on.end() && !group.runs_on.empty()) continue;
    const bool own = runs_on != group.runs_on.end() && !runs_on->profile.empty();
    FOLIOT_ASSIGN_OR_RETURN(const ModelProfile* profile,
                            find_profile(group, own ? runs_on->profile : group.profile, profiles));
    runnables.push_back(make_runnable(*profile, kind.kind, options.page_bytes));
    if (runnables.back().pages > kind.pages) {
      return Status::invalid_argument(
          fmt::format("models '{}' take {} pages; a device has {}", group.name, runnables.back().pages, kind.pages));
    }
  }
  if (!runnables.empty()) return runnables;
  return Status::invalid_argument(
      fmt::format("models '{}' are not served: they run on devices of kind {}, and the "
                  "cluster has {}",
                  group.name, its_kinds, kind_names(options)));
}

Result<SharedModels> make_models(const SimulationOptions& options, const Workload& workload,
                                 const ProfileTable& profiles) {
  SharedModels models;
  const std::vector<std::string> names = workload.model_names();
  for (const ModelGroup& group : workload.groups) {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<Runnable> runnables, make_runnables(options, group, profiles));
    for (uint32_t i = 0; i < group.count; ++i) {
      const ModelId id(static_cast<uint32_t>(models.size()));
      auto model = std::make_shared<ModelInfo>();
      model->id = id;
      model->name = names[id.value()];
      model->buckets.resize(1);
      model->runnables = runnables;
      model->default_slo = group.slo;
      model->weight = group.weight;
      model->batch_delay = group.batch_delay;
      models.push_back(std::move(model));
    }
  }
  return models;
}

// nullopt unless every kind has a price.
std::optional<double> dollars_per_hour(const SimulationOptions& options) {
  if (options.kinds.empty()) return std::nullopt;
  double dollars = 0;
  for (const SimulatedKind& kind : options.kinds) {
    if (!kind.dollars_per_hour) return std::nullopt;
    dollars += *kind.dollars_per_hour * kind.devices;
  }
  return dollars;
}

class Simulation {
 public:
  Simulation(const SimulationOptions& options, const Workload& workload, WorkloadArrivals arrivals, SharedModels models,
             const SimulationProgress& progress)
      : options_(options),
        workload_(workload),
        streams_(workload.streams),
        arrivals_(std::move(arrivals)),
        progress_(progress),
        cluster_(loop_,
                 {.seed = options.seed,
                  .kinds = devices_of(options),
                  .models_max = static_cast<uint32_t>(models.size()),
                  .lanes = options.lanes,
                  .contexts = options.contexts,
                  .readings = [this](const BatchRows::Row& row) { return reading(row.request); },
                  .noise = options.noise,
                  .link = options.link,
                  .link_jitter = options.link_jitter,
                  .controller = options.controller},
                 options.make_policy, [this](const Completion& completion) { on_completion(completion); }),
        meter_({.devices = options.devices,
                .warm_up = options.warm_up,
                .duration = options.duration,
                .interval = options.interval,
                .faults = options.faults},
               workload, cluster_.controller().cluster()) {
    cluster_.controller().add_observer(meter_);
    if (options.observer != nullptr) cluster_.controller().add_observer(*options.observer);
    for (const auto& model : models) cluster_.add_model(model);
    for (size_t i = 0; i < workload.pipelines.size(); ++i) {
      pipelines_.push_back(simulated_pipeline(workload, i, cluster_.controller().cluster().models));
      slots_.emplace_back(*pipelines_.back());
      cluster_.add_pipeline(pipelines_.back());
    }
  }

  Result<SimulationReport> run() {
    if (options_.preload) FOLIOT_RETURN_IF_ERROR(preload());
    begin_ = loop_.now();
    meter_.begin(begin_);
    if (!options_.faults.empty()) cluster_.schedule(options_.faults);
    for (const TargetChange& change : options_.targets) {
      loop_.at(begin_ + change.at, [this, own = &change] { change_targets(*own); });
    }
    take_next();
    for (Duration at = options_.interval; at < options_.duration; at += options_.interval) {
      events_ += loop_.run_until(begin_ + at);
      meter_.end_interval();
      if (progress_) progress_(at);
    }
    events_ += loop_.run_until(begin_ + options_.duration);
    drain();
    return report();
  }

 private:
  // The payload of a request says which stream it is of.
  static constexpr uint64_t kPreload = ~uint64_t{0};

  Status preload() {
    const Cluster& cluster = cluster_.controller().cluster();
    std::map<std::string, uint64_t> pages_left;
    for (const VirtualDevices& kind : devices_of(options_)) pages_left[kind.kind] = uint64_t{kind.pages} * kind.count;
    for (const auto& model : cluster.models) {
      const Runnable& first = model->runnables.front();
      if (first.pages > pages_left[first.kind]) {
        if (options_.kinds.empty()) break;
        continue;
      }
      pages_left[first.kind] -= first.pages;
      submit(model->id, kPreload, TimePoint::infinite_future());
    }
    const TimePoint give_up = loop_.now() + kPreloadMax;
    while (open_ > 0 && loop_.now() < give_up) loop_.run_until(loop_.now() + Duration::milliseconds(10));
    if (open_ == 0) return Status();
    return Status::internal(fmt::format("{} left {} best-effort requests unanswered for {} s", options_.policy, open_,
                                        kPreloadMax.to_seconds()));
  }

  void change_targets(const TargetChange& change) {
    for (size_t group = 0; group < workload_.groups.size(); ++group) {
      const ModelGroup& models = workload_.groups[group];
      if (!change.models.empty() && !std::ranges::count(change.models, models.name)) continue;
      const uint32_t first = workload_.first_model(group);
      for (uint32_t i = 0; i < models.count; ++i) targets_.models[ModelId(first + i)] = change.target;
    }
    const Status set = cluster_.set_targets(targets_);
    FOLIOT_CHECK(set.ok());  // check_targets() was
  }

  void submit(ModelId model, uint64_t stream, TimePoint deadline) {
    ++open_;
    const std::optional<uint32_t> pipeline =
        stream == kPreload ? std::nullopt : workload_.pipeline_of(streams_[stream]);
    Request request{.id = RequestId(nth_run(next_request_++)),
                    .model = model,
                    .pipeline = pipeline ? pipelines_[*pipeline]->id : PipelineId(),
                    .payload = PayloadHandle(stream),
                    .arrival = loop_.now(),
                    .deadline = deadline};
    if (stream != kPreload && !streams_[stream].tenant.empty()) {
      request.tenant = tenant_named(streams_[stream].tenant);
      request.tenant_weight = streams_[stream].weight;
    }
    if (pipeline) runs_.insert(request.id, {*pipeline, next_recorded(streams_[stream], stream)});
    cluster_.submit(request);
  }

  VisitReading reading(RequestId visit) const {
    const Run* run = runs_.find(run_of(visit));
    const std::optional<uint32_t> slot = visit_slot(visit);
    if (run == nullptr || !slot) return {};
    const PipelineInfo& pipeline = *pipelines_[run->pipeline];
    const uint32_t stage = slots_[run->pipeline].at(*slot).stage;
    if (run->recorded != nullptr) return recorded_reading(*run->recorded, pipeline, stage);
    return drawn_reading(workload_.pipelines[run->pipeline].stages[stage], pipeline.stages[stage], stage, run_of(visit),
                         options_.seed);
  }

  // Runs come in the order of their instants.
  const RecordedRun* next_recorded(const Stream& of, uint64_t stream) {
    if (of.recorded.empty()) return nullptr;
    const std::optional<RecordedRun>& recorded = of.recorded.at(replayed_[stream]++);
    return recorded ? &*recorded : nullptr;
  }

  // Waits for the next request that comes by itself.
  void take_next() {
    pending_ = arrivals_.next();
    if (!pending_ || pending_->at >= options_.duration) return;
    loop_.at(begin_ + pending_->at, [this] {
      arrive(*pending_);
      take_next();
    });
  }

  void arrive(const Arrival& arrival) { submit(ModelId(arrival.model), arrival.stream, arrival.deadline(begin_)); }

  void on_completion(const Completion& completion) {
    --open_;
    if (completion.payload.value() == kPreload) return;
    runs_.erase(completion.id);
    const Arrival over{.model = completion.model.value(),
                       .stream = static_cast<uint32_t>(completion.payload.value()),
                       .slo = completion.deadline - completion.arrival};
    const std::optional<Arrival> next = arrivals_.follow(over, loop_.now() - begin_);
    if (!next || next->at >= options_.duration) return;
    loop_.at(begin_ + next->at, [this, arrival = *next] { arrive(arrival); });
  }

  // Until everything is answered and every action is over.
  void drain() {
    const TimePoint give_up = loop_.now() + kDrainMax;
    while (open_ > 0 || cluster_.controller().actions_outstanding() > 0) {
      FOLIOT_CHECK(loop_.now() < give_up);
      events_ += loop_.run_until(loop_.now() + Duration::milliseconds(10));
    }
  }

  SimulationReport report() {
    cluster_.checker().check_finished();
    FOLIOT_CHECK(cluster_.pages_agree());
    SimulationReport report = meter_.finish();
    if (!options_.faults.empty()) report.faults = FaultReport{.faults = options_.faults, .met = meter_.faults()};
    report.policy = options_.policy;
    report.dollars_per_hour = dollars_per_hour(options_);
    report.seed = options_.seed;
    report.simulated = loop_.now() - begin_;
    report.events = events_;
    report.event_hash = cluster_.event_hash();
    report.proposals_rejected = cluster_.controller().proposals_rejected();
    return report;
  }

  const SimulationOptions& options_;
  const Workload& workload_;
  const std::vector<Stream>& streams_;
  WorkloadArrivals arrivals_;
  const SimulationProgress& progress_;
  VirtualLoop loop_;
  VirtualCluster cluster_;
  SimulationMeter meter_;
  TimePoint begin_;
  Targets targets_;  // in force
  std::vector<std::shared_ptr<const PipelineInfo>> pipelines_;
  std::vector<StageSlots> slots_;  // by these
  struct Run {
    uint32_t pipeline = 0;                  // its position
    const RecordedRun* recorded = nullptr;  // null: what it visits is drawn
  };
  FlatMap<RequestId, Run> runs_;         // that are open
  std::map<uint64_t, size_t> replayed_;  // by streams: recorded runs that have come
  std::optional<Arrival> pending_;
  uint64_t next_request_ = 1;
  uint64_t open_ = 0;
  uint64_t events_ = 0;
};

Result<SimulationReport> run(const SimulationOptions& options, const Workload& workload, const ProfileTable& profiles,
                             const SimulationProgress& progress) {
  FOLIOT_ASSIGN_OR_RETURN(WorkloadArrivals arrivals, WorkloadArrivals::make(workload, options.seed));
  FOLIOT_ASSIGN_OR_RETURN(SharedModels models, make_models(options, workload, profiles));
  return Simulation(options, workload, std::move(arrivals), std::move(models), progress).run();
}

}  // namespace

Status check_targets(std::span<const TargetChange> changes, const SimulationOptions& options,
                     const Workload& workload) {
  const std::vector<VirtualDevices> devices = devices_of(options);
  for (const TargetChange& change : changes) {
    const ModelTarget& target = change.target;
    const auto wrong = [](const std::string& what) { return Status::invalid_argument("targets: " + what); };
    if (change.at < Duration() || change.at >= options.duration) return wrong("'at' must be within the duration");
    for (const std::string& name : change.models) {
      if (std::ranges::count(workload.groups, name, &ModelGroup::name) > 0) continue;
      return wrong(fmt::format("there are no models '{}'", name));
    }
    if (target.copies_least > target.copies_most) {
      return wrong(fmt::format("copies_least is {}, and must not be above copies_most, which is {}",
                               target.copies_least, target.copies_most));
    }
    if (target.batch_most == 0) return wrong("batch_most is 0, and must be at least 1");
    for (const std::string& kind : target.kinds) {
      if (std::ranges::count(devices, kind, &VirtualDevices::kind) > 0) continue;
      return wrong(fmt::format("there are no devices of kind '{}'; there are {}", kind, kind_names(options)));
    }
  }
  return Status();
}

Result<SimulationReport> simulate(const SimulationOptions& given, const Workload& workload,
                                  const ProfileTable& profiles, const SimulationProgress& progress) {
  FOLIOT_RETURN_IF_ERROR(check(given));
  FOLIOT_RETURN_IF_ERROR(check_targets(given.targets, given, workload));
  SimulationOptions options = given;
  const std::vector<Fault> drawn =
      draw_faults(options.random_faults, options.devices, options.warm_up, options.duration, Random(options.seed));
  options.faults.insert(options.faults.end(), drawn.begin(), drawn.end());
  FOLIOT_RETURN_IF_ERROR(check_faults(options.faults, options.devices, options.duration));
  if (!options.faults.empty() && !options.controller.health) options.controller.health.emplace();
  FOLIOT_ASSIGN_OR_RETURN(SimulationReport report, run(options, workload, profiles, progress));
  if (!report.faults) return report;
  options.faults = announced(std::move(options.faults));
  options.observer = nullptr;
  FOLIOT_ASSIGN_OR_RETURN(const SimulationReport second, run(options, workload, profiles, {}));
  report.faults->meetable = second.faults->met;
  return report;
}

}  // namespace foliot
