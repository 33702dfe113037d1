// FrontendLink: a front end's links: as a client of its controller, and of the workers
// that compute its requests. It takes the controller's place in a server of one
// process: requests go in, each gets its one completion; the models of the controller
// fill the catalog.
//
//   submit() --ring--> REQUEST to the controller; a worker FETCHes the inputs and
//   sends OUTPUTS; the controller sends the COMPLETION; the two are joined.
//
// Outputs count only with the completion that names their action: after a worker
// was given up, two of them may answer one request. They are in the request's
// payload when they come first, or kept aside, of four actions at most, if another
// action's are there already.
//
// Of a request that announced consumers a worker holds the outputs, and the completion
// names them (Completion::outputs). Every request that refers to them is one consumer,
// however it ends; consumers that will not come are release()d. The worker frees what it
// holds when the last one is over. What no completion names is released by the link.
//
// A run of a pipeline is a request whose stages several workers visit: the outputs of each stage
// that clients may get are kept until its completion, which names the actions that count. A run
// that a lost worker ends begins again, from the inputs that are still here, at most
// `kRestartsMax` times, and while there is time; what refuses it then is the loss.
//
// A request for a task goes on with what it asks for, and its call as the controller knows that; the completion's
// model is the variant that was chosen.
//
// A completion has the id by which the controller knew the request, its number in the
// controller's log; 0 where it was never sent. The payload identifies the request.
//
// With several controllers, the one is obeyed that leads with the highest epoch that was seen; links with others that
// lead are closed. A new leader is a lost controller and another one, at once.
//
// When the controller is lost, all requests in flight are refused (kDisconnected),
// the models are LOADING, and it is sought until it is found again. Where it was elected, another takes its place: then
// requests with more time left than ClusterTimeouts::takeover_min, and those without a deadline, wait for that one, at
// most ClusterTimeouts::takeover, and are submitted to it under new numbers, so that each has one answer. So do those
// that come meanwhile: models stay READY. Refused are still those whose inputs a worker holds, and calls of tasks,
// since devices and variants are the lost controller's. What was answered by a worker whose link is
// lost, or does not come within its deadline or ClusterTimeouts::answer, is refused (kWorkerLost, kLate).
//
// When full: the ring and the table have room for as many requests as the front end
// has in flight, a cancellation of each, and a release for each.
//
// Threading: submit(), cancel() and release() from any thread; the rest belongs to the loop's
// thread, from which the front end gets its completions.
#ifndef FOLIOT_CLUSTER_SESSIONS_FRONTEND_LINK_H_
#define FOLIOT_CLUSTER_SESSIONS_FRONTEND_LINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/sessions/complaints.h"
#include "cluster/sessions/home_links.h"
#include "cluster/sessions/obeyed_epoch.h"
#include "cluster/sessions/pipeline_registry.h"
#include "cluster/sessions/task_registry.h"
#include "cluster/transport/link_handler.h"
#include "foundation/core/call_label.h"
#include "foundation/core/catalog.h"
#include "foundation/core/ports.h"
#include "foundation/core/request_origin.h"
#include "foundation/logging/logger.h"
#include "foundation/platform/mpsc_ring.h"

namespace foliot {

class FrontendLink : public LinkHandler, public LabelledRequestSink {
 public:
  static constexpr uint32_t kRestartsMax = 3;

  // Callbacks. `on_ready`: there is a controller, with so many models.
  struct Watch {
    std::function<void(Severity, const std::string&)> log;
    std::function<void(size_t models)> on_ready;
  };

  // `catalog` outlives the link; `requests_max`: rows in flight at most.
  FrontendLink(Catalog& catalog, uint32_t requests_max, Watch watch);
  ~FrontendLink() override;

  // Before the loop runs: this front end keeps users of personal models; `homes` outlives the link.
  void use(HomeLinks& homes) { homes_ = &homes; }
  // Before the loop runs; both outlive the link.
  void start(RequestOrigin& frontend, LinkControl& loop);

  void submit(const Request& request) override;
  void submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) override;
  void cancel(RequestId request, Refusal reason) override;
  // So many of the consumers that were announced will not come. At most once for each
  // completion that named a payload.
  void release(const PayloadReference& payload, uint16_t consumers);

