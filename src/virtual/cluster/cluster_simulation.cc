#include "virtual/cluster/cluster_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/pipeline_registry.h"
#include "foundation/base/check.h"
#include "load/workload/workload_arrivals.h"

namespace foliot {
namespace {

// Requests come from here on; until then nodes find one another.
constexpr Duration kBegin = Duration::seconds(1);
constexpr Duration kElectedBegin = Duration::seconds(4);  // where a controller is chosen before
// How often it is looked at whether all has settled, and whether any request waits too long.
constexpr Duration kClusterCheckInterval = Duration::milliseconds(100);
// Workers see a change of their folders within this.
constexpr Duration kScanMax = Duration::milliseconds(1500);
// What went wrong with a link is seen within this: a reset that comes late, or by silence.
constexpr Duration kAftermath = Duration::seconds(5);
// Then one controller leads again.
constexpr Duration kLeadsWithin = Duration::seconds(3);
constexpr uint32_t kStoreFaults = 4;
constexpr Duration kStoreFaultMax = Duration::seconds(3);
// Of a model that can be cut; each takes as long.
constexpr uint32_t kOperators = 20;
// Of the requests that come when nothing goes wrong any more.
constexpr Duration kProbeSlo = Duration::seconds(20);
// Rows are larger where models have elements, and runs hold more of them.
constexpr uint64_t kElementsStaging = 256 << 10;
constexpr uint64_t kElementsHeld = 32 << 10;
// Then nothing is in flight: outputs are waited for, and the last ones are on their way.
constexpr Duration kRest = kClusterTimeouts.answer + Duration::seconds(2);

std::string address(const std::string& host, uint16_t port) { return fmt::format("{}:{}", host, port); }

Result<std::map<std::string, ModelInfo>> make_models(const ClusterSimulationOptions& options, const Workload& workload,
                                                     const ProfileTable& profiles) {
  std::map<std::string, ModelInfo> models;
  const std::vector<std::string> names = workload.model_names();
  uint32_t next = 0;
  for (const ModelGroup& group : workload.groups) {
    const ModelProfile* profile = profiles.find(group.profile);
    if (profile == nullptr) {
      return Status::invalid_argument(fmt::format("models '{}': there is no profile '{}'; there are {}", group.name,
                                                  group.profile, profiles.names()));
    }
    for (uint32_t i = 0; i < group.count; ++i, ++next) {
      ModelInfo model = *make_model_info(*profile, ModelId(next), names[next], options.page_bytes);
      model.default_slo = group.slo;
      model.weight = group.weight;
      for (uint32_t end = 1; options.contexts > 1 && end <= kOperators; ++end) {
        model.only().operator_ends.push_back(end / double{kOperators});
      }
      if (model.only().pages * options.page_bytes > options.page_cache_bytes) {
        return Status::invalid_argument(fmt::format("models '{}' take {} pages; page_cache holds {}", group.name,
                                                    model.only().pages, options.page_cache_bytes / options.page_bytes));
      }
      models.emplace(model.name, model);
    }
  }
  return models;
}

// The inputs of a model from what one stage made, or from the first of several; with elements there are three.
std::string inputs_from(const std::vector<std::string>& stages, bool elements) {
  std::string inputs;
  for (uint32_t tensor = 0; tensor < (elements ? kSimulatedTensors : 1); ++tensor) {
    std::vector<std::string> sources;
    for (const std::string& stage : stages)
      sources.push_back(fmt::format("\"{}.{}\"", stage, kSimulatedOutputs[tensor]));
    inputs += fmt::format("{}{} = [{}]", tensor == 0 ? "" : ", ", kSimulatedInputs[tensor], fmt::join(sources, ", "));
  }
  return inputs;
}

Pipelines::Pipeline make_pipeline(const std::vector<std::string>& models, bool elements) {
  const std::string text = fmt::format(
      R"(
[[stage]]
name = "first"
model = "{0}"
inputs = {{ {4} }}
[[stage]]
name = "second"
model = "{1}"
inputs = {{ {5} }}
when = [{{ output = "first.y", value = "element", element = 1, below = {7} }}]
[[stage]]
name = "third"
model = "{2}"
inputs = {{ {6} }}
[[stage]]
name = "fourth"
model = "{3}"
inputs = {{ {5} }}
[[output]]
name = "first"
from = "first.y"
[[output]]
name = "second"
from = "second.y"
fill = 0
[[output]]
name = "third"
from = "third.y"
[[output]]
name = "fourth"
from = "fourth.y"
)",
      models[0], models[1], models[2], models[3], elements ? R"(x = "x", all = "all", n = "n")" : R"(x = "x")",
      inputs_from({"first"}, elements), inputs_from({"second", "first"}, elements), kSimulatedLimit);
  return {{}, kSimulatedPipeline, lines_of(text)};
}

Pipelines::Pipeline make_elements_pipeline(const std::vector<std::string>& models) {
  const std::string text = fmt::format(
      R"(
[[stage]]
name = "detect"
model = "{0}"
inputs = {{ x = "x", all = "all", n = "n" }}
[[stage]]
name = "crop"
model = "{1}"
for_each = {{ count = "detect.count", at_most = {4} }}
inputs = {{ x = "detect.parts[]", all = "detect.parts", n = "n" }}
[[stage]]
name = "mark"
model = "{2}"
for_each = {{ count = "detect.count", at_most = {4} }}
inputs = {{ x = "all[]", all = "all", n = "detect.count" }}
[[stage]]
name = "classify"
model = "{3}"
for_each = {{ count = "detect.count", at_most = {4} }}
inputs = {{ x = "crop.y[]", all = "crop.parts[]", n = "crop.count[]" }}
when = [{{ output = "detect.y", value = "element", element = 1, below = {5} }}]
[[stage]]
name = "join"
model = "{0}"
inputs = {{ x = "detect.y", all = ["classify.y", "crop.y"], n = "n" }}
[[output]]
name = "detect"
from = "detect.y"
[[output]]
name = "crop"
from = "crop.y"
[[output]]
name = "crop_parts"
from = "crop.parts"
[[output]]
name = "mark"
from = "mark.y"
[[output]]
name = "classify"
from = "classify.y"
fill = 0
[[output]]
name = "join"
from = "join.y"
)",
      models[0], models[1], models[2], models[3], kSimulatedElements, kSimulatedLimit);
  return {{}, kSimulatedElementsPipeline, lines_of(text)};
}

