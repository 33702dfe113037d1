#include "app/controller_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "transport/client_ids.h"

namespace foliot {
namespace {

constexpr uint32_t kDevicesPerWorkerMax = 64;
constexpr uint32_t kDevicesMax = 4096;
constexpr uint32_t kModelsMax = 16384;

Duration thread_processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Duration::seconds(time.tv_sec) + Duration::nanoseconds(time.tv_nsec);
}

bool same_model(const ModelInfo& a, const ModelInfo& b) {
  return a.name == b.name && a.version == b.version && a.batch_sizes == b.batch_sizes && a.pages == b.pages &&
         a.buckets.size() == b.buckets.size();
}

// A frame that this side never gets from such a peer.
Status unexpected(const Frame& frame) {
  return Status::invalid_argument(fmt::format("a {} has no place here", to_string(frame.type)));
}

Status on_ping(const Frame& frame, Connection& connection, TimePoint now) {
  Ping ping;
  FOLIOT_RETURN_IF_ERROR(decode(frame, ping));
  connection.send(Pong{ping.sent, now});
  return Status();
}

Status on_goodbye(const Frame& frame) {
  Goodbye goodbye;
  FOLIOT_RETURN_IF_ERROR(decode(frame, goodbye));
  return Status::unavailable(fmt::format("it said goodbye: {}", goodbye.reason));
}

}  // namespace

// ---- Conversations ----

class ControllerService::WorkerConversation : public Conversation {
 public:
  WorkerConversation(ControllerService& service, Connection& connection) : service_(service), connection_(connection) {}

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kOutcome: {
        Outcome outcome;
        FOLIOT_RETURN_IF_ERROR(decode(frame, outcome));
        return service_.on_outcome(*this, outcome, now);
      }
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kRegistration: return on_registration(frame, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override {
    service_.log_gone(fmt::format("worker '{}'", about_.name), connection_, reason);
    service_.on_worker_lost(*this, now);
  }

  void send(const Action& action) { connection_.send(action); }
  // No devices until it has registered.
  const Workers::Worker& about() const { return about_; }
  const std::vector<DeviceId>& devices() const { return about_.devices; }

 private:
  Status on_registration(const Frame& frame, TimePoint now) {
    if (!devices().empty()) return Status::invalid_argument("a worker registers once");
    Registration registration;
    FOLIOT_RETURN_IF_ERROR(decode(frame, registration));
    FOLIOT_ASSIGN_OR_RETURN(const Welcome welcome, service_.register_worker(*this, registration, now));
    about_ = {registration.worker, registration.data_address, welcome.devices};
    connection_.send(welcome);
    service_.tell_workers();
    return Status();
  }

  ControllerService& service_;
  Connection& connection_;
  Workers::Worker about_;
};

class ControllerService::ClientConversation : public Conversation {
 public:
  ClientConversation(ControllerService& service, Connection& connection) : service_(service), connection_(connection) {}

  void set_number(uint16_t number) {
    number_ = number;
    connection_.send(Admission{number});
  }
  void send_models() {
    Models models;
    for (const auto& model : service_.controller_.cluster().models) {
      if (model) models.models.push_back(*model);
    }
    connection_.send(models);
  }
  void send_workers() { connection_.send(service_.workers()); }
  void send(const Completion& completion) { connection_.send(completion); }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kRequest: return on_request(frame, now);
      case MessageType::kCancel: return on_cancel(frame, now);
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kStatisticsRequest: {
        StatisticsRequest request;
        FOLIOT_RETURN_IF_ERROR(decode(frame, request));
        connection_.send(service_.take_statistics(now));
        return Status();
      }
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  // What it asked for runs on; the answers are dropped.
  void on_close(const Status& reason, TimePoint /*now*/) override {
    service_.log_gone("client", connection_, reason);
    service_.clients_[number_].conversation = nullptr;
  }

 private:
  Status on_request(const Frame& frame, TimePoint now) {
    Request request;
    FOLIOT_RETURN_IF_ERROR(decode(frame, request));
    if (request.id <= last_request_ || request.id.value() > kOwnIdMax) {
      return Status::invalid_argument(
          fmt::format("request {} after request {}: ids must grow", request.id.value(), last_request_.value()));
    }
    last_request_ = request.id;
    service_.on_request(number_, request, now);
    return Status();
  }
  Status on_cancel(const Frame& frame, TimePoint now) {
    Cancel cancel;
    FOLIOT_RETURN_IF_ERROR(decode(frame, cancel));
    if (cancel.request.value() > kOwnIdMax) return Status::invalid_argument("there is no such request");
    service_.controller_.on_cancel(request_of(number_, cancel.request), now);
    return Status();
  }

