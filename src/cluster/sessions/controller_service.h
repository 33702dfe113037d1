// ControllerService: the controller as the server of workers and clients. Turns their
// messages into the controller's events, and its actions and completions into messages.
//
// All workers bring the same models, in whatever order, and change them together
// (cluster/sessions/model_registry.h). Pipelines and tasks are those that they offer
// (cluster/sessions/definition_registry.h); what stages compute is held by the workers, each of which has room for all
// runs. A worker that is lost, or that the controller has fenced (control/controller/failure_detector.h), may register
// again by its name with what its pages hold. An unexpected message ends the connection of its sender and no other.
//
// Of several controllers (cluster/election) one leads. The others stand by: they keep links with workers and clients,
// and answer their pings, until lead().
//
// Threading: lead(), hand_over(), drain(), drained(), scale() and set_targets() from any thread; the rest belongs to
// the loop that drives it.
#ifndef FOLIOT_CLUSTER_SESSIONS_CONTROLLER_SERVICE_H_
#define FOLIOT_CLUSTER_SESSIONS_CONTROLLER_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/sessions/home_registry.h"
#include "cluster/sessions/model_registry.h"
#include "cluster/sessions/pipeline_registry.h"
#include "cluster/sessions/task_registry.h"
#include "cluster/transport/link_handler.h"
#include "control/controller/controller.h"
#include "control/controller/targets.h"
#include "control/controller/wanted_targets.h"
#include "foundation/base/histogram.h"
#include "foundation/base/mutex.h"
#include "foundation/core/call_label.h"
#include "foundation/core/observer.h"
#include "foundation/core/ports.h"
#include "foundation/logging/logger.h"

