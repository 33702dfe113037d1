// WorkerLink: a real worker's links: as a client of its controller, and as the server
// of the front ends whose requests it computes.
//
//   controller --ACTION--> staging: FETCH ... INPUTS --> worker's executors
//   front ends <-OUTPUTS-- staging <-- outcome, by a ring from the executors
//   controller <-OUTCOME--
//   other workers --FETCH--> held payloads; FETCH to theirs
//
// An INFER takes its place in the staging area before any input is asked for, and goes
// to the worker when the inputs of all its rows are there. A row whose client has gone
// away, or has cancelled it, is computed on whatever lies there, and its outputs are
// dropped; a batch of nothing else is refused. A client that is slow, or has not
// attached yet, is waited for until `latest`, and then the action is refused as too
// late: other actions do not wait for it.
//
// Inputs come from the call, or are held here or by another worker, which is connected to when
// it is first needed (cluster/sessions/batch_inputs.h). If they cannot be had, or do not fit, the row is
// computed on whatever lies there, and its client gets the reason in place of outputs. Outputs of a
// row with consumers are held (cluster/sessions/held_payloads.h), and its client gets a reference.
//
// Of a row that is a visit of a pipeline's stage (VISITS), outputs are held for later stages
// (cluster/sessions/stage_outputs.h), those that the client may get are sent to it, and which conditions hold
// is in the outcome. A visit whose inputs cannot be had, or whose client is not attached, is so
// named in the outcome (unfed_rows), and holds nothing.
//
// When full: an action beyond `actions_max` is refused (kQueueFull), as is one that has
// no room to be staged, or for its outputs to be held (kNoIoMemory). The ring from the
// executors has room for the outcomes of all of them. A front end that does not read is
// disconnected (cluster/transport/connection.h).
//
// With several controllers, the one is obeyed that leads with the highest epoch that was seen; links with others that
// lead are closed. A new leader is a lost controller and another one, at once.
//
// The loop connects to a lost controller again. Pages are kept: the worker registers
// again, with what they hold, once none of its actions is under way, and no page holds
// a model that the next controller does not know of.
//
// Models come and go by the ModelSink; the ring of these orders has room for twice
// `models_max`, and for some offers of pipelines and tasks.
//
// Threading: report() from executors; drain(), offer() and the ModelSink's calls from any thread;
// the rest belongs to the loop's thread.
#ifndef FOLIOT_CLUSTER_SESSIONS_WORKER_LINK_H_
#define FOLIOT_CLUSTER_SESSIONS_WORKER_LINK_H_

#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/sessions/batch_inputs.h"
#include "cluster/sessions/complaints.h"
#include "cluster/sessions/held_payloads.h"
#include "cluster/sessions/obeyed_epoch.h"
#include "cluster/sessions/offered_models.h"
#include "cluster/sessions/stage_outputs.h"
#include "cluster/sessions/staging_area.h"
#include "cluster/transport/client_ids.h"
#include "cluster/transport/link_handler.h"
#include "engine/worker/worker.h"
#include "foundation/core/catalog.h"
#include "foundation/core/model_sink.h"
#include "foundation/core/observer.h"
#include "foundation/core/ports.h"
#include "foundation/logging/logger.h"
#include "foundation/platform/mpsc_ring.h"

namespace foliot {

struct WorkerLinkOptions {
  std::string name = "worker";
  std::string kind{kDefaultKind};  // of its devices
  uint32_t models_max = 16384;
  uint32_t page_count = 0;     // of each device
  uint32_t lane_count = 1;     // likewise
  uint32_t context_count = 1;  // likewise
  uint32_t actions_max = 512;  // given and not over
  uint64_t staging_bytes = 0;
  // Of outputs that are held for later requests; 0: requests with consumers are refused.
  uint64_t held_bytes = 0;
  uint32_t held_max = 4096;  // payloads
  Duration drain_timeout = Duration::seconds(30);
};

class WorkerLink : public LinkHandler, public OutcomeSink, public ModelSink {
 public:
  // Callbacks. `on_registered`: the controller has registered it, with so many models.
  struct Watch {
    std::function<void(Severity, const std::string&)> log;
    std::function<void(size_t models)> on_registered;
    std::function<void()> on_drained;  // after drain(): nothing is under way, or its time is over
    std::function<void(bool connected)> on_controller = [](bool) {};  // it was registered with one, or has lost it
    std::function<void(uint32_t attached)> on_frontends = [](uint32_t) {};
    // Outputs of stages became inputs of others: held here, or fetched from another worker.
    std::function<void(uint64_t bytes, bool fetched)> on_stage_inputs = [](uint64_t, bool) {};
  };

