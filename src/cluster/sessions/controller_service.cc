#include "cluster/sessions/controller_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cluster/transport/client_ids.h"
#include "cluster/transport/frame_handlers.h"
#include "foundation/base/check.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

constexpr uint32_t kDevicesPerWorkerMax = 64;
constexpr uint32_t kDevicesMax = 4096;
// Of so many turns one is also measured in processor time, which costs two system calls.
constexpr uint64_t kProcessorTimeEvery = 5;
// Of one client. It sends the rows of a call at once.
constexpr size_t kOpenCallsMax = 65536;

Quantiles quantiles(const Histogram& histogram) {
  return {histogram.quantile(0.5), histogram.quantile(0.99), histogram.quantile(0.999), histogram.max()};
}

}  // namespace

// ---- Sessions ----

namespace {

// Peers send nothing else to a controller that stands by.
Status on_frame_of_standby(const Frame& frame, Connection& connection, TimePoint now) {
  switch (frame.type) {
    case MessageType::kPing: return on_ping(frame, connection, now);
    case MessageType::kGoodbye: return on_goodbye(frame);
    default: return Status::unavailable("this controller stands by, another leads");
  }
}

}  // namespace

class ControllerService::WorkerSession : public Session {
 public:
  WorkerSession(ControllerService& service, Connection& connection, ModelRegistry::WorkerId number)
      : service_(service), connection_(connection), number_(number) {}