  ControllerService& service_;
  Connection& connection_;
  uint16_t number_ = 0;
  RequestId last_request_;
};

// ---- Service ----

ControllerService::ControllerService(const ControllerOptions& options,
                                     const Controller::SchedulerFactory& make_scheduler, ClockFunction clock, Log log)
    : clock_(clock), log_(std::move(log)), controller_(options, make_scheduler, *this, *this) {
  counters_.since = clock();
}

ControllerService::~ControllerService() = default;

Result<std::unique_ptr<Conversation>> ControllerService::on_open(Connection& connection, Role peer, TimePoint /*now*/) {
  switch (peer) {
    case Role::kController: return Status::invalid_argument("it is a controller, as this side");
    case Role::kWorker: return std::unique_ptr<Conversation>(std::make_unique<WorkerConversation>(*this, connection));
    case Role::kClient: break;
  }
  auto client = std::make_unique<ClientConversation>(*this, connection);
  FOLIOT_ASSIGN_OR_RETURN(const uint16_t number, add_client(*client));
  client->set_number(number);
  client->send_models();
  client->send_workers();
  return std::unique_ptr<Conversation>(std::move(client));
}

void ControllerService::on_no_greeting(const std::string& peer, const Status& reason) {
  if (!reason.ok()) log_(fmt::format("{} was not let in: {}", peer, reason.message()));
}

void ControllerService::log_gone(const std::string& who, const Connection& connection, const Status& reason) {
  if (!reason.ok()) log_(fmt::format("{} at {} is gone: {}", who, connection.peer(), reason.message()));
}

TimePoint ControllerService::on_turn_end(TimePoint now) {
  fail_what_is_lost(now);
  const TimePoint wake = controller_.turn(now);
  counters_.decisions.record(clock_() - now);
  return given_to_the_lost_.empty() ? wake : now;
}

Statistics ControllerService::take_statistics(TimePoint now) {
  const Counters counters =
      std::exchange(counters_, Counters{.since = now, .processor_time_before = thread_processor_time()});
  return {.elapsed = now - counters.since,
          .devices = static_cast<uint32_t>(devices_.size()),
          .requests = counters.requests,
          .served = counters.served,
          .actions = counters.actions,
          .decisions = counters.decisions.count(),
          .decision_p50 = counters.decisions.quantile(0.5),
          .decision_p99 = counters.decisions.quantile(0.99),
          .decision_p999 = counters.decisions.quantile(0.999),
          .decision_max = counters.decisions.max(),
          .processor_time = counters_.processor_time_before - counters.processor_time_before,
          .bytes_received = traffic_ ? traffic_->received : 0,
          .bytes_sent = traffic_ ? traffic_->sent : 0};
}

// ---- Workers ----

Status ControllerService::check_models(const std::vector<ModelInfo>& models) const {
  if (models.empty() || models.size() > kModelsMax) {
    return Status::invalid_argument(fmt::format("a worker brings 1 to {} models, not {}", kModelsMax, models.size()));
  }
  std::set<std::string_view> names;
  for (const ModelInfo& model : models) {
    if (!names.insert(model.name).second) {
      return Status::invalid_argument(fmt::format("model '{}' is brought twice", model.name));
    }
  }
  const auto& known = controller_.cluster().models;
  if (known.empty()) return Status();
  if (models.size() != known.size()) {
    return Status::invalid_argument(
        fmt::format("all workers must bring the same models: this one brings {}, the first brought {}", models.size(),
                    known.size()));
  }
  for (size_t i = 0; i < models.size(); ++i) {
    if (same_model(models[i], *known[i])) continue;
    return Status::invalid_argument(fmt::format(
        "all workers must bring the same models in the same order: '{}' is not what the first brought as '{}'",
        models[i].name, known[i]->name));
  }
  return Status();
}

void ControllerService::add_models(const std::vector<ModelInfo>& models, TimePoint now) {
  for (const ModelInfo& model : models) {
    auto added = std::make_shared<ModelInfo>(model);
    added->id = ModelId(static_cast<uint32_t>(controller_.cluster().models.size()));
    controller_.add_model(std::move(added), now);
  }
  for (const Client& client : clients_) {
    if (client.conversation != nullptr) client.conversation->send_models();
  }
}

Result<Welcome> ControllerService::register_worker(WorkerConversation& worker, const Registration& registration,
                                                   TimePoint now) {
  const size_t count = registration.page_counts.size();
  if (count == 0 || count > kDevicesPerWorkerMax || devices_.size() + count > kDevicesMax) {
    return Status::resource_exhausted(fmt::format("a worker has 1 to {} devices, all workers together {} at most",
                                                  kDevicesPerWorkerMax, kDevicesMax));
  }
  FOLIOT_RETURN_IF_ERROR(check_models(registration.models));
  Welcome welcome;
  for (const uint32_t pages : registration.page_counts) {
    welcome.devices.push_back(controller_.add_device(pages, now));
    devices_.push_back({.worker = &worker});
    FOLIOT_CHECK(welcome.devices.back().value() + 1 == devices_.size());
  }
  if (controller_.cluster().models.empty()) add_models(registration.models, now);
  for (const auto& model : controller_.cluster().models) welcome.models.push_back(model->id);
  return welcome;
}

void ControllerService::send(const Action& action) {
  ++counters_.actions;
  Device& device = devices_[action.device.value()];
  device.outstanding.emplace(action.id, Outstanding{action.type, action.model});
  if (device.worker != nullptr) return device.worker->send(action);
  given_to_the_lost_.push_back(action.device);
}

Status ControllerService::on_outcome(WorkerConversation& worker, const Outcome& outcome, TimePoint now) {
  const auto& own = worker.devices();
  if (std::ranges::find(own, outcome.device) == own.end()) {
    return Status::invalid_argument(fmt::format("device {} is not its own", outcome.device.value()));
  }
  auto& outstanding = devices_[outcome.device.value()].outstanding;
  const auto found = outstanding.find(outcome.action);
  if (found == outstanding.end() || found->second.type != outcome.type || found->second.model != outcome.model) {
    return Status::invalid_argument(
        fmt::format("action {} was not given to device {}", outcome.action.value(), outcome.device.value()));
  }
  outstanding.erase(found);
  controller_.on_outcome(outcome, now);
  return Status();
}

void ControllerService::on_worker_lost(WorkerConversation& worker, TimePoint now) {
  for (const DeviceId device : worker.devices()) {
    devices_[device.value()].worker = nullptr;
    given_to_the_lost_.push_back(device);
  }
  fail_what_is_lost(now);
  if (!worker.devices().empty()) tell_workers();
}

// Each once, at its first device.
Workers ControllerService::workers() const {
  Workers told;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const WorkerConversation* worker = devices_[i].worker;
    if (worker != nullptr && worker->devices().front().value() == i) told.workers.push_back(worker->about());
  }
  return told;
}