Pipelines make_pipelines(const ClusterSimulationOptions& options, const std::vector<std::string>& models) {
  const bool elements = options.elements_share > 0;
  Pipelines pipelines;  // by name
  if (elements) pipelines.pipelines.push_back(make_elements_pipeline(models));
  if (options.pipeline_share > 0) pipelines.pipelines.push_back(make_pipeline(models, elements));
  return pipelines;
}

Tasks make_tasks(const std::vector<std::string>& models) {
  const std::string text = fmt::format(R"(
[[variant]]
model = "{}"
accuracy = 0.5
[[variant]]
model = "{}"
accuracy = 0.9
)",
                                       models[0], models[1]);
  return {{{{}, kSimulatedTask, lines_of(text)}}};
}

class ClusterSimulation {
 public:
  ClusterSimulation(const ClusterSimulationOptions& options, std::vector<std::string> names,
                    std::map<std::string, ModelInfo> models, WorkloadArrivals arrivals)
      : options_(options),
        names_(std::move(names)),
        random_(options.seed),
        network_(loop_, options.network, random_.next(), &checker_),
        arrivals_(std::move(arrivals)) {
    std::string controller;
    for (uint32_t i = 0; i < options.controllers; ++i) {
      const std::string name = i == 0 ? "controller" : fmt::format("controller-{}", i);
      controllers_.push_back(std::make_unique<SimulatedController>(world_, name, draw_clock(), options.controller,
                                                                   options.make_policy, Duration::seconds(2),
                                                                   options.make_scaler));
      if (options.controllers > 1) controllers_.back()->elect_by(store_, random_.next());
      controller += (i == 0 ? "" : ",") + address(name, SimulatedController::kPort);
    }
    const SimulatedWorkerOptions worker{
        .page_count = static_cast<uint32_t>(options.page_cache_bytes / options.page_bytes),
        .lanes = options.lanes,
        .contexts = options.contexts,
        .noise = options.noise,
        .elements = options.elements_share > 0,
        .staging_bytes = options.elements_share > 0 ? kElementsStaging : SimulatedWorkerOptions().staging_bytes,
        .held_bytes = options.elements_share > 0 ? kElementsHeld : SimulatedWorkerOptions().held_bytes,
        .models = std::move(models),
        .pipelines = make_pipelines(options, names_),
        .tasks = options.task_share > 0 ? make_tasks(names_) : Tasks(),
        .controller = controller};
    pipelines_ = worker.pipelines.pipelines.size();
    for (uint32_t i = 0; i < options.workers; ++i) {
      workers_.push_back(
          std::make_unique<SimulatedWorker>(world_, fmt::format("worker-{}", i), draw_clock(), worker, random_.next()));
    }
    SimulatedFrontendOptions frontend = options.frontend;
    frontend.controller = controller;
    for (uint32_t i = 0; i < options.frontends; ++i) {
      frontends_.push_back(std::make_unique<SimulatedFrontend>(world_, fmt::format("frontend-{}", i), draw_clock(),
                                                               frontend, random_.next(), tally_));
    }
    nodes_.push_back(controllers_.front().get());
    for (const auto& node : workers_) nodes_.push_back(node.get());
    for (const auto& node : frontends_) nodes_.push_back(node.get());
    for (size_t i = 1; i < controllers_.size(); ++i) nodes_.push_back(controllers_[i].get());
  }

