// The nodes of a simulated cluster: a controller, workers and front ends, each one process
// on a host of its own, made of the code that runs in production (cluster/): sessions,
// registration, model changes and links, over the bytes of a VirtualNetwork.
//
// A node outlives its processes: kill() ends one, start() begins another, which knows
// nothing of the one before, but for what a machine keeps: a worker's folder of models.
#ifndef FOLIOT_VIRTUAL_CLUSTER_CLUSTER_NODES_H_
#define FOLIOT_VIRTUAL_CLUSTER_CLUSTER_NODES_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/election/election.h"
#include "cluster/election/memory_leader_store.h"
#include "cluster/sessions/controller_service.h"
#include "cluster/sessions/frontend_link.h"
#include "cluster/sessions/worker_link.h"
#include "engine/worker/worker.h"
#include "foundation/base/random.h"
#include "foundation/core/catalog.h"
#include "foundation/core/request_origin.h"
#include "virtual/cluster/cluster_checker.h"
#include "virtual/cluster/simulated_scaler.h"
#include "virtual/cluster/virtual_network.h"
#include "virtual/world/checker.h"
#include "virtual/world/computing_device.h"
#include "virtual/world/event_hash.h"
#include "virtual/world/executor_driver.h"
#include "virtual/world/node_clock.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

// What all nodes share; all of it outlives them.
struct ClusterWorld {
  VirtualLoop& loop;
  VirtualNetwork& network;
  ClusterChecker& checker;
  EventHash& hash;
};

// A process's host and clock, and whether it runs.
class SimulatedNode {
 public:
  SimulatedNode(ClusterWorld& world, const std::string& name, const NodeClock& clock)
      : world_(world), name_(name), host_(world.network.add_host(name)), clock_(clock) {}
  virtual ~SimulatedNode() = default;
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;

  // All of these do nothing where there is nothing to do.
  void start();
  void kill(bool machine_crashes);
  void freeze();
  void resume();

  const std::string& name() const { return name_; }
  HostId host() const { return host_; }
  bool runs() const { return runs_; }
  // Since it was started or went on; zero while it stands still.
  Duration awake_for() const { return frozen_ ? Duration() : world_.loop.now() - awake_since_; }

 protected:
  virtual VirtualLinkLoop& links() = 0;
  virtual void make_process() = 0;
  virtual void end_process() = 0;  // it may be called no more, but by the loop
  virtual void pause_process(bool /*paused*/) {}
  TimePoint now() const { return clock_.local(world_.loop.now()); }
  // The process has ended by itself.
  void ended() { runs_ = frozen_ = false; }

  ClusterWorld& world_;
  const std::string name_;
  const HostId host_;
  const NodeClock clock_;

 private:
  bool runs_ = false;
  bool frozen_ = false;
  TimePoint awake_since_;
};

// ---- Controllers ----

// The store of the leader's record, for several controllers. Calls take a few milliseconds; while it is down they fail
// after `timeout`.
struct SimulatedLeaderStore {
  MemoryLeaderStore kept;
  bool down = false;
  Duration timeout = Duration::milliseconds(500);
};

class SimulatedController : public SimulatedNode {
 public:
  static constexpr uint16_t kPort = 8100;
  // `make_scaler`: empty: there is none.
  SimulatedController(ClusterWorld& world, const std::string& name, const NodeClock& clock,
                      const ControllerOptions& options, const Controller::PolicyFactory& make_policy,
                      Duration clock_error, const MakeScaler& make_scaler = {});
  ~SimulatedController() override;

  // Before it is started: it is one of several that agree by this store, which outlives it.
  void elect_by(SimulatedLeaderStore& store, uint64_t seed) {
    store_ = &store;
    random_ = Random(seed);
  }
  void cut_off_from_store(bool cut) { cut_off_ = cut; }
  // It runs, and leads; the only one always does.
  bool leads();

  // REQUIRES of the rest: it runs.
  ControllerService& service();
  size_t workers() const;
  // What was wanted last stays.
  void stop_scaling() { scales_ = false; }

 protected:
  VirtualLinkLoop& links() override;
  void make_process() override;
  void end_process() override;

 private:
  struct Process;
  void scale_later(Process& process);
  // All of the process that runs; a process that has ended makes no more calls.
  void step_election(Process& process);
  void call_store(Process& process, const Election::Call& call);
  void follow_election(Process& process);
  const ControllerOptions options_;
  const Controller::PolicyFactory make_policy_;
  const Duration clock_error_;
  const MakeScaler make_scaler_;
  bool scales_ = true;
  SimulatedLeaderStore* store_ = nullptr;  // null: it is the only one
  bool cut_off_ = false;
  Random random_{0};                                 // of the store's delays
  std::shared_ptr<Election> election_;               // stays when another has replaced this one
  bool replaced_ = false;                            // its parts are made anew
  std::deque<std::function<void()>> answers_;        // of the store, in the order of the calls
  std::vector<std::unique_ptr<Process>> processes_;  // the last one may run
};