  // After the loop has ended: what waits for another controller.
  void refuse_waiting(TimePoint now);

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  Standing standing() const override { return {.epoch = obeyed_.value()}; }
  TimePoint on_turn_end(TimePoint now) override;

 private:
  class ControllerSession;
  class WorkerSession;
  struct CancelRequest {
    RequestId request;
    Refusal reason;
  };
  struct LabelledRequest {
    Request request;
    std::shared_ptr<const CallLabel> label;
  };
  struct ReleasePayload {
    PayloadReference payload;
    uint16_t consumers;
  };
  using Order = std::variant<Request, LabelledRequest, CancelRequest, ReleasePayload>;
  // A model in service. In the catalog it has an id of this side's, which is never
  // used again: so a request of before a reconnection is never taken for another's.
  struct Model {
    ModelId name;  // the controller's; kUnnamed: its next one has none yet
    std::shared_ptr<const ModelInfo> info;
    // Replaced or removed: requests that were on their way here still go on.
    std::optional<TimePoint> forgotten_at{};
  };
  // This side's ids of models, by the controller's.
  using OwnIds = std::map<ModelId, ModelId>;
  // What is made of models: a pipeline or a task.
  template <typename Kind>
  struct Defined {
    typename Kind::Id name;  // the controller's; none: its next one has none yet
    typename Kind::Definition definition;
    std::shared_ptr<const ModelInfo> info;
    std::shared_ptr<const OwnIds> models;  // that it is made of
    std::optional<TimePoint> forgotten_at{};
  };
  // In service, by this side's id.
  template <typename Kind>
  struct AllDefined {
    std::unordered_map<typename Kind::Id, Defined<Kind>> entries;
    uint32_t next_id = 1;
  };
  // Of a task's call of which rows are still to come.
  struct OpenCall {
    RequestId link_id;  // of its first row
    uint32_t rows_left = 0;
  };
  // Outputs that came before it was known whether they count.
  struct KeptOutputs {
    ActionId action;
    uint32_t slot = 0;  // of a run's visit
    std::vector<std::vector<std::byte>> tensors;
    PayloadReference held;  // in place of tensors
    std::string detail;     // of neither
  };
  struct InFlight {
    bool used = false;
    Request request;                         // as it was submitted
    RequestId link_id;                       // by which the controller and the workers know it on this link
    RequestId number;                        // by which the controller knows it among those of all links
    std::shared_ptr<const CallLabel> label;  // null: it has none
    std::shared_ptr<const ModelInfo> model;
    std::shared_ptr<const OwnIds> variants;  // of a task
    std::optional<ActionId> in_payload;      // whose outputs lie there
    std::vector<KeptOutputs> others;
    std::optional<Completion> completion;  // served, but its outputs are not here
    TimePoint give_up;                     // then
    bool waits = false;                    // for the controller that takes over
    // Of a run:
    uint32_t restarts = 0;
    std::optional<Completion> loss;  // that it was restarted after
    bool cancelled = false;
    bool is_run() const { return model->pipeline != nullptr; }
  };
  using Slot = uint32_t;

  void handle(const Request& request, TimePoint now) { send(request, nullptr, now); }
  void handle(const LabelledRequest& labelled, TimePoint now) { send(labelled.request, labelled.label, now); }
  void handle(const CancelRequest& cancel, TimePoint now);
  void handle(const ReleasePayload& order, TimePoint /*now*/) { consume(order.payload, order.consumers); }
  void consume(const PayloadReference& payload, uint16_t consumers);
  void send(const Request& request, std::shared_ptr<const CallLabel> label, TimePoint now);
  // As the next request to the controller, with a number of its own.
  void send(Slot slot, bool labelled);
  // Whether the controller knows what it asks for.
  bool is_named(const Request& request) const;
  bool may_wait(const Request& request, TimePoint now) const;
  // The call's first row was lost with the controller before.
  bool lacks_call(const Request& request) const;
  bool restart(Slot slot, const Completion& loss);
  // What it is counted with by the controller.
  RequestId call_of(const Request& request, RequestId link_id);
  void refuse(const Request& request, Refusal refusal, std::string detail, TimePoint now);
  InFlight* find(PayloadHandle payload, RequestId link_id);
  void finish(Slot slot, Completion completion);
  void fail(Slot slot, Refusal refusal, std::string detail, TimePoint now);

