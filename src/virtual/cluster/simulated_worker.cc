// SimulatedWorker: its process, with WorkerLink before the executors, and a ModelHost's part:
// it adds models and removes them as its folder changes.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cluster/sessions/controller_addresses.h"
#include "foundation/base/check.h"
#include "virtual/cluster/cluster_nodes.h"
#include "virtual/world/virtual_worker.h"

namespace foliot {
namespace {

// An INFER waits for its inputs in the staging area; so many more pass the executors.
constexpr uint32_t kActionsMax = 128;
constexpr uint64_t kIoCacheBytes = uint64_t{1} << 20;
// ActionIds from here on are the worker's own (cluster/sessions/worker_link.cc).
constexpr uint64_t kOwnActions = uint64_t{1} << 63;
// How long a model is still held, for those that found it in the catalog.
constexpr Duration kLeaseMax = Duration::milliseconds(50);
// How often it is looked for models that are gone.
constexpr Duration kSweepInterval = Duration::milliseconds(20);

}  // namespace

struct SimulatedWorker::Process : private OutcomeSink, private Observer, private WorkObserver {
  Process(SimulatedWorker& of, uint64_t seed)
      : node(of),
        link({.name = of.name_,
              .models_max = of.options_.models_max,
              .page_count = of.options_.page_count,
              .lane_count = of.options_.lanes.count,
              .context_count = of.options_.contexts,
              .actions_max = kActionsMax,
              .staging_bytes = of.options_.staging_bytes,
              .held_bytes = of.options_.held_bytes},
             {.log = [](Severity, const std::string&) {},
              .on_registered = [this](size_t) { on_registered(); },
              .on_drained = [this] { on_drained(); }}),
        device(of.options_.noise, seed, of.options_.lanes, link.payloads()),
        drivers(of.world_.loop, device, work(), of.options_.lanes.count, of.clock_),
        worker({.page_count = of.options_.page_count,
                .io_cache_bytes = kIoCacheBytes,
                .models_max = of.options_.models_max,
                .lane_count = of.options_.lanes.count,
                .context_count = of.options_.contexts},
               device, *this, drivers.wakers()),
        links(of.world_.network, of.host_, of.clock_, {.role = Role::kWorker}, link) {
    drivers.drive(worker);
    link.add_observer(*this);
    offer(of.defines_);
    link.start({&worker}, fmt::format("0.0.0.0:{}", kPort), links);
    links.listen(kPort);
  }

  WorkObserver& work() { return *this; }

  void offer(bool defined) {
    link.offer(defined ? node.options_.pipelines : Pipelines());
    link.offer(defined ? node.options_.tasks : Tasks());
  }

  // ---- The folder ----

  void set_model(const std::string& name, uint64_t version) {
    const auto found = served.find(name);
    if (found != served.end() && found->second.version == version) return;
    if (version == 0 && found == served.end()) return;
    std::optional<Served> former;
    if (found != served.end()) former = found->second;
    if (version == 0) {
      served.erase(found);
    } else {
      const ModelId id = take_id();
      const auto info = simulated_version(node.options_.models.at(name), version, id, node.options_.elements);
      FOLIOT_CHECK(link.check(*info).ok());
      worker.add_model(device.add({info}).value());
      link.add_model(info);
      served[name] = {id, version};
    }
    if (former) retire(former->id, name, former->version);
  }
  ModelId take_id() {
    if (free_ids.empty()) return ModelId(next_id++);
    const ModelId id = free_ids.back();
    free_ids.pop_back();
    return id;
  }
  // ModelHost does the rest when it sweeps, not at once.
  void retire(ModelId id, std::string name, uint64_t version) {
    retiring[id] = {std::move(name), version};
    const Duration lease = kLeaseMax.scaled(node.random_.uniform());
    node.world_.loop.at(node.world_.loop.now() + lease, [this, id] {
      links.post([this, id] {
        link.remove_model(id, [this, id] {
          node.world_.loop.at(node.world_.loop.now() + kSweepInterval,
                              [this, id] { links.post([this, id] { sweep(id); }); });
        });
      });
    });
  }
  void sweep(ModelId id) {
    worker.remove_model(id);
    device.remove(id);
    free_ids.push_back(id);
    retiring.erase(id);
  }

  // ---- What must hold ----