  Result<ClusterSimulationReport> run() {
    for (const std::string& name : names_) set_model(name, 1, Duration());
    for (SimulatedNode* node : nodes_) node->start();
    schedule_faults();
    schedule_store_faults();
    take_next();
    look();
    events_ += run_until(TimePoint() + begin_ + options_.duration);
    heal();
    settle();
    if (!defines_) {  // none are shown, and then they are again
      set_defines(true);
      settle();
    }
    probe();
    rest();
    if (checker_.ok()) return report();
    return Status::internal(fmt::format("seed {}: {}", options_.seed, checker_.failure()));
  }

 private:
  NodeClock draw_clock() {
    const int64_t drift = options_.clock_drift_per_million;
    const auto drawn = static_cast<int64_t>(random_.below(static_cast<uint64_t>(2 * drift + 1)));
    return {options_.clock_offset.scaled(random_.uniform()), drawn - drift};
  }

  // Until then, or until a promise is broken.
  uint64_t run_until(TimePoint end) {
    uint64_t events = 0;
    while (checker_.ok() && loop_.now() < end) {
      events += loop_.run_until(std::min(end, loop_.now() + Duration::milliseconds(10)));
    }
    return events;
  }

  void look() {
    for (const auto& frontend : frontends_) frontend->check();
    loop_.at(loop_.now() + kClusterCheckInterval, [this] { look(); });
  }

  // ---- Requests ----

  void take_next() {
    pending_ = arrivals_.next();
    if (!pending_ || pending_->at >= options_.duration) return;
    loop_.at(TimePoint() + begin_ + pending_->at, [this] {
      arrive(*pending_);
      take_next();
    });
  }
  void arrive(const Arrival& arrival) {
    SimulatedFrontend& frontend = *frontends_[random_.below(frontends_.size())];
    const uint64_t tag = open_.size();
    open_.push_back(arrival);
    const bool is_run = options_.pipeline_share > 0 && random_.uniform() < options_.pipeline_share;
    const bool has_elements = !is_run && options_.elements_share > 0 && random_.uniform() < options_.elements_share;
    const bool is_task = !is_run && !has_elements && options_.task_share > 0 && random_.uniform() < options_.task_share;
    frontend.ask(is_run         ? kSimulatedPipeline
                 : has_elements ? kSimulatedElementsPipeline
                 : is_task      ? kSimulatedTask
                                : names_[arrival.model],
                 arrival.slo, tag, [this](uint64_t over, const std::string&) { follow(open_[over]); });
  }
  void follow(const Arrival& over) {
    const std::optional<Arrival> next = arrivals_.follow(over, loop_.now() - TimePoint() - begin_);
    if (!next || next->at >= options_.duration) return;
    const uint64_t tag = open_.size();
    open_.push_back(*next);
    loop_.at(TimePoint() + begin_ + next->at, [this, tag] { arrive(Arrival(open_[tag])); });
  }

  // ---- Models ----

  void set_model(const std::string& name, uint64_t version, Duration scan_max) {
    versions_[name] = version;
    last_versions_[name] = std::max(last_versions_[name], version);
    const auto model = static_cast<uint32_t>(std::ranges::find(names_, name) - names_.begin());
    for (uint32_t i = 0; i < workers_.size(); ++i) {
      loop_.at(loop_.now() + scan_max.scaled(random_.uniform()),
               [this, i, model] { workers_[i]->set_model(names_[model], versions_[names_[model]]); });
    }
  }
  void set_defines(bool defines) {
    defines_ = defines;
    for (const auto& worker : workers_) {
      loop_.at(loop_.now() + kScanMax.scaled(random_.uniform()), [this, &worker] { worker->set_defines(defines_); });
    }
  }
  bool has_definitions() const { return pipelines_ > 0 || options_.task_share > 0; }
  void change_model(const ClusterFault& fault) {
    if (fault.variant == 2 && has_definitions()) set_defines(!defines_);
    const std::string& name = names_[fault.model];
    const bool there = versions_[name] > 0;
    if (fault.variant == 0 && there) return set_model(name, 0, kScanMax);
    // What comes back may be the version that was there before.
    const bool same = !there && fault.variant == 1;
    set_model(name, last_versions_[name] + (same ? 0 : 1), kScanMax);
  }