  void on_completion(Completion completion, TimePoint now);
  TensorBytes inputs_of(const Fetch& fetch);
  Status on_outputs(const Outputs& outputs, TimePoint now);
  Status check_sizes(const InFlight& request, const TensorBytes& tensors);
  void put(const InFlight& request, const TensorBytes& tensors);
  void answer(Slot slot, TimePoint now);
  // Whether all that counts is in the payload now; else the run is over, or waits.
  bool collect(Slot slot, TimePoint now);
  Status on_stage_outputs(const Outputs& outputs, TimePoint now);
  void look_for_the_lost(TimePoint now);

  Status obey(ControllerSession& controller, uint64_t epoch, TimePoint now);
  // ---- While another controller takes over (frontend_link_takeover.cc) ----
  void await_takeover(TimePoint now);
  void go_on_taking_over(TimePoint now);
  void send_waiting(TimePoint now);
  void end_takeover(TimePoint now);
  void show_served(TimePoint now);  // by the controller
  Model* unnamed(const ModelInfo& served);
  template <typename Kind>
  static void forget_names(AllDefined<Kind>& defined);
  // Of one that the controller before served, too: its models have other ids now.
  template <typename Kind>
  bool rename(AllDefined<Kind>& defined, const typename Kind::Definition& served);

  void number_requests_from(TimePoint host_time);
  void set_models(const std::vector<ModelInfo>& models, TimePoint now);
  template <typename Kind>
  void set(AllDefined<Kind>& defined, const typename Kind::Message& message, TimePoint now);
  template <typename Kind>
  std::optional<Defined<Kind>> made(const typename Kind::Definition& definition, typename Kind::Id id);
  static std::shared_ptr<const ModelInfo> without_conditions(const std::shared_ptr<const ModelInfo>& info);
  void set_unserved(Unserved unserved);
  void show_unserved();
  void await_models(const std::string& why);
  void on_workers(const Workers& workers);
  void on_controller_lost(const Status& reason, TimePoint now);
  void on_worker_lost(WorkerSession& worker, const Status& reason, TimePoint now);
  WorkerSession* worker_of(DeviceId device) const;  // null: it is not connected

  Catalog& catalog_;
  const Watch watch_;
  RequestOrigin* frontend_ = nullptr;
  LinkControl* loop_ = nullptr;
  HomeLinks* homes_ = nullptr;  // null: there are no personal models here
  MpscRing<Order> orders_;

  std::vector<ControllerSession*> controllers_;  // those that stand by, too
  ControllerSession* controller_ = nullptr;      // that is obeyed
  ObeyedEpoch obeyed_;
  std::optional<uint16_t> number_;                       // by which workers know this side
  std::map<std::string, WorkerSession*> workers_;        // by address; null: not connected
  std::unordered_map<DeviceId, std::string> addresses_;  // of the workers that have them
  std::unordered_map<ModelId, Model> models_;            // by this side's id
  AllDefined<PipelineKind> pipelines_;
  AllDefined<TaskKind> tasks_;
  std::unordered_map<RequestId, OpenCall> calls_;                 // by Request::call as it was submitted
  std::map<std::string, Unserved::Model, std::less<>> unserved_;  // by name
  uint32_t next_model_ = 0;
  std::set<std::string> shown_;  // names of models that the metrics know

  std::vector<InFlight> in_flight_;
  std::vector<Slot> free_;
  std::unordered_map<RequestId, Slot> slots_;  // by the id that was submitted
  uint64_t next_request_ = 1;
  uint64_t next_run_ = 1;
  uint32_t unjoined_ = 0;                    // completions whose outputs are not here
  std::optional<TimePoint> takeover_until_;  // nullopt: no controller is to take over
  std::vector<Slot> waiting_;                // for one, in the order in which they came
  TimePoint next_look_;
  Complaints complaints_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_FRONTEND_LINK_H_