  WorkerLink(WorkerLinkOptions options, Watch watch);
  ~WorkerLink() override;

  PayloadStore& payloads() { return staging_; }
  // On the loop's thread.
  const HeldPayloads& held() const { return held_; }
  // Before the loop runs. It sees models, and the actions of models that the worker has,
  // under the worker's own ids (devices by their positions), on this side's clock. What is not given to the executors
  // since the controller was lost ends as kLost. Outlives the link.
  void add_observer(Observer& observer) { observers_.push_back(&observer); }
  // Before the loop runs. The controller is sent which of its models should be served and
  // cannot. Outlives the link.
  void set_catalog(const Catalog& catalog) { catalog_ = &catalog; }
  // All that the controller is to know of from now on. From any thread.
  void offer(Pipelines pipelines) { post(std::move(pipelines)); }
  void offer(Tasks tasks) { post(std::move(tasks)); }
  // Before the loop runs. Front ends get `data_address`, or, if it begins with 0.0.0.0
  // or [::], the address where the controller sees this side. Workers and loop outlive the link.
  // `workers`: one for each of its devices, which all have the same models.
  void start(std::vector<Worker*> workers, std::string data_address, LinkControl& loop);
  // Announces that it leaves, and finishes its actions. From any thread.
  void drain();

  void report(const Outcome& outcome) override;

  // Whether its largest batch has room to be staged.
  Status check(const ModelInfo& model) const override;
  void add_model(std::shared_ptr<const ModelInfo> model) override;
  bool takes_parts() const override { return false; }
  void extend_model(std::shared_ptr<const ModelInfo> model) override;
  void remove_model(ModelId model, std::function<void()> gone) override;

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  Standing standing() const override { return {.epoch = obeyed_.value()}; }
  TimePoint on_turn_end(TimePoint now) override;

 private:
  class ControllerSession;
  class ClientSession;
  class HolderSession;
  class FetcherSession;
  // An action that was given and has no outcome yet.
  struct Given {
    Action action;    // in the controller's words, on this side's clock
    DeviceId device;  // in the worker's words: its position
    ModelId model;    // in the worker's words
    std::optional<StagingArea::Batch> batch;
    const RowLayout* layout = nullptr;
    BatchInputs inputs;                              // complete: the worker has the action
    std::map<uint32_t, HeldPayloads::Place> places;  // rows whose outputs are to be held
    std::map<uint32_t, VisitOrder> visits;           // by row
    TimePoint inputs_by;
    bool forgotten = false;  // its controller was lost: the outcome is dropped
    bool observed = false;   // observers have seen it, and are to see its outcome
  };

  struct AddModel {
    std::shared_ptr<const ModelInfo> model;
  };
  struct RemoveModel {
    ModelId model;
    std::function<void()> gone;
  };
  using Order = std::variant<AddModel, RemoveModel, Pipelines, Tasks>;