  // ---- Faults ----

  void schedule_faults() {
    Random random = random_.fork();
    faults_ = draw_cluster_faults(options_.faults, options_.workers, options_.frontends, options_.controllers - 1,
                                  static_cast<uint32_t>(names_.size()), begin_, begin_ + options_.duration, random);
    for (ClusterFault& fault : faults_) {
      if (options_.faults_of_controllers && fault.node > 0) fault.node = static_cast<uint32_t>(nodes_.size()) - 1;
      loop_.at(TimePoint() + fault.at, [this, &fault] { begin(fault); });
      loop_.at(TimePoint() + fault.at + fault.length, [this, &fault] { end(fault); });
    }
  }
  // The store goes, and controllers are cut off from it, for a while each.
  void schedule_store_faults() {
    if (options_.controllers == 1 || options_.faults_of_controllers) return;
    Random random = random_.fork();
    for (uint32_t i = 0; i < kStoreFaults; ++i) {
      const TimePoint begin = TimePoint() + begin_ + options_.duration.scaled(random.uniform());
      const TimePoint end =
          std::min(begin + kStoreFaultMax.scaled(random.uniform()), TimePoint() + begin_ + options_.duration);
      const uint64_t which = random.below(options_.controllers + 1);
      SimulatedController* const node = which == 0 ? nullptr : controllers_[which - 1].get();
      const auto set = [this, node](bool broken) {
        node == nullptr ? void(store_.down = broken) : node->cut_off_from_store(broken);
      };
      loop_.at(begin, [set] { set(true); });
      loop_.at(end, [set] { set(false); });
    }
  }
  SimulatedWorker& worker(const ClusterFault& fault) { return *workers_[fault.node - 1]; }
  void begin(const ClusterFault& fault) {
    SimulatedNode& node = *nodes_[fault.node];
    const HostId other = nodes_[fault.other]->host();
    switch (fault.kind) {
      case ClusterFaultKind::kReset: network_.reset_some_link(); return;
      case ClusterFaultKind::kPartition: network_.block(other, node.host()); [[fallthrough]];
      case ClusterFaultKind::kOneWay: return network_.block(node.host(), other);
      case ClusterFaultKind::kDelay: return network_.set_extra_delay(node.host(), fault.delay);
      case ClusterFaultKind::kFreeze: return node.freeze();
      case ClusterFaultKind::kKill: return node.kill(false);
      case ClusterFaultKind::kCrash: return node.kill(true);
      case ClusterFaultKind::kLeave: return worker(fault).leave();
      case ClusterFaultKind::kFail: return worker(fault).set_failing(fault.variant != 1, fault.variant != 2);
      case ClusterFaultKind::kSlow: return worker(fault).set_slowdown(10);
      case ClusterFaultKind::kModel: return change_model(fault);
    }
  }
  void end(const ClusterFault& fault) {
    SimulatedNode& node = *nodes_[fault.node];
    const HostId other = nodes_[fault.other]->host();
    switch (fault.kind) {
      case ClusterFaultKind::kPartition: network_.unblock(other, node.host()); [[fallthrough]];
      case ClusterFaultKind::kOneWay: return network_.unblock(node.host(), other);
      case ClusterFaultKind::kDelay: return network_.set_extra_delay(node.host(), Duration());
      case ClusterFaultKind::kFreeze: return node.resume();
      case ClusterFaultKind::kKill:
      case ClusterFaultKind::kCrash: return node.start();
      case ClusterFaultKind::kLeave:
        node.kill(false);  // it was not done in time
        return node.start();
      case ClusterFaultKind::kFail: return worker(fault).set_failing(false, false);
      case ClusterFaultKind::kSlow: return worker(fault).set_slowdown(1);
      case ClusterFaultKind::kReset:
      case ClusterFaultKind::kModel: return;
    }
  }
  // All that ends by itself has ended; what has not, ends now, and all models come back.
  void heal() {
    for (SimulatedNode* node : nodes_) {
      node->resume();
      node->start();
    }
    for (const auto& worker : workers_) {
      worker->set_failing(false, false);
      worker->set_slowdown(1);
    }
    for (const std::string& name : names_) {
      if (versions_[name] == 0) set_model(name, last_versions_[name] + 1, kScanMax);
    }
  }