namespace foliot {

// The loop's clock, where a duration within a turn is measured.
using ClockFunction = std::function<TimePoint()>;
// The processor time of the loop's thread so far.
using ProcessorTimeFunction = Duration (*)();

class ControllerService : public LinkHandler,
                          private ActionSink,
                          private CompletionSink,
                          private VisitOutputs,
                          private Observer {
 public:
  // Peers that registered or left, and why.
  using Log = std::function<void(Severity, const std::string&)>;

  ControllerService(const ControllerOptions& options, const Controller::PolicyFactory& make_policy, ClockFunction clock,
                    Log log);
  ~ControllerService() override;

  // Before the first event.
  Controller& controller() { return controller_; }
  // Before the first event: receives the labels of requests, with those added before; outlives the service.
  void add_label_sink(CallLabelSink& labels) { labels_.push_back(&labels); }
  // Before the first event; without it statistics show no processor time.
  void set_processor_time(ProcessorTimeFunction processor_time);
  // Before the first event: called after each turn, with how long the policy took to decide.
  void set_turn_watch(std::function<void(Duration)> watch) { turn_watch_ = std::move(watch); }
  // The sockets' part of the statistics; outlives the service.
  void set_traffic(const LinkTraffic& traffic) { traffic_ = &traffic; }
  // Before the first event, of one of several controllers: it stands by.
  void stand_by() { stands_by_ = true; }
  // From the next turn on it leads, with this epoch. REQUIRES: it stands by; called once.
  void lead(uint64_t epoch) { lead_asked_.store(epoch); }
  // Before the first event: called on the loop's thread with an epoch that a peer has obeyed, if it is above this
  // controller's own; and with how many workers are linked, whenever that changes.
  void set_election_watch(std::function<void(uint64_t)> on_epoch, std::function<void(size_t)> on_workers) {
    epoch_watch_ = std::move(on_epoch);
    linked_watch_ = std::move(on_workers);
  }
  // From the next turn on what waits and what comes is refused (kDraining), and what
  // runs is finished.
  void drain() { drain_asked_.store(true); }
  // Another is to lead: from the next turn on drained() becomes true when no client is left. It serves on until then.
  void hand_over() { hand_over_asked_.store(true); }
  // The name of the worker that has the device, or had it last.
  const std::string& owner(DeviceId device) const { return devices_[device.value()].owner; }
  // After drain(): every request has its answer; after hand_over(): no client is left.
  bool drained() const { return drained_.load(); }
  // What an autoscaler, or an operator, wants of the models, in place of what it wanted before (controller/
  // wanted_targets.h). Models that have left are passed over, and what cannot be is reported in the log, and tried
  // again when a model or a device has come. Takes effect with the next turn. Not more often than ten times a second.
  void scale(Autoscaler autoscaler, Targets targets);
  void set_targets(std::shared_ptr<const NamedTargets> targets);
  // Before the first event: called once, on the loop's thread, when drained() becomes true.
  void set_drain_watch(std::function<void()> watch) { drain_watch_ = std::move(watch); }

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  Standing standing() const override { return {epoch_, stands_by_}; }
  TimePoint on_turn_end(TimePoint now) override;

 private:
  class WorkerSession;
  class ClientSession;
  struct Device {
    WorkerSession* worker = nullptr;  // null: lost
    std::string owner;                // the worker that has it, or had it last
  };
  // A client's number (cluster/transport/client_ids.h) is its place in clients_. A place is given to another client
  // once it has no request in flight.
  struct Client {
    ClientSession* session = nullptr;  // null: it is gone
    uint64_t in_flight = 0;
  };
  // What workers offer beside models, and what clients were sent of it.
  template <typename Kind>
  struct Defined {
    DefinitionRegistry<Kind> registry;
    bool changed = false;  // to be sent to clients with this turn
    bool ever = false;     // some were offered
  };
  struct Counters {
    TimePoint since;
    Duration processor_time_before;
    uint64_t requests = 0;
    uint64_t served = 0;
    uint64_t actions = 0;
    Histogram decisions;
    Histogram decisions_processor;  // the same in processor time, of some of them
  };

  void begin_to_lead();
  Status admit(ClientSession& client);
  void count_linked(int change);
  void log_gone(const std::string& who, const Connection& connection, const Status& reason);
  void log_refused(const std::string& worker, const Connection& connection, const Status& reason);
  void send(const Action& action) override;
  void complete(const Completion& completion) override;
  void discard(RequestId visit, DeviceId holder) override;

  Result<Welcome> register_worker(WorkerSession& worker, const Registration& registration, TimePoint now);
  void go_on_changing_models(TimePoint now);
  void change_models(const ModelRegistry::Decisions& decisions, TimePoint now);
  void forget_models(TimePoint now);
  template <typename Kind>
  void change(Defined<Kind>& defined, std::string_view what, TimePoint now,
              const typename DefinitionRegistry<Kind>::NameTaken& taken = {});
  ModelsByName served_models() const;
  void add(std::shared_ptr<const PipelineInfo> pipeline) { controller_.add_pipeline(std::move(pipeline)); }
  void add(std::shared_ptr<const TaskInfo> task) { controller_.add_task(std::move(task)); }
  // The models that a request for this is counted for. `on`: Registry::on_request or on_answer.
  template <typename Asked, typename Count>
  void count(const Asked& asked, Count count);
  void apply_targets(TimePoint now);
  // The least of all workers'.
  void set_held_room();
  // Those that the worker had before, or else any that are lost, or new ones.
  std::vector<DeviceId> devices_for(const std::string& worker, const std::string& kind, size_t count,
                                    TimePoint now) const;
  Status on_report(WorkerSession& worker, const Outcome& outcome, TimePoint now);
  void on_worker_lost(WorkerSession& worker, TimePoint now);
  void on_leave(WorkerSession& worker, TimePoint now);
  void let_go_who_is_idle();
  void go_on_draining(TimePoint now);
  void set_drained(bool drained);
  void on_device(const DeviceChange& change, TimePoint now) override;
  void send_homes(TimePoint now);
  Workers workers() const;
  void send_workers();
  Unserved unserved() const;
  Result<uint16_t> add_client(ClientSession& client);
  void submit(uint16_t client, Request request, std::optional<Label> label, TimePoint now);
  Statistics take_statistics(TimePoint now);

  bool stands_by_ = false;
  uint64_t epoch_ = 0;  // 0: there is no choice of a leader
  std::atomic<uint64_t> lead_asked_{0};
  std::function<void(uint64_t)> epoch_watch_;    // empty: none
  std::function<void(size_t)> linked_watch_;     // likewise
  std::vector<WorkerSession*> standby_workers_;  // that do not know yet which controller leads
  std::vector<ClientSession*> standby_clients_;  // likewise
  size_t linked_workers_ = 0;

  const ClockFunction clock_;
  ProcessorTimeFunction processor_time_ = [] { return Duration(); };
  const Log log_;
  Controller controller_;
  std::vector<Device> devices_;  // by DeviceId
  ModelRegistry registry_;
  Defined<PipelineKind> pipelines_;
  Defined<TaskKind> tasks_;
  HomeRegistry homes_;
  uint64_t clients_opened_ = 0;
  uint64_t workers_opened_ = 0;
  static constexpr size_t kRefusedMax = 64;
  std::map<std::string, std::string> refused_;  // why workers could not join, by their names; at most so many
  std::map<ModelRegistry::WorkerId, WorkerSession*> workers_;  // those that are registered
  bool models_changed_ = false;                                // to be sent to clients with this turn
  bool unserved_changed_ = false;                              // likewise
  std::vector<WorkerSession*> leaving_;
  std::vector<Client> clients_;
  Counters counters_;
  const LinkTraffic* traffic_ = nullptr;
  std::vector<CallLabelSink*> labels_;
  std::function<void(Duration)> turn_watch_;  // empty: none
  std::atomic<bool> targets_wait_{false};     // so that turns take no lock for nothing
  Mutex targets_mutex_;
  WantedTargets wanted_targets_ GUARDED_BY(targets_mutex_){
      [this](const std::string& line) { log_(Severity::kWarning, line); }};
  std::atomic<bool> drain_asked_{false};
  std::atomic<bool> hand_over_asked_{false};
  std::atomic<bool> drained_{false};
  std::function<void()> drain_watch_;
  bool draining_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_CONTROLLER_SERVICE_H_