  Status on_frame(const Frame& frame, TimePoint now) override {
    if (service_.stands_by_) return on_frame_of_standby(frame, connection_, now);
    for (const DeviceId device : devices()) service_.controller_.on_message(device, now);
    switch (frame.type) {
      case MessageType::kOutcome: {
        Outcome outcome;
        FOLIOT_RETURN_IF_ERROR(decode(frame, outcome));
        return service_.on_report(*this, outcome, now);
      }
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kRegistration: return on_registration(frame, now);
      case MessageType::kOffer: return on_offer(frame);
      case MessageType::kWithdrawal: return on_withdrawal(frame);
      case MessageType::kUnserved: return on_unserved(frame);
      case MessageType::kPipelines: return on_definitions<Pipelines>(frame, service_.pipelines_.registry);
      case MessageType::kTasks: return on_definitions<Tasks>(frame, service_.tasks_.registry);
      case MessageType::kLeave: {
        Leave leave;
        FOLIOT_RETURN_IF_ERROR(decode(frame, leave));
        service_.on_leave(*this, now);
        return Status();
      }
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override {
    std::erase(service_.standby_workers_, this);
    service_.count_linked(-1);
    if (devices().empty() && !about_.name.empty()) {
      service_.log_refused(about_.name, connection_, reason);
    } else {
      service_.log_gone(
          about_.name.empty() ? "a worker that has not registered" : fmt::format("worker '{}'", about_.name),
          connection_, reason);
    }
    service_.on_worker_lost(*this, now);
  }

  template <typename Message>
  void send(const Message& message) {
    connection_.send(message);
  }
  void request_close(const Status& reason) { connection_.request_close(reason); }
  // No devices until it has registered.
  const Workers::Worker& about() const { return about_; }
  const std::vector<DeviceId>& devices() const { return about_.devices; }
  const Unserved& unserved() const { return unserved_; }
  const HeldRoom& room() const { return room_; }
  ModelRegistry::WorkerId number() const { return number_; }

 private:
  Status on_registration(const Frame& frame, TimePoint now) {
    if (!devices().empty()) return Status::invalid_argument("a worker registers once");
    Registration registration;
    FOLIOT_RETURN_IF_ERROR(decode(frame, registration));
    about_.name = registration.worker;
    FOLIOT_ASSIGN_OR_RETURN(const Welcome welcome, service_.register_worker(*this, registration, now));
    about_ = {registration.worker, registration.data_address, welcome.devices};
    service_.refused_.erase(about_.name);
    room_ = {registration.held_bytes, registration.held_payloads};
    connection_.send(welcome);
    service_.set_held_room();
    service_.send_workers();
    return Status();
  }
  Status on_offer(const Frame& frame) {
    if (devices().empty()) return unexpected(frame);
    Offer offer;
    FOLIOT_RETURN_IF_ERROR(decode(frame, offer));
    return service_.registry_.offer(number_, std::move(offer.model));
  }
  Status on_withdrawal(const Frame& frame) {
    if (devices().empty()) return unexpected(frame);
    Withdrawal withdrawal;
    FOLIOT_RETURN_IF_ERROR(decode(frame, withdrawal));
    return service_.registry_.withdraw(number_, withdrawal.model);
  }
  Status on_unserved(const Frame& frame) {
    if (devices().empty()) return unexpected(frame);
    FOLIOT_RETURN_IF_ERROR(decode(frame, unserved_));
    service_.unserved_changed_ = true;
    return Status();
  }
  template <typename Message, typename Registry>
  Status on_definitions(const Frame& frame, Registry& registry) {
    if (devices().empty()) return unexpected(frame);
    Message offered;
    FOLIOT_RETURN_IF_ERROR(decode(frame, offered));
    registry.offer(number_, offered);
    return Status();
  }

  ControllerService& service_;
  Connection& connection_;
  const ModelRegistry::WorkerId number_;
  Workers::Worker about_;
  HeldRoom room_;
  Unserved unserved_;
};

class ControllerService::ClientSession : public Session {
 public:
  ClientSession(ControllerService& service, Connection& connection)
      : service_(service), connection_(connection), opened_(++service.clients_opened_) {}

  void set_number(uint16_t number) {
    number_ = number;
    admitted_ = true;
    connection_.send(Admission{number});
  }
  void send_models() {
    Models models;
    for (const auto& model : service_.controller_.cluster().models) {
      if (model && service_.registry_.serves(model->id)) models.models.push_back(*model);
    }
    connection_.send(models);
  }
  void send_pipelines() { connection_.send(service_.pipelines_.registry.served()); }
  void send_tasks() { connection_.send(service_.tasks_.registry.served()); }
  void send_unserved() { connection_.send(service_.unserved()); }
  void send_workers() { connection_.send(service_.workers()); }
  void send(const Completion& completion) { connection_.send(completion); }
  void send(const Leadership& leadership) { connection_.send(leadership); }
  void request_close(const Status& reason) { connection_.request_close(reason); }
  void send(const Homes& homes) {
    if (keeps_users_) connection_.send(homes);
  }

  Status on_frame(const Frame& frame, TimePoint now) override {
    if (service_.stands_by_) return on_frame_of_standby(frame, connection_, now);
    switch (frame.type) {
      case MessageType::kRequest: return on_request(frame, now);
      case MessageType::kLabel: return on_label(frame);
      case MessageType::kCancel: return on_cancel(frame, now);
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kStatisticsRequest: {
        StatisticsRequest request;
        FOLIOT_RETURN_IF_ERROR(decode(frame, request));
        connection_.send(service_.take_statistics(now));
        return Status();
      }
      case MessageType::kHomeOffer: return on_home_offer(frame, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  // What it asked for runs on; the answers are dropped.
  void on_close(const Status& reason, TimePoint /*now*/) override {
    service_.log_gone("client", connection_, reason);
    std::erase(service_.standby_clients_, this);
    if (!admitted_) return;
    service_.clients_[number_].session = nullptr;
    service_.homes_.leave(opened_);
    for (const auto& [call, open] : calls_) service_.controller_.end_call(request_of(number_, call));
  }

 private:
  Status on_request(const Frame& frame, TimePoint now) {
    Request request;
    FOLIOT_RETURN_IF_ERROR(decode(frame, request));
    const bool is_run = request.pipeline != PipelineId();
    RequestId& last = is_run ? last_run_ : last_request_;
    if (request.id <= last || request.id.value() > kOwnIdMax) {
      return Status::invalid_argument(
          fmt::format("request {} after request {}: ids must grow", request.id.value(), last.value()));
    }
    if (is_run != is_run_id(request.id) || (is_run && (visit_slot(request.id) || visit_slot(request.payload)))) {
      return Status::invalid_argument(fmt::format("request {} with payload {}: not an id of a {}", request.id.value(),
                                                  request.payload.value(), is_run ? "run" : "request for a model"));
    }
    if (label_ && label_->request != request.id) {
      return Status::invalid_argument(
          fmt::format("request {} after the LABEL of request {}", request.id.value(), label_->request.value()));
    }
    FOLIOT_RETURN_IF_ERROR(count_row(request));
    last = request.id;
    service_.submit(number_, request, std::exchange(label_, std::nullopt), now);
    if (const auto call = calls_.find(request.call); call != calls_.end() && call->second.rows_left == 0) {
      service_.controller_.end_call(request_of(number_, request.call));
      calls_.erase(call);
    }
    return Status();
  }
  // Of a task. The first row of a call comes first, and then as many as that says.
  Status count_row(const Request& request) {
    if (request.task == ServedTaskId() || request.call_rows == 1) return Status();
    const bool first = request.call == request.id;
    if (first && calls_.size() == kOpenCallsMax) {
      return Status::resource_exhausted(
          fmt::format("the limit of {} calls of tasks of which rows are still to come is reached", kOpenCallsMax));
    }
    if (first) calls_[request.call] = {request.task, request.call_rows, request.call_rows};
    const auto call = calls_.find(request.call);
    if (call == calls_.end() || call->second.task != request.task || call->second.rows != request.call_rows) {
      return Status::invalid_argument(fmt::format("request {}: no row of call {} is still to come that is like this",
                                                  request.id.value(), request.call.value()));
    }
    --call->second.rows_left;
    return Status();
  }
  Status on_home_offer(const Frame& frame, TimePoint now) {
    HomeOffer home;
    FOLIOT_RETURN_IF_ERROR(decode(frame, home));
    keeps_users_ = true;
    return service_.homes_.join(opened_, std::move(home), now);
  }
  Status on_label(const Frame& frame) {
    Label label;
    FOLIOT_RETURN_IF_ERROR(decode(frame, label));
    if (label_) return Status::invalid_argument("a LABEL after another");
    label_ = std::move(label);
    return Status();
  }
  Status on_cancel(const Frame& frame, TimePoint now) {
    Cancel cancel;
    FOLIOT_RETURN_IF_ERROR(decode(frame, cancel));
    if (cancel.request.value() > kOwnIdMax) return Status::invalid_argument("there is no such request");
    if (cancel.reason != Refusal::kCancelled && cancel.reason != Refusal::kOverload) {
      return Status::invalid_argument(
          fmt::format("request {} is cancelled as '{}'; a client may cancel as 'cancelled' or 'overload'",
                      cancel.request.value(), to_string(cancel.reason)));
    }
    service_.controller_.on_cancel(request_of(number_, cancel.request), cancel.reason, now);
    return Status();
  }

  ControllerService& service_;
  Connection& connection_;
  const uint64_t opened_;  // so many clients were there before, and this one
  bool keeps_users_ = false;
  bool admitted_ = false;  // it has a number
  uint16_t number_ = 0;
  RequestId last_request_;  // for a model
  RequestId last_run_;
  std::optional<Label> label_;  // of the request that comes next
  struct OpenCall {
    ServedTaskId task;
    uint32_t rows = 0;
    uint32_t rows_left = 0;
  };
  std::map<RequestId, OpenCall> calls_;  // of tasks, of which rows are still to come, by the first row
};

// ---- Service ----

ControllerService::ControllerService(const ControllerOptions& options, const Controller::PolicyFactory& make_policy,
                                     ClockFunction clock, Log log)
    : clock_(std::move(clock)), log_(std::move(log)), controller_(options, make_policy, *this, *this) {
  controller_.add_observer(*this);
  controller_.hold_outputs(*this);
  counters_.since = clock_();
}

ControllerService::~ControllerService() = default;

void ControllerService::set_processor_time(ProcessorTimeFunction processor_time) {
  processor_time_ = processor_time;
  counters_.processor_time_before = processor_time_();
}

Result<std::unique_ptr<Session>> ControllerService::on_open(Connection& connection, Role peer, TimePoint /*now*/) {
  if (peer == Role::kController) return Status::invalid_argument("a controller cannot connect to a controller");
  if (connection.peer_standing().epoch > epoch_ && epoch_watch_) epoch_watch_(connection.peer_standing().epoch);
  // It stood by when it sent its greeting.
  if (connection.standing().stands_by && !stands_by_) connection.send(Leadership{epoch_});
  if (peer == Role::kWorker) {
    auto worker = std::make_unique<WorkerSession>(*this, connection, ModelRegistry::WorkerId(++workers_opened_));
    if (stands_by_) standby_workers_.push_back(worker.get());
    count_linked(1);
    return std::unique_ptr<Session>(std::move(worker));
  }
  auto client = std::make_unique<ClientSession>(*this, connection);
  if (stands_by_) {
    standby_clients_.push_back(client.get());
  } else {
    FOLIOT_RETURN_IF_ERROR(admit(*client));
  }
  return std::unique_ptr<Session>(std::move(client));
}

Status ControllerService::admit(ClientSession& client) {
  FOLIOT_ASSIGN_OR_RETURN(const uint16_t number, add_client(client));
  client.set_number(number);
  client.send_models();
  if (pipelines_.ever) client.send_pipelines();
  if (tasks_.ever) client.send_tasks();
  client.send_unserved();
  client.send_workers();
  return Status();
}

void ControllerService::begin_to_lead() {
  FOLIOT_CHECK(stands_by_);
  stands_by_ = false;
  epoch_ = lead_asked_.exchange(0);
  for (WorkerSession* worker : std::exchange(standby_workers_, {})) worker->send(Leadership{epoch_});
  for (ClientSession* client : std::exchange(standby_clients_, {})) {
    client->send(Leadership{epoch_});
    if (const Status status = admit(*client); !status.ok()) client->request_close(status);
  }
}

void ControllerService::count_linked(int change) {
  linked_workers_ = change < 0 ? linked_workers_ - 1 : linked_workers_ + 1;
  if (linked_watch_) linked_watch_(linked_workers_);
}

void ControllerService::on_no_greeting(const std::string& peer, const Status& reason) {
  if (!reason.ok()) log_(Severity::kWarning, fmt::format("refused {}: {}", peer, reason.message()));
}

void ControllerService::log_gone(const std::string& who, const Connection& connection, const Status& reason) {
  if (!reason.ok())
    log_(Severity::kWarning, fmt::format("{} at {} is gone: {}", who, connection.peer(), reason.message()));
}

// It registers again twice a second, mostly for the same reason. What passes by itself is no trouble.
void ControllerService::log_refused(const std::string& worker, const Connection& connection, const Status& reason) {
  if (reason.ok()) return;
  if (refused_.size() >= kRefusedMax && !refused_.contains(worker)) refused_.clear();
  std::string& last = refused_[worker];
  if (last == reason.message()) return;
  last = reason.message();
  log_(reason.code() == StatusCode::kUnavailable ? Severity::kInfo : Severity::kWarning,
       fmt::format("worker '{}' at {} cannot join: {}", worker, connection.peer(), reason.message()));
}

TimePoint ControllerService::on_turn_end(TimePoint now) {
  if (lead_asked_.load() != 0) begin_to_lead();
  go_on_changing_models(now);
  send_homes(now);
  apply_targets(now);
  const bool sampled = counters_.decisions.count() % kProcessorTimeEvery == 0;
  const Duration processor_time_before = sampled ? processor_time_() : Duration();
  const TimePoint begin = sampled ? clock_() : now;
  const TimePoint wake = controller_.turn(now);
  const Duration decision = clock_() - begin;
  counters_.decisions.record(decision);
  if (turn_watch_) turn_watch_(decision);
  if (sampled) counters_.decisions_processor.record(processor_time_() - processor_time_before);
  let_go_who_is_idle();
  if (drain_asked_.load()) {
    go_on_draining(now);
  } else if (hand_over_asked_.load()) {
    set_drained(std::ranges::all_of(clients_, [](const Client& client) { return client.session == nullptr; }));
  }
  return std::min({wake, registry_.next(), pipelines_.registry.next(), tasks_.registry.next(), homes_.next()});
}

void ControllerService::send_homes(TimePoint now) {
  const std::optional<Homes> homes = homes_.take(now);
  if (!homes) return;
  log_(Severity::kInfo, fmt::format("{} front ends keep users of personal models", homes->homes.size()));
  for (const Client& client : clients_) {
    if (client.session != nullptr) client.session->send(*homes);
  }
}

void ControllerService::go_on_draining(TimePoint now) {
  if (!std::exchange(draining_, true)) controller_.drain(now);
  set_drained(std::ranges::all_of(clients_, [](const Client& client) { return client.in_flight == 0; }));
}

void ControllerService::set_drained(bool drained) {
  drained_.store(drained);
  if (!drained) return;
  if (const auto watch = std::exchange(drain_watch_, nullptr)) watch();
}

Statistics ControllerService::take_statistics(TimePoint now) {
  const Counters counters =
      std::exchange(counters_, Counters{.since = now, .processor_time_before = processor_time_()});
  return {.elapsed = now - counters.since,
          .devices = static_cast<uint32_t>(
              std::ranges::count_if(devices_, [](const Device& device) { return device.worker != nullptr; })),
          .requests = counters.requests,
          .served = counters.served,
          .actions = counters.actions,
          .decisions = counters.decisions.count(),
          .decision = quantiles(counters.decisions),
          .decision_processor = quantiles(counters.decisions_processor),
          .processor_time = counters_.processor_time_before - counters.processor_time_before,
          .bytes_received = traffic_ ? traffic_->received : 0,
          .bytes_sent = traffic_ ? traffic_->sent : 0};
}

// ---- Workers ----

std::vector<DeviceId> ControllerService::devices_for(const std::string& worker, const std::string& kind, size_t count,
                                                     TimePoint now) const {
  std::vector<DeviceId> own;
  std::vector<DeviceId> free;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].worker != nullptr) continue;
    const Cluster& cluster = controller_.cluster();
    if (cluster.kind_name(cluster.device(DeviceId(i)).kind()) != kind) continue;
    if (devices_[i].owner == worker) own.emplace_back(i);
    if (controller_.may_join(DeviceId(i)) <= now) free.emplace_back(i);
  }
  if (own.size() == count) return own;
  for (auto next = static_cast<uint32_t>(devices_.size()); free.size() < count; ++next) free.emplace_back(next);
  free.resize(count);
  return free;
}

Result<Welcome> ControllerService::register_worker(WorkerSession& worker, const Registration& registration,
                                                   TimePoint now) {
  const size_t count = registration.page_counts.size();
  if (count == 0 || count > kDevicesPerWorkerMax) {
    return Status::resource_exhausted(fmt::format("a worker has 1 to {} devices, not {}", kDevicesPerWorkerMax, count));
  }
  const std::vector<DeviceId> devices = devices_for(registration.worker, registration.kind, count, now);
  if (devices.back().value() >= kDevicesMax) {
    return Status::resource_exhausted(fmt::format("the limit of {} devices of all workers is reached", kDevicesMax));
  }
  if (!controller_.may_add_kind(registration.kind)) {
    return Status::resource_exhausted(
        fmt::format("the limit of {} kinds of device is reached: there cannot be '{}'", kKindsMax, registration.kind));
  }
  FOLIOT_RETURN_IF_ERROR(registry_.check(registration.kind, registration.models));
  for (size_t i = 0; i < count; ++i) {
    if (const Duration wait = controller_.may_join(devices[i]) - now; wait > Duration()) {
      return Status::unavailable(
          fmt::format("fenced as slow or failing; it can register again in {:.1f} s", wait.to_seconds()));
    }
    uint64_t pages = 0;
    for (const uint32_t position : registration.residents[i]) pages += registration.models[position].only().pages;
    if (pages > registration.page_counts[i]) {
      return Status::invalid_argument(
          fmt::format("its device {} holds {} pages, and has {}", i, pages, registration.page_counts[i]));
    }
  }
  const ModelRegistry::Joined joined = registry_.join(worker.number(), registration.kind, registration.models, now);
  pipelines_.registry.join(worker.number(), registration.kind, now);
  tasks_.registry.join(worker.number(), registration.kind, now);
  workers_.emplace(worker.number(), &worker);
  change_models(joined.decisions, now);
  for (size_t i = 0; i < count; ++i) {
    if (devices[i].value() == devices_.size()) devices_.emplace_back();
    devices_[devices[i].value()] = {&worker, registration.worker};
    std::vector<ModelId> residents;
    for (const uint32_t position : registration.residents[i]) {
      if (joined.names[position] != kUnnamed) residents.push_back(joined.names[position]);
    }
    std::ranges::sort(residents);
    controller_.join_device(devices[i], registration.page_counts[i], residents, now, registration.kind,
                            registration.lane_counts[i], registration.context_counts[i]);
  }
  return Welcome{devices, joined.names};
}

// ---- Models ----

void ControllerService::go_on_changing_models(TimePoint now) {
  change_models(registry_.decide(now), now);
  const bool models = std::exchange(models_changed_, false);
  const bool pipelines_changed = pipelines_.registry.changed(now);
  if (models || pipelines_changed) change(pipelines_, "pipeline", now);
  if (models || pipelines_changed || tasks_.registry.changed(now)) {
    change(tasks_, "task", now, [this](const std::string& name) -> std::string_view {
      return pipelines_.registry.serves(name) ? "a pipeline" : "";
    });
  }
  for (const PipelineId id : pipelines_.registry.take_retired(now)) controller_.remove_pipeline(id);
  for (const ServedTaskId id : tasks_.registry.take_retired(now)) controller_.remove_task(id);
  const bool pipelines = std::exchange(pipelines_.changed, false) || (models && pipelines_.ever);
  const bool tasks = std::exchange(tasks_.changed, false) || (models && tasks_.ever);
  const bool unserved = std::exchange(unserved_changed_, false);
  if (!models && !pipelines && !tasks && !unserved) return;
  for (const Client& client : clients_) {
    if (client.session == nullptr) continue;
    if (models) client.session->send_models();
    if (pipelines) client.session->send_pipelines();
    if (tasks) client.session->send_tasks();
    if (unserved) client.session->send_unserved();
  }
}

ModelsByName ControllerService::served_models() const {
  ModelsByName models;
  for (const auto& model : controller_.cluster().models) {
    if (model && registry_.serves(model->id)) models.emplace(model->name, model);
  }
  name_highest_versions(models);
  return models;
}

template <typename Kind>
void ControllerService::change(Defined<Kind>& defined, std::string_view what, TimePoint now,
                               const typename DefinitionRegistry<Kind>::NameTaken& taken) {
  const auto decisions = defined.registry.decide(served_models(), now, taken);
  for (const auto& info : decisions.added) {
    add(info);
    log_(Severity::kInfo, fmt::format("{} '{}' is served", what, info->name));
  }
  for (const auto& [name, reason] : decisions.lacking) {
    const std::string_view state = defined.registry.serves(name) ? "lacks something" : "is not served";
    log_(Severity::kWarning, fmt::format("{} '{}' {}: {}", what, name, state, reason));
  }
  defined.changed = defined.changed || decisions.news;
  defined.ever = defined.ever || decisions.news;
  unserved_changed_ = unserved_changed_ || decisions.news;
}

// ---- Targets ----

void ControllerService::scale(Autoscaler autoscaler, Targets targets) {
  const MutexLock lock(targets_mutex_);
  wanted_targets_.scale(autoscaler, std::move(targets));
  targets_wait_ = true;
}

void ControllerService::set_targets(std::shared_ptr<const NamedTargets> targets) {
  const MutexLock lock(targets_mutex_);
  wanted_targets_.set_named(std::move(targets));
  targets_wait_ = true;
}

void ControllerService::apply_targets(TimePoint now) {
  if (!targets_wait_) return;
  const MutexLock lock(targets_mutex_);
  targets_wait_ = false;
  wanted_targets_.apply(controller_, now);
}

void ControllerService::set_held_room() {
  HeldRoom room;
  for (const auto& [number, worker] : workers_) {
    room.bytes = std::min(room.bytes, worker->room().bytes);
    room.payloads = std::min(room.payloads, worker->room().payloads);
  }
  controller_.set_held_room(room);
}

// Of several workers that cannot serve one, the first gives the reason.
Unserved ControllerService::unserved() const {
  std::map<std::string, Unserved::Model> by_name;
  for (const auto& [number, worker] : workers_) {
    for (const Unserved::Model& model : worker->unserved().models) {
      const std::string reason = fmt::format("worker '{}': {}", worker->about().name, model.reason);
      by_name.try_emplace(model.name, Unserved::Model{model.name, model.version, reason.substr(0, kReasonBytesMax)});
    }
  }
  for (const auto* lacking : {&pipelines_.registry.lacking(), &tasks_.registry.lacking()}) {
    for (const auto& [name, reason] : *lacking) {
      by_name.try_emplace(name, Unserved::Model{name, "1", reason.substr(0, kReasonBytesMax)});
    }
  }
  Unserved all;
  for (auto& [name, model] : by_name) {
    if (all.models.size() == kUnservedMax) break;
    all.models.push_back(std::move(model));
  }
  return all;
}

void ControllerService::change_models(const ModelRegistry::Decisions& decisions, TimePoint now) {
  for (const auto& [worker, naming] : decisions.namings) workers_.at(worker)->send(naming);
  for (const auto& [worker, release] : decisions.releases) workers_.at(worker)->send(release);
  for (const ModelId model : decisions.removed) {
    {
      const MutexLock lock(targets_mutex_);
      wanted_targets_.forget(model);
    }
    controller_.end_runs(model, now);
    controller_.remove_model(model, now);
  }
  for (const auto& [model, replaced] : decisions.added) {
    controller_.add_model(model, now);
    log_(Severity::kInfo, fmt::format("model '{}' version {} is served{}", model->name, model->version,
                                      replaced.empty() ? "" : fmt::format(" in place of version {}", replaced)));
  }
  for (const auto& model : decisions.extended) {
    controller_.extend_model(model);
    log_(Severity::kInfo, fmt::format("model '{}' version {} runs on {}", model->name, model->version, model->kinds()));
  }
  models_changed_ = models_changed_ || decisions.news;
  if (!(decisions.added.empty() && decisions.extended.empty())) targets_wait_ = true;
  forget_models(now);
}

void ControllerService::forget_models(TimePoint now) {
  for (const ModelId id : registry_.removing()) {
    if (!controller_.model_gone(id) || pipelines_.registry.uses(id) || tasks_.registry.uses(id)) continue;
    const ModelRegistry::Gone gone = registry_.gone(id, now);
    for (const auto& [worker, release] : gone.releases) workers_.at(worker)->send(release);
    log_(Severity::kInfo, fmt::format("model '{}' version {} is removed", gone.model->name, gone.model->version));
  }
}

// ---- Actions ----

void ControllerService::send(const Action& action) {
  ++counters_.actions;
  WorkerSession& worker = *devices_[action.device.value()].worker;
  if (controller_.runs() > 0 && action.type == ActionType::kInfer) {
    Visits visits{action.id, {}};
    for (uint32_t row = 0; row < action.rows.size(); ++row) {
      if (auto order = controller_.visit_order(action.rows[row].request))
        visits.visits.push_back({row, *std::move(order)});
    }
    if (!visits.visits.empty()) worker.send(visits);
  }
  worker.send(action);
}

// With the holder's session ends what it holds.
void ControllerService::discard(RequestId visit, DeviceId holder) {
  WorkerSession* worker = devices_[holder.value()].worker;
  if (worker != nullptr) worker->send(Discard{visit});
}

Status ControllerService::on_report(WorkerSession& worker, const Outcome& outcome, TimePoint now) {
  const auto& own = worker.devices();
  if (std::ranges::find(own, outcome.device) == own.end()) {
    return Status::invalid_argument(fmt::format("device {} belongs to another worker", outcome.device.value()));
  }
  const Action* action = controller_.outstanding(outcome.action);
  if (action == nullptr || action->device != outcome.device || action->type != outcome.type ||
      action->model != outcome.model) {
    return Status::invalid_argument(
        fmt::format("action {} was not given to device {}", outcome.action.value(), outcome.device.value()));
  }
  controller_.on_outcome(outcome, now);
  return Status();
}

void ControllerService::on_leave(WorkerSession& worker, TimePoint now) {
  for (const DeviceId device : worker.devices()) controller_.drain_device(device, now);
  leaving_.push_back(&worker);
  if (workers_.contains(worker.number())) registry_.leave(worker.number());
}

void ControllerService::let_go_who_is_idle() {
  std::erase_if(leaving_, [&](WorkerSession* worker) {
    const bool idle = std::ranges::all_of(worker->devices(), [&](DeviceId id) { return controller_.idle(id); });
    if (idle) worker->request_close(Status::unavailable("its actions are finished"));
    return idle;
  });
}

void ControllerService::on_worker_lost(WorkerSession& worker, TimePoint now) {
  std::erase(leaving_, &worker);
  if (workers_.erase(worker.number()) > 0) registry_.lose(worker.number());
  pipelines_.registry.lose(worker.number(), now);
  tasks_.registry.lose(worker.number(), now);
  set_held_room();
  if (!worker.unserved().models.empty()) unserved_changed_ = true;
  std::vector<DeviceId> lost;
  for (const DeviceId id : worker.devices()) {
    Device& device = devices_[id.value()];
    if (device.worker != &worker) continue;  // it was fenced, and may have come again
    device.worker = nullptr;
    lost.push_back(id);
  }
  for (const DeviceId id : lost) {
    const bool left = controller_.cluster().device(id).state() == DeviceState::kDraining;
    controller_.lose_device(id, left ? DeviceTrouble::kLeft : DeviceTrouble::kLink, now);
  }
  if (!worker.devices().empty()) send_workers();
}

// What the controller has found out by itself.
void ControllerService::on_device(const DeviceChange& change, TimePoint /*now*/) {
  Device& device = devices_[change.device.value()];
  if (change.joined) targets_wait_ = true;
  if (change.joined || device.worker == nullptr) return;
  const std::string_view trouble = to_string(change.trouble);
  const Severity level = change.state == DeviceState::kUp ? Severity::kInfo : Severity::kWarning;
  log_(level,
       fmt::format("device {} of worker '{}' is {}{}", change.device.value(), device.owner, to_string(change.state),
                   change.trouble == DeviceTrouble::kNone ? "" : fmt::format(": {}", trouble)));
  if (change.state != DeviceState::kLost) return;
  std::exchange(device.worker, nullptr)->request_close(Status::unavailable(fmt::format("fenced: {}", trouble)));
}

// Each once, at its first device.
Workers ControllerService::workers() const {
  Workers all;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const WorkerSession* worker = devices_[i].worker;
    if (worker != nullptr && !worker->devices().empty() && worker->devices().front().value() == i)
      all.workers.push_back(worker->about());
  }
  return all;
}

void ControllerService::send_workers() {
  for (const Client& client : clients_) {
    if (client.session != nullptr) client.session->send_workers();
  }
  const Workers all = workers();
  for (const auto& [number, worker] : workers_) {
    if (!worker->about().data_address.empty()) worker->send(all);
  }
}

// ---- Clients ----

Result<uint16_t> ControllerService::add_client(ClientSession& client) {
  const auto free = std::ranges::find_if(
      clients_, [](const Client& other) { return other.session == nullptr && other.in_flight == 0; });
  const auto number = static_cast<size_t>(free - clients_.begin());
  if (number == kClientsMax)
    return Status::resource_exhausted(fmt::format("the limit of {} front ends is reached", kClientsMax));
  if (free == clients_.end()) clients_.emplace_back();
  clients_[number].session = &client;
  return static_cast<uint16_t>(number);
}

template <typename Asked, typename Count>
void ControllerService::count(const Asked& asked, Count count) {
  const std::vector<ModelId>* models = nullptr;
  if (asked.task != ServedTaskId()) {
    models = count(tasks_.registry, asked.task);
  } else if (asked.pipeline != PipelineId()) {
    models = count(pipelines_.registry, asked.pipeline);
  } else {
    return count(registry_, asked.model);
  }
  if (models == nullptr) return;
  for (const ModelId model : *models) count(registry_, model);
}

void ControllerService::submit(uint16_t client, Request request, std::optional<Label> label, TimePoint now) {
  ++counters_.requests;
  ++clients_[client].in_flight;
  request.id = request_of(client, request.id);
  if (label && !labels_.empty()) {
    const auto shared = std::make_shared<const CallLabel>(std::move(label->label));
    for (CallLabelSink* const labels : labels_) labels->on_label(request.id, shared);
  }
  if (request.task != ServedTaskId()) request.call = request_of(client, request.call);
  count(request, [](auto& registry, auto id) { return registry.on_request(id); });
  controller_.on_request(request, now);
}

void ControllerService::complete(const Completion& completion) {
  if (completion.served()) ++counters_.served;
  count(completion, [](auto& registry, auto id) { return registry.on_answer(id); });
  Client& client = clients_[client_of(completion.id)];
  FOLIOT_CHECK(client.in_flight > 0);
  --client.in_flight;
  if (client.session == nullptr) return;
  Completion answer = completion;
  answer.id = own_id(completion.id);
  client.session->send(answer);
}

}  // namespace foliot