  // ---- Afterwards ----

  // The one that leads; null: none does, or several do.
  SimulatedController* leader() {
    SimulatedController* found = nullptr;
    for (const auto& controller : controllers_) {
      if (!controller->leads()) continue;
      if (found != nullptr) return nullptr;
      found = controller.get();
    }
    return found;
  }
  // Empty: every worker is taken in, and every front end shows what the folders hold and
  // reaches all workers.
  std::string unsettled() {
    SimulatedController* const controller = leader();
    if (controller == nullptr) return "not one controller leads";
    const Cluster& cluster = controller->service().controller().cluster();
    for (const auto& worker : workers_) {
      if (!worker->runs()) return fmt::format("{} does not run", worker->name());
      if (std::string what = worker->unsettled(); !what.empty()) return what;
    }
    if (controller->workers() != workers_.size()) return "the controller lacks a worker";
    const auto up = std::ranges::count_if(cluster.devices, [](const DeviceModel& device) { return device.up(); });
    if (static_cast<size_t>(up) != workers_.size()) return "a device is not up";
    for (const auto& frontend : frontends_) {
      if (frontend->shown() != versions_)
        return fmt::format("{} does not show the models as they are", frontend->name());
      if (frontend->shown(EntryRole::kPipeline).size() != (defines_ ? pipelines_ : 0)) {
        return fmt::format("{} does not show the pipelines as they are", frontend->name());
      }
      if (frontend->shown(EntryRole::kTask).size() != (defines_ && options_.task_share > 0 ? 1 : 0)) {
        return fmt::format("{} does not show the tasks as they are", frontend->name());
      }
      if (frontend->connections() != controllers_.size() + workers_.size())
        return fmt::format("{} lacks a link", frontend->name());
    }
    return {};
  }
  void settle() {
    const TimePoint begin = loop_.now();
    events_ += run_until(begin + kLeadsWithin);
    checker_.require(leader() != nullptr, "not one controller leads, though nothing is wrong");
    events_ += run_until(begin + kAftermath);
    std::string missing;
    while (checker_.ok() && loop_.now() - begin < options_.settle_max) {
      events_ += run_until(loop_.now() + kClusterCheckInterval);
      missing = unsettled();
      settled_ = loop_.now() - begin;
      if (missing.empty()) return;
    }
    checker_.fail(fmt::format("the cluster does not serve again: {}", missing));
  }
  // Everything can be served now.
  void probe() {
    uint64_t expected = 0;
    uint64_t ended = 0;
    std::string refusals;
    for (const auto& frontend : frontends_) {
      frontend->stop_cancelling();
      std::vector<std::string> names = names_;
      if (options_.pipeline_share > 0) names.emplace_back(kSimulatedPipeline);
      if (options_.elements_share > 0) names.emplace_back(kSimulatedElementsPipeline);
      if (options_.task_share > 0) names.emplace_back(kSimulatedTask);
      for (const std::string& name : names) {
        ++expected;
        frontend->ask(name, kProbeSlo, expected, [&](uint64_t, const std::string& refusal) {
          ++ended;
          if (!refusal.empty()) refusals += (refusals.empty() ? "" : ", ") + refusal;
        });
      }
    }
    const TimePoint give_up = loop_.now() + kProbeSlo * 2;
    while (checker_.ok() && ended < expected && loop_.now() < give_up) {
      events_ += run_until(loop_.now() + kClusterCheckInterval);
    }
    if (ended == expected && refusals.empty()) return;
    checker_.fail(
        fmt::format("of {} requests {} ended, though nothing is wrong; refused: {}", expected, ended, refusals));
  }
  void rest() {
    if (!checker_.ok()) return;
    for (const auto& node : controllers_) node->stop_scaling();
    events_ += run_until(loop_.now() + kRest);
    checker_.require(leader() != nullptr, "not one controller leads at the end");
    if (!checker_.ok()) return;
    ControllerService& service = leader()->service();
    Controller& controller = service.controller();
    checker_.require(controller.queued() == 0, "a request is left in the controller");
    checker_.require(controller.runs() == 0, "a run is left in the controller");
    checker_.require(controller.actions_outstanding() == 0, "an action is left in the controller");
    checker_.require(controller.proposals_rejected() == 0, "the controller turned down what the policy proposed");
    for (const auto& frontend : frontends_)
      checker_.require(frontend->in_flight() == 0, "a request is left in a front end");
    for (const auto& worker : workers_) {
      checker_.require(worker->idle(), "an action is left in a worker");
      checker_.require(!worker->holds_payloads(), "a worker holds outputs whose consumers are over");
    }
    check_pages(controller.cluster());
    service.drain();
    events_ += run_until(loop_.now() + Duration::seconds(1));
    checker_.require(service.drained(), "the controller counts a request that has ended");
    const uint64_t ended = tally_.served + tally_.turned_away + tally_.lost +
                           std::accumulate(tally_.refused.begin(), tally_.refused.end(), uint64_t{0});
    checker_.require(ended == tally_.submitted, "not as many requests ended as came");
  }
  // What the pages of all workers hold is what the controller believes.
  void check_pages(const Cluster& cluster) {
    std::multiset<std::multiset<uint64_t>> believed;
    for (const DeviceModel& device : cluster.devices) {
      std::multiset<uint64_t> contents;
      for (const auto& model : cluster.models) {
        if (model != nullptr && device.held(model->id) == Residency::kLoaded) contents.insert(content_hash(*model));
      }
      if (device.up()) believed.insert(contents);
    }
    std::multiset<std::multiset<uint64_t>> held;
    for (const auto& worker : workers_) held.insert(worker->held());
    checker_.require(believed == held, "the pages of a worker hold what the controller does not believe");
  }