  void post(Order order);
  void handle(AddModel& added);
  void handle(RemoveModel& removed);
  void handle(Pipelines& offered);
  void handle(Tasks& offered);
  void complain(const std::string& complaint);
  Status obey(ControllerSession& controller, uint64_t epoch, TimePoint now);
  void lose_controller(TimePoint now);
  void end_attachments(TimePoint now);
  Status on_welcome(const Welcome& welcome, TimePoint now);
  Status on_action(const Action& action, DeviceId device, Visits visits, TimePoint now);
  // What it says fits the model.
  Status check_visits(const Given& given) const;
  void forget_held_of(std::optional<uint16_t> client);
  void end_visits(Given& given, Outcome& outcome);
  bool end_visit(Given& given, uint32_t row, Outcome& outcome);
  bool is_resident(ModelId model) const;  // on any device
  std::optional<OutcomeStatus> stage(Given& given, TimePoint now);
  void put_zeros(const Given& given, uint32_t row, const VisitOrder& order);
  bool reserve_held(Given& given);
  void release(const Given& given);
  template <typename Condition>
  void fetch(Given& given, uint32_t row, Condition condition);
  void fetch_from_call(const Given& given, uint32_t row, const InputSource& source);
  void fetch_from_holder(Given& given, uint32_t row, const InputSource& source);
  TensorBytes held(RequestId request, const InputSource& source) const;
  Status feed(Given& given, uint32_t row, const InputSource& source, const TensorBytes& tensors);
  void feed_held(Given& given, uint32_t row, const InputSource& source, const TensorBytes& tensors, bool fetched);
  void advance(Given& given, TimePoint now);
  void give_to_worker(Given& given);
  void refuse(const Given& given, OutcomeStatus status, TimePoint now);
  void refuse_what_is_late(TimePoint now);
  void on_outcome(const Outcome& outcome, TimePoint now);
  void send_outputs(Given& given, TimePoint now);
  Outputs outputs_of(Given& given, uint32_t row, TimePoint now);
  void send_outcome(Outcome outcome, const Given& given, TimePoint now);
  void observe(Given& given, TimePoint now);
  void observe(const Given& given, Outcome outcome, TimePoint now);
  void forget_actions(TimePoint now);
  void send_unserved();
  void register_if_idle(TimePoint now);
  // False while pages hold what they should not when a session begins.
  bool pages_are_clear(TimePoint now);
  void unload(ModelId model, DeviceId device, TimePoint now);
  void go_on_draining(TimePoint now);

  void on_attach(ClientSession& client, const Attach& attach, TimePoint now);
  void attach(ClientSession& client, uint16_t number, TimePoint now);
  void on_detach(ClientSession& client, TimePoint now);
  Status on_inputs(uint16_t client, const Inputs& inputs, TimePoint now);
  void on_workers(const Workers& workers);
  // nullptr: the source is the call, or its device is of no worker that is there.
  const std::string* address_of(const InputSource& source) const;
  bool is_at(const InputSource& source, const std::string& address) const;
  void on_holder(HolderSession& holder, TimePoint now);
  void starve_rows_of_lost_holders(TimePoint now);
  void on_held_inputs(const std::string& address, const Inputs& inputs, TimePoint now);
  // The row of this request that waits for such inputs, and their source; null: none does.
  Given* find_waiting(const Inputs& inputs, RequestId request, uint32_t& row, InputSource& source);
  template <typename Condition, typename Change>
  void for_waiting_rows(TimePoint now, Condition condition, Change change);

  const WorkerLinkOptions options_;
  const Watch watch_;
  std::vector<Observer*> observers_;
  StagingArea staging_;
  HeldPayloads held_;
  StageOutputs stage_outputs_{held_};
  MpscRing<Outcome> outcomes_;
  MpscRing<Order> orders_;
  const Catalog* catalog_ = nullptr;           // null: nothing is sent of models that cannot be served
  std::optional<uint64_t> unserved_revision_;  // of what the controller was sent; nullopt: nothing
  OfferedModels models_;
  Pipelines pipelines_;
  Tasks tasks_;
  std::vector<Worker*> workers_;  // by device
  std::string data_address_;
  LinkControl* loop_ = nullptr;

  std::vector<ControllerSession*> controllers_;  // those that stand by, too
  ControllerSession* controller_ = nullptr;      // that is obeyed
  ObeyedEpoch obeyed_;
  std::vector<ClientSession*> sessions_;
  std::unordered_map<uint16_t, ClientSession*> clients_;  // attached, by number
  std::bitset<kClientsMax> lost_clients_;                 // were attached, and are not any more
  std::unordered_map<DeviceId, std::string> addresses_;   // of all workers that have some
  std::map<std::string, HolderSession*> holders_;         // whose payloads were needed, by address; null: not connected
  std::vector<std::string> lost_holders_;                 // since the last turn, by address
  std::unordered_map<ActionId, Given> given_;
  // Of batches that are run in ranges, between one and the next, by position of the device, and context:
  // which rows have none. What was given up stays until another takes its place.
  std::map<std::pair<DeviceId, ContextIndex>, BatchInputs> unfinished_;
  uint64_t unloads_ = 0;  // that it gave itself
  TimePoint next_look_;
  Complaints complaints_;  // since it was registered last
  std::atomic<bool> drain_asked_{false};
  bool draining_ = false;
  TimePoint drain_began_;
  TimePoint idle_since_;  // when something was under way last
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_WORKER_LINK_H_