  // Of earlier sessions nothing is under way when a new one begins.
  void on_registered() {
    node.world_.checker.require(running.empty(), "a worker is taken in while it runs an action of an earlier session");
    ++session;
  }
  void on_action(const Action& action, TimePoint /*now*/) override { running[action.id] = session; }
  void on_outcome(const Action& action, const Outcome& /*outcome*/, TimePoint /*now*/) override {
    running.erase(action.id);
  }
  void on_work(ExecutorKind kind, const Action& action, TimePoint start, TimePoint end) override {
    ClusterChecker& checker = node.world_.checker;
    const auto given = running.find(action.id);
    checker.require(given != running.end(), "an executor works on an action that is over, or was never given");
    checker.require(given == running.end() || given->second == session || action.id.value() >= kOwnActions,
                    "an executor works on an action of an earlier session");
    const auto use = [&](TimePoint& busy) {
      checker.require(start >= busy, "an executor, or a lane, does two things at a time");
      busy = end;
    };
    if (kind == ExecutorKind::kExec) {
      for (uint32_t lane = action.lanes.first; lane < action.lanes.end(); ++lane) use(lanes_busy_until.at(lane));
    } else {
      use(busy_until[static_cast<size_t>(kind)]);
    }
    if (kind != ExecutorKind::kLoad && kind != ExecutorKind::kExec) return;
    checker.require(start >= action.earliest && start <= action.latest, "LOAD or EXEC begins outside of its window");
  }
  void report(const Outcome& outcome) override { link.report(outcome); }
  void on_drained() {
    if (std::exchange(drained, true)) return;
    node.world_.loop.at(node.world_.loop.now(), [this] {
      links.post([this] {
        links.stop();
        node.end_process();
        node.ended();
      });
    });
  }

  SimulatedWorker& node;
  WorkerLink link;
  ComputingDevice device;
  WorkerDrivers drivers;
  Worker worker;
  VirtualLinkLoop links;

  struct Served {
    ModelId id;
    uint64_t version = 0;
  };
  std::map<std::string, Served> served;
  std::vector<ModelId> free_ids;
  uint32_t next_id = 0;
  std::map<ModelId, std::pair<std::string, uint64_t>> retiring;  // name and version
  std::map<ActionId, uint64_t> running;                          // the session that they are of
  uint64_t session = 0;
  std::array<TimePoint, kExecutorKinds> busy_until{};   // of all but EXEC
  std::array<TimePoint, kLanesMax> lanes_busy_until{};  // of EXEC
  bool drained = false;
};

SimulatedWorker::SimulatedWorker(ClusterWorld& world, const std::string& name, const NodeClock& clock,
                                 const SimulatedWorkerOptions& options, uint64_t seed)
    : SimulatedNode(world, name, clock), options_(options), random_(seed) {}
SimulatedWorker::~SimulatedWorker() = default;

void SimulatedWorker::make_process() {
  Process& process = *processes_.emplace_back(std::make_unique<Process>(*this, random_.next()));
  for (const auto& [name, version] : folder_) process.set_model(name, version);
  FOLIOT_CHECK(keep_controllers(process.links, options_.controller).ok());
}

void SimulatedWorker::end_process() { pause_process(true); }

void SimulatedWorker::pause_process(bool paused) {
  WorkerDrivers& drivers = processes_.back()->drivers;
  paused ? drivers.pause() : drivers.resume();
}

VirtualLinkLoop& SimulatedWorker::links() { return processes_.back()->links; }

void SimulatedWorker::set_model(const std::string& name, uint64_t version) {
  folder_[name] = version;
  if (!runs()) return;
  Process* process = processes_.back().get();
  process->links.post([process, name, version] { process->set_model(name, version); });
}

void SimulatedWorker::set_defines(bool defines) {
  defines_ = defines;
  if (!runs()) return;
  Process* process = processes_.back().get();
  process->links.post([process, defines] { process->offer(defines); });
}

void SimulatedWorker::leave() {
  if (!runs()) return;
  Process* process = processes_.back().get();
  process->links.post([process] { process->link.drain(); });
}

void SimulatedWorker::set_failing(bool loads, bool execs) {
  if (runs()) processes_.back()->device.set_failing(loads, execs);
}

void SimulatedWorker::set_slowdown(double factor) {
  if (runs()) processes_.back()->device.set_slowdown(factor);
}

std::multiset<uint64_t> SimulatedWorker::held() const { return processes_.back()->device.held(); }

bool SimulatedWorker::idle() const { return processes_.back()->running.empty(); }

bool SimulatedWorker::holds_payloads() const { return processes_.back()->link.held().used_bytes() > 0; }

std::string SimulatedWorker::unsettled() const {
  const Process& process = *processes_.back();
  for (const auto& [name, version] : folder_) {
    const auto found = process.served.find(name);
    const uint64_t served = found == process.served.end() ? 0 : found->second.version;
    if (served != version) return fmt::format("{} offers version {} of {}, not {}", name_, served, name, version);
  }
  // Of a version that has come back before all workers had withdrawn it, the one that was
  // withdrawn is served on.
  for (const auto& [id, model] : process.retiring) {
    const auto& [name, version] = model;
    if (folder_.at(name) != version) return fmt::format("version {} of {} is not released by {}", version, name, name_);
  }
  return {};
}

}  // namespace foliot