  ClusterSimulationReport report() {
    ClusterSimulationReport report{.seed = options_.seed,
                                   .requests = tally_,
                                   .faults = {},
                                   .links = network_.links(),
                                   .cuts = checker_.cuts(),
                                   .settled = settled_,
                                   .simulated = loop_.now() - TimePoint(),
                                   .events = events_,
                                   .event_hash = hash_.value()};
    for (const ClusterFault& fault : faults_) ++report.faults[fault.kind];
    return report;
  }

  const ClusterSimulationOptions& options_;
  const Duration begin_ = options_.controllers == 1 ? kBegin : kElectedBegin;
  const std::vector<std::string> names_;
  Random random_;
  VirtualLoop loop_;
  ClusterChecker checker_{loop_};
  EventHash hash_;
  VirtualNetwork network_;
  ClusterWorld world_{loop_, network_, checker_, hash_};
  WorkloadArrivals arrivals_;
  ClusterTally tally_;
  SimulatedLeaderStore store_;
  std::vector<std::unique_ptr<SimulatedController>> controllers_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::vector<std::unique_ptr<SimulatedFrontend>> frontends_;
  std::vector<SimulatedNode*> nodes_;
  ModelVersions versions_;       // what the folders are to hold; 0: not there
  ModelVersions last_versions_;  // the largest so far
  size_t pipelines_ = 0;         // that are to be shown
  bool defines_ = true;          // whether folders are to have the files of pipelines and tasks
  std::vector<ClusterFault> faults_;
  std::vector<Arrival> open_;  // by tag
  std::optional<Arrival> pending_;
  Duration settled_;
  uint64_t events_ = 0;
};

}  // namespace

Result<ClusterSimulationReport> simulate_cluster(const ClusterSimulationOptions& options, const Workload& workload,
                                                 const ProfileTable& profiles) {
  if (options.controllers == 0 || options.workers == 0 || options.frontends == 0) {
    return Status::invalid_argument("controllers, workers and frontends must be above 0");
  }
  if ((options.pipeline_share > 0 || options.elements_share > 0) && workload.model_names().size() < 4) {
    return Status::invalid_argument(
        fmt::format("runs of pipelines need four models, and there are {}", workload.model_names().size()));
  }
  if (options.task_share > 0 && workload.model_names().size() < 2) {
    return Status::invalid_argument(
        fmt::format("calls of tasks need two models, and there are {}", workload.model_names().size()));
  }
  FOLIOT_ASSIGN_OR_RETURN(auto models, make_models(options, workload, profiles));
  FOLIOT_ASSIGN_OR_RETURN(WorkloadArrivals arrivals, WorkloadArrivals::make(workload, options.seed));
  return ClusterSimulation(options, workload.model_names(), std::move(models), std::move(arrivals)).run();
}

}  // namespace foliot