// ---- A worker ----

// A model's version by name; what a folder of models holds.
using ModelVersions = std::map<std::string, uint64_t>;

struct SimulatedWorkerOptions {
  uint32_t page_count = 0;
  uint32_t models_max = 64;
  SimulatedLanes lanes{};
  uint32_t contexts = 1;
  NoiseOptions noise;
  // Pipelines visit stages for each element: models have all tensors of a SimulatedRow.
  bool elements = false;
  uint64_t staging_bytes = 64 << 10;
  uint64_t held_bytes = 4 << 10;
  // What all versions of each model have in common.
  std::map<std::string, ModelInfo> models;
  Pipelines pipelines;
  Tasks tasks;
  std::string controller;  // HOST:PORT of each, with commas between them
};

class SimulatedWorker : public SimulatedNode {
 public:
  static constexpr uint16_t kPort = 8200;
  SimulatedWorker(ClusterWorld& world, const std::string& name, const NodeClock& clock,
                  const SimulatedWorkerOptions& options, uint64_t seed);
  ~SimulatedWorker() override;

  // Its folder holds this version of the model from now on; 0: none.
  void set_model(const std::string& name, uint64_t version);
  // Its folder has the files of pipelines and tasks from now on, or not.
  void set_defines(bool defines);
  // It finishes what it has, and its process ends.
  void leave();
  void set_failing(bool loads, bool execs);
  void set_slowdown(double factor);

  // REQUIRES of these: it runs.
  // The models that its pages hold, by content.
  std::multiset<uint64_t> held() const;
  // No action is under way.
  bool idle() const;
  // It holds outputs for requests to come, or keeps room for some.
  bool holds_payloads() const;
  // Empty: it runs what its folder holds, and nothing else.
  std::string unsettled() const;

 protected:
  VirtualLinkLoop& links() override;
  void make_process() override;
  void end_process() override;
  void pause_process(bool paused) override;

 private:
  struct Process;
  const SimulatedWorkerOptions options_;
  Random random_;
  ModelVersions folder_;
  bool defines_ = true;
  std::vector<std::unique_ptr<Process>> processes_;
};

// ---- A front end ----

// The name of the pipeline of a simulation that has one.
inline constexpr const char* kSimulatedPipeline = "pipeline";
// Likewise of the one with stages that are visited for each element.
inline constexpr const char* kSimulatedElementsPipeline = "elements";
// Likewise of the task.
inline constexpr const char* kSimulatedTask = "task";

struct SimulatedFrontendOptions {
  uint32_t requests_max = 64;  // in flight
  double labelled = 0.1;       // shares of the requests
  double cancelled = 0.05;
  double two_steps = 0;  // whose outputs a worker holds as the inputs of one or two further requests
  double offline = 0;    // of those without a deadline
  std::string controller;
};

// How the requests of a run ended.
struct ClusterTally {
  static constexpr size_t kRefusals = static_cast<size_t>(kRefusalLast) + 1;
  uint64_t submitted = 0;
  uint64_t served = 0;
  std::array<uint64_t, kRefusals> refused{};  // by the controller or the link
  uint64_t turned_away = 0;                   // by the front end: no such model is ready, or it is full
  uint64_t lost = 0;                          // with the front end
};

class SimulatedFrontend : public SimulatedNode {
 public:
  // Called for every request that ends: why it was not served, or nothing.
  using OnEnd = std::function<void(uint64_t tag, const std::string& refusal)>;

  SimulatedFrontend(ClusterWorld& world, const std::string& name, const NodeClock& clock,
                    const SimulatedFrontendOptions& options, uint64_t seed, ClusterTally& tally);
  ~SimulatedFrontend() override;

  // A client asks for the model that is served by this name. `slo` max(): best effort.
  // `tag` comes back in OnEnd.
  void ask(const std::string& model, Duration slo, uint64_t tag, const OnEnd& on_end = {});

  // From now on no client goes away.
  void stop_cancelling() { cancelled_ = 0; }
  // No request waits long after its deadline.
  void check();

  // REQUIRES of these: it runs.
  uint64_t in_flight() const;
  // The models that clients are shown as ready.
  ModelVersions shown() const;
  // The pipelines, or the tasks, that they are.
  std::set<std::string> shown(EntryRole role) const;
  size_t connections();

 protected:
  VirtualLinkLoop& links() override;
  void make_process() override;
  void end_process() override;

 private:
  struct Process;
  const SimulatedFrontendOptions options_;
  double cancelled_;
  Random random_;
  ClusterTally& tally_;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_CLUSTER_NODES_H_