void ControllerService::tell_workers() {
  for (const Client& client : clients_) {
    if (client.conversation != nullptr) client.conversation->send_workers();
  }
}

// In the order of ids, so that the same events give the same completions.
void ControllerService::fail_what_is_lost(TimePoint now) {
  for (const DeviceId device : std::exchange(given_to_the_lost_, {})) {
    const auto lost = std::exchange(devices_[device.value()].outstanding, {});
    std::vector<std::pair<ActionId, Outstanding>> actions(lost.begin(), lost.end());
    std::ranges::sort(actions, {}, [](const auto& action) { return action.first; });
    for (const auto& [id, action] : actions) fail(id, action, device, now);
  }
}

void ControllerService::fail(ActionId id, const Outstanding& action, DeviceId device, TimePoint now) {
  controller_.on_outcome({.action = id,
                          .type = action.type,
                          .device = device,
                          .model = action.model,
                          .status = OutcomeStatus::kFailed,
                          .start = now,
                          .end = now,
                          .output_end = now},
                         now);
}

// ---- Clients ----

Result<uint16_t> ControllerService::add_client(ClientConversation& client) {
  const auto free = std::ranges::find_if(
      clients_, [](const Client& other) { return other.conversation == nullptr && other.in_flight == 0; });
  const auto number = static_cast<size_t>(free - clients_.begin());
  if (number == kClientsMax) return Status::resource_exhausted(fmt::format("{} clients are enough", kClientsMax));
  if (free == clients_.end()) clients_.emplace_back();
  clients_[number].conversation = &client;
  return static_cast<uint16_t>(number);
}

void ControllerService::on_request(uint16_t client, Request request, TimePoint now) {
  ++counters_.requests;
  ++clients_[client].in_flight;
  request.id = request_of(client, request.id);
  controller_.on_request(request, now);
}

void ControllerService::complete(const Completion& completion) {
  if (completion.served()) ++counters_.served;
  Client& client = clients_[client_of(completion.id)];
  FOLIOT_CHECK(client.in_flight > 0);
  --client.in_flight;
  if (client.conversation == nullptr) return;
  Completion answer = completion;
  answer.id = own_id(completion.id);
  client.conversation->send(answer);
}

}  // namespace foliot
