#include "cluster/sessions/frontend_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "cluster/sessions/answer_fetch.h"
#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/transport/client_ids.h"
#include "cluster/transport/frame_handlers.h"
#include "cluster/transport/peer_clock.h"
#include "foundation/base/check.h"
#include "foundation/core/stage_slots.h"
#include "foundation/core/stage_visit.h"
#include "foundation/core/visit_order.h"

namespace foliot {
namespace {

constexpr size_t kActionsPerRequestMax = 4;
// Runs are numbered from the controller's clock, too, in steps in which no front end begins two.
constexpr uint64_t kMicrosecondsPerRun = 16;
// nth_run() of these leaves kRunIdBit free.
constexpr uint64_t kRunsMax = (kRunIdBit >> 8) - 1;

}  // namespace

// ---- Sessions ----

class FrontendLink::ControllerSession : public Session {
 public:
  ControllerSession(FrontendLink& link, Connection& connection)
      : link_(link), connection_(connection), host_clock_(connection) {}

  void start(TimePoint now) { host_clock_.start(now); }
  void keep(TimePoint now) { host_clock_.keep(now); }
  Connection& connection() { return connection_; }
  const ClockOffset& offset() const { return host_clock_.offset(); }

  Status on_frame(const Frame& frame, TimePoint now) override {
    if (!is_obeyed()) return on_standby_frame(frame, now);
    switch (frame.type) {
      case MessageType::kCompletion: return on_completion(frame, now);
      case MessageType::kModels: return on_models(frame, now);
      case MessageType::kPipelines: return on_definitions(frame, pipelines_, link_.pipelines_, now);
      case MessageType::kTasks: return on_definitions(frame, tasks_, link_.tasks_, now);
      case MessageType::kUnserved: return on_unserved(frame);
      case MessageType::kWorkers: return on_workers(frame);
      case MessageType::kAdmission: return on_admission(frame);
      case MessageType::kHomes: return on_homes(frame, now);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override {
    std::erase(link_.controllers_, this);
    if (is_obeyed()) link_.on_controller_lost(reason.with_context(connection_.peer()), now);
  }
  // What it serves, as it was sent last.
  void show(TimePoint now) {
    if (!host_clock_.ready()) return;
    link_.set_models(models_, now);
    link_.set(link_.pipelines_, pipelines_, now);
    link_.set(link_.tasks_, tasks_, now);
  }
  // It is obeyed from now on. Its clock is known already, if it stood by before.
  void begin(TimePoint now) {
    if (link_.homes_ != nullptr) connection_.send(link_.homes_->offer(connection_.ends().own_host));
    if (host_clock_.ready()) link_.number_requests_from(host_clock_.offset().to_host(now));
  }

 private:
  bool is_obeyed() const { return link_.controller_ == this; }
  Status on_standby_frame(const Frame& frame, TimePoint now) {
    switch (frame.type) {
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kLeadership: {
        Leadership leadership;
        FOLIOT_RETURN_IF_ERROR(decode(frame, leadership));
        return link_.obey(*this, leadership.epoch, now);
      }
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  Status on_completion(const Frame& frame, TimePoint now) {
    Completion completion;
    FOLIOT_RETURN_IF_ERROR(decode(frame, completion));
    const ClockOffset& clock = host_clock_.offset();
    completion.finished = clock.to_own(completion.finished);
    completion.exec_start = clock.to_own(completion.exec_start);
    // Zero means that nothing is known.
    if (completion.earliest_completion > TimePoint()) {
      completion.earliest_completion = clock.to_own(completion.earliest_completion);
    }
    link_.on_completion(std::move(completion), now);
    return Status();
  }
  Status on_unserved(const Frame& frame) {
    Unserved unserved;
    FOLIOT_RETURN_IF_ERROR(decode(frame, unserved));
    link_.set_unserved(std::move(unserved));
    return Status();
  }
  // What can be asked for is shown once times can be exchanged.
  Status on_models(const Frame& frame, TimePoint now) {
    Models models;
    FOLIOT_RETURN_IF_ERROR(decode(frame, models));
    models_ = std::move(models.models);
    if (host_clock_.ready()) link_.set_models(models_, now);
    return Status();
  }
  template <typename Message, typename Defined>
  Status on_definitions(const Frame& frame, Message& kept, Defined& shown, TimePoint now) {
    kept = {};
    FOLIOT_RETURN_IF_ERROR(decode(frame, kept));
    if (host_clock_.ready()) link_.set(shown, kept, now);
    return Status();
  }
  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    const bool was_ready = host_clock_.ready();
    FOLIOT_RETURN_IF_ERROR(host_clock_.on_pong(pong, now));
    if (was_ready || !host_clock_.ready() || !is_obeyed()) return Status();
    link_.number_requests_from(host_clock_.offset().to_host(now));
    show(now);
    return Status();
  }
  Status on_admission(const Frame& frame) {
    Admission admission;
    FOLIOT_RETURN_IF_ERROR(decode(frame, admission));
    if (link_.number_) return Status::invalid_argument("an ADMISSION after another");
    link_.number_ = admission.client;
    return Status();
  }
  Status on_homes(const Frame& frame, TimePoint now) {
    Homes homes;
    FOLIOT_RETURN_IF_ERROR(decode(frame, homes));
    if (link_.homes_ == nullptr) return unexpected(frame);
    link_.homes_->set_homes(homes, now);
    return Status();
  }
  Status on_workers(const Frame& frame) {
    Workers workers;
    FOLIOT_RETURN_IF_ERROR(decode(frame, workers));
    if (!link_.number_) return Status::invalid_argument("WORKERS before an ADMISSION");
    link_.on_workers(workers);
    return Status();
  }

  FrontendLink& link_;
  Connection& connection_;
  PeerClock host_clock_;
  std::vector<ModelInfo> models_;
  Pipelines pipelines_;
  Tasks tasks_;
};

class FrontendLink::WorkerSession : public Session {
 public:
  WorkerSession(FrontendLink& link, Connection& connection)
      : link_(link), connection_(connection), host_clock_(connection) {}

  void start(uint16_t number, uint64_t epoch, TimePoint now) {
    connection_.send(Attach{number, epoch});
    host_clock_.start(now);
  }
  // Its clock is of no interest, but that it answers is.
  void keep(TimePoint now) { host_clock_.keep(now); }
  const std::string& address() const { return connection_.ends().dialed; }
  Connection& connection() { return connection_; }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kFetch:
        return answer_fetch(frame, connection_, [this](const Fetch& fetch) { return link_.inputs_of(fetch); });
      case MessageType::kOutputs: return on_outputs(frame, now);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override { link_.on_worker_lost(*this, reason, now); }

 private:
  Status on_outputs(const Frame& frame, TimePoint now) {
    Outputs outputs;
    FOLIOT_RETURN_IF_ERROR(decode(frame, outputs));
    return link_.on_outputs(outputs, now);
  }
  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    return host_clock_.on_pong(pong, now);
  }

  FrontendLink& link_;
  Connection& connection_;
  PeerClock host_clock_;
};

// ---- The link ----

FrontendLink::FrontendLink(Catalog& catalog, uint32_t requests_max, Watch watch)
    : catalog_(catalog), watch_(std::move(watch)), orders_(size_t{4} * requests_max), in_flight_(requests_max) {
  for (Slot slot = requests_max; slot-- > 0;) free_.push_back(slot);
}
FrontendLink::~FrontendLink() = default;

void FrontendLink::start(RequestOrigin& frontend, LinkControl& loop) {
  frontend_ = &frontend;
  loop_ = &loop;
}

void FrontendLink::submit(const Request& request) {
  FOLIOT_CHECK(orders_.push(request));
  loop_->wake();
}

void FrontendLink::submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) {
  if (label == nullptr) return submit(request);
  FOLIOT_CHECK(orders_.push(LabelledRequest{request, std::move(label)}));
  loop_->wake();
}

void FrontendLink::cancel(RequestId request, Refusal reason) {
  FOLIOT_CHECK(orders_.push(CancelRequest{request, reason}));
  loop_->wake();
}

void FrontendLink::release(const PayloadReference& payload, uint16_t consumers) {
  FOLIOT_CHECK(orders_.push(ReleasePayload{payload, consumers}));
  loop_->wake();
}

Result<std::unique_ptr<Session>> FrontendLink::on_open(Connection& connection, Role peer, TimePoint now) {
  if (peer == Role::kClient && homes_ != nullptr) return homes_->on_open(connection, now);
  if (connection.ends().dialed.empty()) return Status::invalid_argument("only front ends that keep users may connect");
  const auto worker = workers_.find(connection.ends().dialed);
  const Role expected = worker == workers_.end() ? Role::kController : Role::kWorker;
  if (peer != expected) {
    return Status::invalid_argument(fmt::format("it is a {}, not a {}", to_string(peer), to_string(expected)));
  }
  if (peer == Role::kWorker) {
    auto session = std::make_unique<WorkerSession>(*this, connection);
    worker->second = session.get();
    session->start(*number_, obeyed_.value(), now);
    return std::unique_ptr<Session>(std::move(session));
  }
  auto session = std::make_unique<ControllerSession>(*this, connection);
  const Standing& peer_standing = connection.peer_standing();
  if (!peer_standing.stands_by) FOLIOT_RETURN_IF_ERROR(obey(*session, peer_standing.epoch, now));
  controllers_.push_back(session.get());
  session->start(now);
  return std::unique_ptr<Session>(std::move(session));
}

Status FrontendLink::obey(ControllerSession& controller, uint64_t epoch, TimePoint now) {
  FOLIOT_RETURN_IF_ERROR(obeyed_.obey(epoch, controller_ == nullptr ? nullptr : &controller_->connection().peer()));
  if (controller_ != nullptr) {
    const Status replaced = Status::unavailable(
        fmt::format("the controller at {} leads with epoch {}", controller.connection().peer(), epoch));
    controller_->connection().request_close(replaced);
    on_controller_lost(replaced, now);
  }
  controller_ = &controller;
  complaints_.forget();
  controller.begin(now);
  return Status();
}

void FrontendLink::on_no_greeting(const std::string& peer, const Status& reason) {
  const std::string complaint = fmt::format("{}: {}", peer, reason.message());
  if (!reason.ok() && complaints_.is_new(complaint)) watch_.log(Severity::kWarning, complaint);
}

TimePoint FrontendLink::on_turn_end(TimePoint now) {
  while (orders_.consume([&](Order& order) { std::visit([&](const auto& what) { handle(what, now); }, order); })) {
  }
  if (now >= next_look_) {
    next_look_ = now + kClusterTimeouts.check_interval;
    for (ControllerSession* controller : controllers_) controller->keep(now);
    for (const auto& [address, worker] : workers_) {
      if (worker != nullptr) worker->keep(now);
    }
    look_for_the_lost(now);
    if (takeover_until_) go_on_taking_over(now);
    const auto forgotten = [now](const auto& entry) { return entry.second.forgotten_at.value_or(now) < now; };
    std::erase_if(tasks_.entries, forgotten);
    std::erase_if(pipelines_.entries, forgotten);
    std::erase_if(models_, forgotten);
  }
  return homes_ == nullptr ? next_look_ : std::min(next_look_, homes_->on_turn_end(now));
}

// ---- Requests ----

void FrontendLink::show_served(TimePoint now) { controller_->show(now); }

// No two requests in one controller's log have the same number, though the number of a
// client that has gone is given to another: each connection begins with the microseconds
// of the controller's clock, and there are fewer requests in a second than of those.
void FrontendLink::number_requests_from(TimePoint host_time) {
  const auto microseconds = static_cast<uint64_t>((host_time - TimePoint()).nanoseconds() / 1000);
  next_request_ = std::max(next_request_, microseconds & (kRunIdBit - 1));
  // Their ids have room for stages, so there are fewer of them.
  next_run_ = std::max(next_run_, microseconds / kMicrosecondsPerRun & kRunsMax);
}

void FrontendLink::send(const Request& request, std::shared_ptr<const CallLabel> label, TimePoint now) {
  std::shared_ptr<const ModelInfo> info;
  std::shared_ptr<const OwnIds> variants;
  if (request.task != ServedTaskId()) {
    const auto task = tasks_.entries.find(request.task);
    if (task != tasks_.entries.end()) std::tie(info, variants) = std::tie(task->second.info, task->second.models);
  } else if (request.pipeline != PipelineId()) {
    const auto pipeline = pipelines_.entries.find(request.pipeline);
    if (pipeline != pipelines_.entries.end()) info = pipeline->second.info;
  } else if (const auto model = models_.find(request.model); model != models_.end()) {
    info = model->second.info;
  }
  const bool waits = takeover_until_ && (controller_ == nullptr || !is_named(request));
  const bool lost =
      waits ? !may_wait(request, now) : controller_ == nullptr || !is_named(request) || lacks_call(request);
  if (info == nullptr || lost) {
    return refuse(request, Refusal::kDisconnected, "the controller was lost; try again", now);
  }
  FOLIOT_CHECK(!free_.empty());
  const Slot slot = free_.back();
  free_.pop_back();
  slots_.emplace(request.id, slot);
  in_flight_[slot] = {.used = true,
                      .request = request,
                      .link_id = {},
                      .number = {},
                      .label = std::move(label),
                      .model = std::move(info),
                      .variants = std::move(variants),
                      .waits = waits};
  if (waits) return waiting_.push_back(slot);
  send(slot, true);
}

void FrontendLink::send(Slot slot, bool labelled) {
  InFlight& entry = in_flight_[slot];
  const Request& request = entry.request;
  entry.link_id = RequestId(entry.is_run() ? kRunIdBit | nth_run(next_run_++) : next_request_++);
  entry.number = request_of(number_.value_or(0), entry.link_id);
  if (labelled && entry.label != nullptr && entry.label->travels())
    controller_->connection().send(Label{entry.link_id, *entry.label});
  const ClockOffset& clock = controller_->offset();
  const bool is_task = entry.variants != nullptr;
  controller_->connection().send(
      Request{.id = entry.link_id,
              .model = entry.is_run() || is_task ? ModelId() : models_.at(request.model).name,
              .pipeline = entry.is_run() ? pipelines_.entries.at(request.pipeline).name : PipelineId(),
              .task = is_task ? tasks_.entries.at(request.task).name : ServedTaskId(),
              .requirements = request.requirements,
              .call = is_task ? call_of(request, entry.link_id) : RequestId(),
              .call_rows = request.call_rows,
              .bucket = request.bucket,
              .payload = PayloadHandle(slot),
              .input = request.input,
              .consumers = request.consumers,
              .arrival = clock.to_host(request.arrival),
              .deadline = clock.to_host(request.deadline),
              .reserve = request.reserve,
              .tenant = request.tenant,
              .tenant_weight = request.tenant_weight,
              .offline = request.offline,
              .optional = request.optional});
}

RequestId FrontendLink::call_of(const Request& request, RequestId link_id) {
  if (request.call_rows == 1) return link_id;
  if (request.call == request.id) calls_.insert_or_assign(request.call, OpenCall{link_id, request.call_rows});
  const auto call = calls_.find(request.call);
  FOLIOT_CHECK(call != calls_.end());
  const RequestId first = call->second.link_id;
  if (--call->second.rows_left == 0) calls_.erase(call);
  return first;
}

// What earlier attempts have sent has other numbers, and is dropped when it comes.
bool FrontendLink::restart(Slot slot, const Completion& loss) {
  InFlight& entry = in_flight_[slot];
  if (!entry.is_run() || entry.cancelled || entry.restarts == kRestartsMax || controller_ == nullptr ||
      !pipelines_.entries.contains(entry.request.pipeline) || loss.finished > entry.request.deadline) {
    return false;
  }
  ++entry.restarts;
  if (!entry.loss) entry.loss = loss;
  if (entry.completion) --unjoined_;
  entry.completion.reset();
  entry.others.clear();
  send(slot, false);
  return true;
}

void FrontendLink::handle(const CancelRequest& cancelled, TimePoint now) {
  const auto found = slots_.find(cancelled.request);
  if (found == slots_.end()) return;
  if (in_flight_[found->second].waits) return fail(found->second, cancelled.reason, {}, now);
  if (controller_ == nullptr) return;
  in_flight_[found->second].cancelled = true;
  controller_->connection().send(Cancel{in_flight_[found->second].link_id, cancelled.reason});
}

void FrontendLink::refuse(const Request& request, Refusal refusal, std::string detail, TimePoint now) {
  const Completion completion{.id = {},
                              .model = request.model,
                              .pipeline = request.pipeline,
                              .task = request.task,
                              .payload = request.payload,
                              .refusal = refusal,
                              .detail = std::move(detail),
                              .arrival = request.arrival,
                              .deadline = request.answer_by(),
                              .finished = now};
  consume(request.input, 1);
  frontend_->complete(completion);
}

// A worker that is not connected any more has freed it.
void FrontendLink::consume(const PayloadReference& payload, uint16_t consumers) {
  WorkerSession* worker = payload ? worker_of(*payload.holder) : nullptr;
  if (worker != nullptr) worker->connection().send(Consumed{payload.handle, consumers});
}

FrontendLink::InFlight* FrontendLink::find(PayloadHandle payload, RequestId link_id) {
  if (payload.value() >= in_flight_.size()) return nullptr;
  InFlight& entry = in_flight_[payload.value()];
  return entry.used && entry.link_id == link_id ? &entry : nullptr;
}

// The one completion, in the front end's own words.
void FrontendLink::finish(Slot slot, Completion completion) {
  if (completion.refusal == Refusal::kWorkerLost && restart(slot, completion)) return;
  InFlight& entry = in_flight_[slot];
  // There was no time left for another attempt.
  const bool too_late = completion.refusal == Refusal::kUnmeetable || completion.refusal == Refusal::kOverload ||
                        completion.refusal == Refusal::kExpired;
  if (too_late && entry.loss) completion = *entry.loss;
  completion.id = entry.number;
  if (entry.variants == nullptr) {
    completion.model = entry.request.model;
  } else {
    const auto variant = entry.variants->find(completion.model);
    completion.model = variant == entry.variants->end() ? kUnnamed : variant->second;
  }
  completion.pipeline = entry.request.pipeline;
  completion.task = entry.request.task;
  completion.payload = entry.request.payload;
  completion.arrival = entry.request.arrival;
  completion.deadline = entry.request.answer_by();
  if (entry.completion) --unjoined_;
  consume(entry.request.input, 1);
  for (const KeptOutputs& kept : entry.others) {
    if (kept.held != completion.outputs) consume(kept.held, entry.request.consumers);
  }
  slots_.erase(entry.request.id);
  if (entry.waits) std::erase(waiting_, slot);
  entry = {};
  free_.push_back(slot);
  frontend_->complete(completion);
}

void FrontendLink::fail(Slot slot, Refusal refusal, std::string detail, TimePoint now) {
  Completion completion = in_flight_[slot].completion.value_or(Completion());
  completion.refusal = refusal;
  completion.outputs = {};
  completion.detail = std::move(detail);
  completion.finished = now;
  finish(slot, std::move(completion));
}

// ---- Completions and outputs ----

void FrontendLink::on_completion(Completion completion, TimePoint now) {
  InFlight* entry = find(completion.payload, completion.id);
  if (entry == nullptr || entry->completion) return;
  const auto slot = static_cast<Slot>(completion.payload.value());
  if (!completion.served()) return finish(slot, std::move(completion));
  entry->give_up = std::min(entry->request.answer_by(), now + kClusterTimeouts.answer);
  entry->completion = std::move(completion);
  ++unjoined_;
  answer(slot, now);
}

// If its outputs are here.
void FrontendLink::answer(Slot slot, TimePoint now) {
  InFlight& entry = in_flight_[slot];
  const ActionId action = entry.completion->action;
  if (entry.is_run()) {
    if (!collect(slot, now)) return;
  } else if (entry.in_payload != action) {
    const auto kept = std::ranges::find(entry.others, action, &KeptOutputs::action);
    if (kept == entry.others.end()) {
      if (worker_of(entry.completion->device) == nullptr) {
        fail(slot, Refusal::kWorkerLost, "its outputs were lost with the connection to its worker; try again", now);
      }
      return;
    }
    if (kept->tensors.empty() && !kept->held) {
      return fail(slot, Refusal::kWorkerLost,
                  kept->detail.empty() ? "its inputs did not reach the worker; try again" : kept->detail, now);
    }
    entry.completion->outputs = kept->held;
    if (!kept->held) put(entry, TensorBytes(kept->tensors.begin(), kept->tensors.end()));
  }
  if (now > entry.request.answer_by()) return fail(slot, Refusal::kLate, {}, now);
  Completion completion = *std::move(entry.completion);
  finish(slot, std::move(completion));
}

bool FrontendLink::collect(Slot slot, TimePoint now) {
  InFlight& entry = in_flight_[slot];
  std::vector<const KeptOutputs*> counting;
  const StageSlots slots(*entry.model->pipeline);
  for (const Completion::VisitAnswer& answer : entry.completion->visits) {
    const std::optional<StageSlots::Place> place = slots.find(answer.slot);
    if (!place) return false;  // it is given up in time
    const auto kept = std::ranges::find_if(entry.others, [&](const KeptOutputs& other) {
      return other.slot == answer.slot && other.action == answer.action;
    });
    if (kept != entry.others.end()) {
      counting.push_back(&*kept);
    } else if (worker_of(answer.device) == nullptr) {
      fail(slot, Refusal::kWorkerLost,
           fmt::format("stage '{}': its outputs were lost with the connection to its worker; try again",
                       entry.model->pipeline->stages[place->stage].name),
           now);
      return false;
    } else {
      return false;
    }
  }
  for (const KeptOutputs* kept : counting) {
    const PayloadHandle payload = visit_of(entry.request.payload, kept->slot);
    const std::vector<uint32_t> answers = answers_of(*entry.model->pipeline, slots.at(kept->slot).stage);
    for (size_t i = 0; i < answers.size(); ++i) {
      std::ranges::copy(kept->tensors[i], frontend_->output(payload, answers[i]).begin());
    }
    frontend_->finish(payload);
  }
  for (const uint32_t stage : entry.completion->empty_stages) frontend_->finish_empty(entry.request.payload, stage);
  return true;
}

Status FrontendLink::on_stage_outputs(const Outputs& outputs, TimePoint now) {
  const std::optional<uint32_t> slot = visit_slot(outputs.request);
  InFlight* entry = find(run_of(outputs.payload), run_of(outputs.request));
  if (entry == nullptr) return Status();  // it is over, or was restarted
  const StageSlots slots(*entry->model->pipeline);
  if (!slot || *slot >= slots.size()) return Status::invalid_argument("OUTPUTS of a visit that there is not");
  const PayloadHandle payload = visit_of(entry->request.payload, *slot);
  const std::vector<uint32_t> answers = answers_of(*entry->model->pipeline, slots.at(*slot).stage);
  bool fits = outputs.tensors.size() == answers.size();
  for (size_t i = 0; fits && i < answers.size(); ++i) {
    fits = outputs.tensors[i].size() == frontend_->output(payload, answers[i]).size();
  }
  if (!fits) return Status::invalid_argument("OUTPUTS that do not fit the stage");
  if (static_cast<size_t>(std::ranges::count(entry->others, *slot, &KeptOutputs::slot)) == kActionsPerRequestMax) {
    return Status::invalid_argument("OUTPUTS of too many actions for one visit");
  }
  KeptOutputs& kept = entry->others.emplace_back();
  kept.action = outputs.action;
  kept.slot = *slot;
  for (const auto& tensor : outputs.tensors) kept.tensors.emplace_back(tensor.begin(), tensor.end());
  if (entry->completion) answer(static_cast<Slot>(run_of(outputs.payload).value()), now);
  return Status();
}

// None if the request is over.
TensorBytes FrontendLink::inputs_of(const Fetch& fetch) {
  TensorBytes tensors;
  if (is_run_id(fetch.request)) {
    const InFlight* run = find(run_of(fetch.payload), run_of(fetch.request));
    for (const uint32_t i : fetch.tensors) {
      if (run == nullptr || i >= run->model->inputs.size()) return {};
      tensors.push_back(frontend_->input(run->request.payload, i));
    }
  } else if (const InFlight* entry = find(fetch.payload, fetch.request)) {
    for (uint32_t i = 0; i < entry->model->inputs.size(); ++i) {
      tensors.push_back(frontend_->input(entry->request.payload, i));
    }
  }
  return tensors;
}

Status FrontendLink::on_outputs(const Outputs& outputs, TimePoint now) {
  if (is_run_id(outputs.request)) return on_stage_outputs(outputs, now);
  InFlight* entry = find(outputs.payload, outputs.request);
  if (entry == nullptr) {  // it is over
    consume(outputs.held, std::numeric_limits<uint16_t>::max());
    return Status();
  }
  const auto slot = static_cast<Slot>(outputs.payload.value());
  const bool counts = entry->completion && entry->completion->action == outputs.action;
  const bool here = !outputs.tensors.empty();
  if (here) FOLIOT_RETURN_IF_ERROR(check_sizes(*entry, outputs.tensors));
  if (here && (!entry->in_payload || counts)) {
    put(*entry, outputs.tensors);
    entry->in_payload = outputs.action;
  } else if (entry->others.size() < kActionsPerRequestMax) {
    KeptOutputs& kept = entry->others.emplace_back();
    kept.action = outputs.action;
    kept.held = outputs.held;
    kept.detail = outputs.detail;
    for (const auto& tensor : outputs.tensors) kept.tensors.emplace_back(tensor.begin(), tensor.end());
  } else {
    return Status::invalid_argument("OUTPUTS of too many actions for one request");
  }
  if (counts) answer(slot, now);
  return Status();
}

Status FrontendLink::check_sizes(const InFlight& request, const TensorBytes& tensors) {
  bool fits = tensors.size() == request.model->outputs.size();
  for (uint32_t i = 0; fits && i < tensors.size(); ++i) {
    fits = tensors[i].size() == frontend_->output(request.request.payload, i).size();
  }
  return fits ? Status() : Status::invalid_argument("OUTPUTS that do not fit the model");
}

void FrontendLink::put(const InFlight& request, const TensorBytes& tensors) {
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    std::ranges::copy(tensors[i], frontend_->output(request.request.payload, i).begin());
  }
}

// Outputs that have not come in time, though their worker is there.
void FrontendLink::look_for_the_lost(TimePoint now) {
  if (unjoined_ == 0) return;
  for (Slot slot = 0; slot < in_flight_.size(); ++slot) {
    const InFlight& entry = in_flight_[slot];
    if (!entry.completion || now <= entry.give_up) continue;
    if (now > entry.request.answer_by()) {
      fail(slot, Refusal::kLate, {}, now);
    } else {
      fail(slot, Refusal::kWorkerLost, "its outputs did not come; try again", now);
    }
  }
}

// ---- Workers and models ----

void FrontendLink::set_models(const std::vector<ModelInfo>& models, TimePoint now) {
  std::unordered_map<ModelId, ModelId> known;  // by the controller's name
  for (auto& [id, model] : models_) {
    if (model.forgotten_at) continue;
    if (takeover_until_ && model.name == kUnnamed) continue;
    known.emplace(model.name, id);
    model.forgotten_at = now + kClusterTimeouts.withdrawn_model;
  }
  std::set<std::string, std::less<>> names;
  for (const ModelInfo& served : models) {
    names.insert(served.name);
    if (Model* const same = takeover_until_ ? unnamed(served) : nullptr; same != nullptr) {
      same->name = served.id;
      continue;
    }
    const auto place = known.find(served.id);
    Model* earlier = place == known.end() ? nullptr : &models_.at(place->second);
    if (earlier != nullptr && earlier->info->name == served.name && earlier->info->version == served.version) {
      earlier->forgotten_at.reset();
      continue;
    }
    auto info = std::make_shared<ModelInfo>(served);
    info->id = ModelId(next_model_++);
    models_.emplace(info->id, Model{served.id, info});
    if (shown_.insert(info->name).second) frontend_->on_model(*info);
    catalog_.put({info->name, info->version, ModelState::kReady, {}, info});
  }
  // A controller that has just begun has none yet: then they are waited for.
  if (takeover_until_) {  // some are still to come
    for (const auto& [id, model] : models_) {
      if (model.name == kUnnamed && !model.forgotten_at) names.insert(model.info->name);
    }
  } else if (models.empty()) {
    return await_models("no worker has registered yet; try again");
  }
  for (const auto& [name, entry] : catalog_.snapshot()) {
    if (names.contains(name) || entry->role == EntryRole::kPersonal || entry->versions != nullptr) continue;
    if (entry->role != EntryRole::kModel && entry->info != nullptr) continue;
    const auto unserved = unserved_.find(name);
    if (unserved == unserved_.end()) {
      catalog_.remove(name);
    } else {
      catalog_.put({name, unserved->second.version, ModelState::kUnavailable, unserved->second.reason, nullptr});
    }
  }
  show_unserved();
  catalog_.set_ready();
  if (!models.empty()) watch_.on_ready(models.size());
  if (takeover_until_) send_waiting(now);
}

// Workers evaluate them.
std::shared_ptr<const ModelInfo> FrontendLink::without_conditions(const std::shared_ptr<const ModelInfo>& info) {
  if (info->pipeline == nullptr) return info;
  auto pipeline = std::make_shared<PipelineInfo>(*info->pipeline);
  for (PipelineStage& stage : pipeline->stages) {
    stage.conditions.clear();
    stage.count.reset();
  }
  auto result = std::make_shared<ModelInfo>(*info);
  result->pipeline = std::move(pipeline);
  return result;
}

// Of the models that were sent before.
template <typename Kind>
std::optional<FrontendLink::Defined<Kind>> FrontendLink::made(const typename Kind::Definition& definition,
                                                              typename Kind::Id id) {
  ModelsByName models;
  for (const auto& [own, model] : models_) {
    if (!model.forgotten_at && model.name != kUnnamed) models[model.info->name] = model.info;
  }
  name_highest_versions(models);
  const typename Kind::Spec spec = Kind::parse(definition);
  // What has changed meanwhile comes with the next message.
  if (!spec.status.ok() || !Kind::can_serve(spec, models)) return std::nullopt;
  const auto info = Kind::make(spec, models, id);
  if (!info.ok()) {
    watch_.log(Severity::kWarning,
               fmt::format("{} '{}': {}", to_string(Kind::kRole), definition.name, info.status().message()));
    return std::nullopt;
  }
  auto own_ids = std::make_shared<OwnIds>();
  for (const ModelId own : Kind::models_of(**info)) own_ids->emplace(models_.at(own).name, own);
  return Defined<Kind>{
      .name = definition.id, .definition = definition, .info = without_conditions(*info), .models = std::move(own_ids)};
}

template <typename Kind>
void FrontendLink::set(AllDefined<Kind>& defined, const typename Kind::Message& message, TimePoint now) {
  std::map<typename Kind::Id, typename Kind::Id> known;  // by the controller's name
  for (auto& [id, entry] : defined.entries) {
    if (entry.forgotten_at) continue;
    if (takeover_until_ && entry.name == typename Kind::Id()) continue;
    known.emplace(entry.name, id);
    entry.forgotten_at = now + kClusterTimeouts.withdrawn_model;
  }
  std::set<std::string, std::less<>> names;
  for (const typename Kind::Definition& served : Kind::list(message)) {
    if (takeover_until_ && rename<Kind>(defined, served)) {
      names.insert(served.name);
      continue;
    }
    std::shared_ptr<const ModelInfo> info;
    if (const auto place = known.find(served.id); place != known.end()) {
      Defined<Kind>& entry = defined.entries.at(place->second);
      entry.forgotten_at.reset();
      info = entry.info;
    } else {
      const typename Kind::Id id(defined.next_id);
      std::optional<Defined<Kind>> entry = made<Kind>(served, id);
      if (!entry) continue;
      ++defined.next_id;
      info = entry->info;
      defined.entries.emplace(id, *std::move(entry));
    }
    names.insert(served.name);
    const Catalog::EntryPtr shown = catalog_.find(served.name);
    if (shown != nullptr && shown->info == info) continue;
    CatalogEntry entry{.name = served.name,
                       .version = info->version,
                       .state = ModelState::kReady,
                       .reason = {},
                       .info = info,
                       .role = Kind::kRole};
    for (const std::string& model : Kind::model_names(*info)) {
      if (std::ranges::find(entry.models, model) == entry.models.end()) entry.models.push_back(model);
    }
    catalog_.put(std::move(entry));
  }
  for (const auto& [id, entry] : defined.entries) {
    if (takeover_until_ && entry.name == typename Kind::Id() && !entry.forgotten_at) names.insert(entry.info->name);
  }
  for (const auto& [name, entry] : catalog_.snapshot()) {
    if (entry->role == Kind::kRole && entry->info != nullptr && !names.contains(name)) catalog_.remove(name);
  }
  show_unserved();
  if (takeover_until_) send_waiting(now);
}

void FrontendLink::set_unserved(Unserved unserved) {
  const auto earlier = std::exchange(unserved_, {});
  for (Unserved::Model& model : unserved.models) unserved_.emplace(model.name, std::move(model));
  for (const auto& [name, model] : earlier) {
    if (unserved_.contains(name)) continue;
    const Catalog::EntryPtr entry = catalog_.find(name);
    if (entry == nullptr) continue;
    if (entry->info == nullptr) {
      catalog_.remove(name);
    } else {
      CatalogEntry shown = *entry;
      shown.reason.clear();
      catalog_.put(std::move(shown));
    }
  }
  show_unserved();
}

// A model that an older version serves stays ready, with the reason beside it.
void FrontendLink::show_unserved() {
  for (const auto& [name, model] : unserved_) {
    const Catalog::EntryPtr entry = catalog_.find(name);
    if (entry != nullptr && entry->info != nullptr) {
      if (entry->reason == model.reason) continue;
      CatalogEntry shown = *entry;
      shown.reason = model.reason;
      catalog_.put(std::move(shown));
    } else {
      catalog_.put({name, model.version, ModelState::kUnavailable, model.reason, nullptr});
    }
  }
}

void FrontendLink::await_models(const std::string& why) {
  catalog_.set_ready(false);
  for (const auto& [name, entry] : catalog_.snapshot()) {
    if (entry->role == EntryRole::kPersonal) continue;  // it is served here
    catalog_.put({name, entry->version, ModelState::kLoading, why, nullptr});
  }
}

void FrontendLink::on_workers(const Workers& message) {
  addresses_.clear();
  std::map<std::string, WorkerSession*> earlier = std::exchange(workers_, {});
  for (const Workers::Worker& worker : message.workers) {
    if (worker.data_address.empty()) continue;
    for (const DeviceId device : worker.devices) addresses_[device] = worker.data_address;
    const auto known = earlier.find(worker.data_address);
    workers_[worker.data_address] = known == earlier.end() ? nullptr : known->second;
    if (const Status status = loop_->keep(worker.data_address); !status.ok()) {
      watch_.log(Severity::kWarning, fmt::format("worker '{}': {}", worker.name, status.message()));
    }
  }
  for (const auto& [address, worker] : earlier) {
    if (!workers_.contains(address)) loop_->release(address);
  }
}

FrontendLink::WorkerSession* FrontendLink::worker_of(DeviceId device) const {
  const auto address = addresses_.find(device);
  if (address == addresses_.end()) return nullptr;
  const auto worker = workers_.find(address->second);
  return worker == workers_.end() ? nullptr : worker->second;
}

void FrontendLink::on_controller_lost(const Status& reason, TimePoint now) {
  controller_ = nullptr;
  number_.reset();
  on_workers({});
  calls_.clear();
  watch_.log(Severity::kWarning, fmt::format("the controller is lost: {}", reason.message()));
  // An ok reason: this side stops.
  if (obeyed_.value() > 0 && !reason.ok()) return await_takeover(now);
  takeover_until_.reset();
  models_.clear();
  pipelines_.entries.clear();
  tasks_.entries.clear();
  unserved_.clear();
  await_models("the controller cannot be reached; try again");
  for (Slot slot = 0; slot < in_flight_.size(); ++slot) {
    if (in_flight_[slot].used) fail(slot, Refusal::kDisconnected, "the controller was lost; try again", now);
  }
}

// What it answered and did not send will not come.
void FrontendLink::on_worker_lost(WorkerSession& worker, const Status& reason, TimePoint now) {
  const auto place = workers_.find(worker.address());
  if (place != workers_.end() && place->second == &worker) place->second = nullptr;
  if (!reason.ok())
    watch_.log(Severity::kWarning, fmt::format("the worker at {} is lost: {}", worker.address(), reason.message()));
  if (unjoined_ == 0) return;
  for (Slot slot = 0; slot < in_flight_.size(); ++slot) {
    if (in_flight_[slot].completion) answer(slot, now);
  }
}

}  // namespace foliot
