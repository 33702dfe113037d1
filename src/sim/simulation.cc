#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/simulation_meter.h"
#include "sim/virtual_cluster.h"
#include "sim/virtual_loop.h"
#include "workload/workload_arrivals.h"

namespace foliot {
namespace {

// A policy that has not answered what it was preloaded with by then never will.
constexpr Duration kPreloadMax = Duration::seconds(600);
// The same of the requests that are left when no more come.
constexpr Duration kDrainMax = Duration::seconds(3600) * 24;

using SharedModels = std::vector<std::shared_ptr<ModelInfo>>;

uint32_t pages_per_device(const SimulationOptions& options) {
  return static_cast<uint32_t>(options.page_cache_bytes / options.page_bytes);
}

Status check(const SimulationOptions& options) {
  const auto wrong = [](std::string_view what) { return Status::invalid_argument(std::string(what)); };
  if (options.devices == 0) return wrong("devices must be above 0");
  if (options.page_bytes == 0) return wrong("page_size must be above 0");
  if (options.page_cache_bytes / options.page_bytes == 0) return wrong("page_cache must hold a page");
  if (options.duration <= Duration()) return wrong("duration must be above 0");
  if (options.warm_up < Duration() || options.warm_up >= options.duration) {
    return wrong("warm_up must not be negative, and shorter than duration");
  }
  if (options.interval <= Duration()) return wrong("interval must be above 0");
  if (options.link < Duration() || options.link_jitter < Duration()) return wrong("link must not be negative");
  return Status();
}

Result<SharedModels> make_models(const SimulationOptions& options, const Workload& workload,
                                 const ProfileTable& profiles) {
  SharedModels models;
  const std::vector<std::string> names = workload.model_names();
  for (const ModelGroup& group : workload.groups) {
    const ModelProfile* profile = profiles.find(group.profile);
    if (profile == nullptr) {
      return Status::invalid_argument(fmt::format("models '{}': there is no profile '{}'; there are {}", group.name,
                                                  group.profile, profiles.names()));
    }
    for (uint32_t i = 0; i < group.count; ++i) {
      const ModelId id(static_cast<uint32_t>(models.size()));
      models.push_back(make_model_info(*profile, id, names[id.value()], options.page_bytes));
      models.back()->default_slo = group.slo;
      models.back()->weight = group.weight;
    }
    if (models.back()->pages > pages_per_device(options)) {
      return Status::invalid_argument(fmt::format("models '{}' take {} pages; a device has {}", group.name,
                                                  models.back()->pages, pages_per_device(options)));
    }
  }
  return models;
}

class Simulation {
 public:
  Simulation(const SimulationOptions& options, const Workload& workload, WorkloadArrivals arrivals, SharedModels models,
             const SimulationProgress& progress)
      : options_(options),
        streams_(workload.streams),
        arrivals_(std::move(arrivals)),
        progress_(progress),
        cluster_(loop_,
                 {.seed = options.seed,
                  .devices = options.devices,
                  .pages_per_device = pages_per_device(options),
                  .models_max = static_cast<uint32_t>(models.size()),
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
    for (auto& model : models) cluster_.add_model(std::move(model));
  }

  Result<SimulationReport> run() {
    if (options_.preload) FOLIOT_RETURN_IF_ERROR(preload());
    begin_ = loop_.now();
    meter_.begin(begin_);
    if (!options_.faults.empty()) cluster_.schedule(options_.faults);
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
    uint64_t pages_left = uint64_t{pages_per_device(options_)} * options_.devices;
    for (const auto& model : cluster.models) {
      if (model->pages > pages_left) break;
      pages_left -= model->pages;
      submit(model->id, kPreload, TimePoint::infinite_future());
    }
    const TimePoint give_up = loop_.now() + kPreloadMax;
    while (open_ > 0 && loop_.now() < give_up) loop_.run_until(loop_.now() + Duration::milliseconds(10));
    if (open_ == 0) return Status();
    return Status::internal(fmt::format("{} left {} best-effort requests unanswered for {} s", options_.policy, open_,
                                        kPreloadMax.to_seconds()));
  }

  void submit(ModelId model, uint64_t stream, TimePoint deadline) {
    ++open_;
    Request request{.id = RequestId(next_request_++),
                    .model = model,
                    .payload = PayloadHandle(stream),
                    .arrival = loop_.now(),
                    .deadline = deadline};
    if (stream != kPreload && !streams_[stream].tenant.empty()) {
      request.tenant = tenant_named(streams_[stream].tenant);
      request.tenant_weight = streams_[stream].weight;
    }
    cluster_.submit(request);
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
    report.seed = options_.seed;
    report.simulated = loop_.now() - begin_;
    report.events = events_;
    report.event_hash = cluster_.event_hash();
    report.proposals_rejected = cluster_.controller().proposals_rejected();
    return report;
  }

  const SimulationOptions& options_;
  const std::vector<Stream>& streams_;
  WorkloadArrivals arrivals_;
  const SimulationProgress& progress_;
  VirtualLoop loop_;
  VirtualCluster cluster_;
  SimulationMeter meter_;
  TimePoint begin_;
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

Result<SimulationReport> simulate(const SimulationOptions& given, const Workload& workload,
                                  const ProfileTable& profiles, const SimulationProgress& progress) {
  FOLIOT_RETURN_IF_ERROR(check(given));
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
