#include "cluster/worker_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "cluster/answer_fetch.h"
#include "cluster/cluster_timeouts.h"
#include "core/stage_visit.h"
#include "transport/frame_handlers.h"
#include "transport/peer_clock.h"

namespace foliot {
namespace {

// Ids of actions that the worker gives itself; the controller's are smaller.
constexpr uint64_t kOwnActions = uint64_t{1} << 63;

uint64_t largest_batch_bytes(const ModelInfo& model) {
  uint64_t row_bytes = 0;
  for (uint16_t bucket = 0; bucket < model.buckets.size(); ++bucket) {
    row_bytes = std::max(row_bytes, row_layout(model, BucketId(bucket)).bytes());
  }
  return row_bytes * model.batch_size_max();
}

// "0.0.0.0:8200" as peers that see this side at `host` reach it.
std::string reachable(const std::string& address, const std::string& host) {
  const size_t colon = address.rfind(':');
  const std::string listens = address.substr(0, colon);
  if (listens != "0.0.0.0" && listens != "[::]") return address;
  const bool needs_brackets = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}{}", needs_brackets ? "[" : "", host, needs_brackets ? "]" : "", address.substr(colon));
}

// Those that are wanted and have a reason why they, or a newer version, are not served.
Unserved unserved_models(const Catalog& catalog) {
  Unserved unserved;
  for (const auto& [name, entry] : catalog.snapshot()) {
    if (!entry->wanted || entry->reason.empty() || entry->state == ModelState::kLoading) continue;
    if (unserved.models.size() == kUnservedMax) break;
    unserved.models.push_back({name, entry->version, entry->reason.substr(0, kReasonBytesMax)});
  }
  return unserved;
}

}  // namespace

// ---- Sessions ----

class WorkerLink::ControllerSession : public Session {
 public:
  ControllerSession(WorkerLink& link, Connection& connection)
      : link_(link), connection_(connection), host_clock_(connection) {}

  void start(TimePoint now) { host_clock_.start(now); }
  void keep(TimePoint now) { host_clock_.keep(now); }
  Connection& connection() { return connection_; }
  const ClockOffset& offset() const { return host_clock_.offset(); }
  bool can_register() const { return host_clock_.ready() && !registered_; }
  bool registered() const { return registered_; }
  bool welcome() const { return !devices_.empty(); }
  // The position of the device that the controller knows by this id; nullopt: none of these.
  std::optional<DeviceId> own(DeviceId device) const {
    const auto found = std::ranges::find(devices_, device);
    if (found == devices_.end()) return std::nullopt;
    return DeviceId(static_cast<uint32_t>(found - devices_.begin()));
  }
  void register_with(const Registration& registration) {
    registered_ = true;
    connection_.send(registration);
  }
  void leave() {
    if (registered_) connection_.send(Leave{});
  }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kVisits: return on_visits(frame);
      case MessageType::kAction: return on_action(frame, now);
      case MessageType::kDiscard: return on_discard(frame);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kWelcome: return on_welcome(frame, now);
      case MessageType::kWorkers: return on_workers(frame);
      case MessageType::kNaming: return on_naming(frame);
      case MessageType::kRelease: return on_release(frame);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override {
    link_.controller_ = nullptr;
    link_.forget_actions(now);
    link_.models_.lose_names();
    link_.unserved_revision_.reset();
    link_.watch_.on_controller(false);
    if (!reason.ok()) {
      link_.watch_.log(Severity::kWarning,
                       fmt::format("the controller at {} is lost: {}", connection_.peer(), reason.message()));
    }
  }

 private:
  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    return host_clock_.on_pong(pong, now);
  }

  Status on_welcome(const Frame& frame, TimePoint now) {
    Welcome welcome;
    FOLIOT_RETURN_IF_ERROR(decode(frame, welcome));
    if (!registered_ || this->welcome() || welcome.devices.size() != link_.workers_.size()) {
      return Status::invalid_argument("a WELCOME that does not fit the registration");
    }
    devices_ = welcome.devices;
    return link_.on_welcome(welcome, now);
  }
  Status on_workers(const Frame& frame) {
    Workers workers;
    FOLIOT_RETURN_IF_ERROR(decode(frame, workers));
    if (!welcome()) return unexpected(frame);
    link_.on_workers(workers);
    return Status();
  }
  Status on_naming(const Frame& frame) {
    Naming naming;
    FOLIOT_RETURN_IF_ERROR(decode(frame, naming));
    return welcome() ? link_.models_.name(naming.model, naming.name) : unexpected(frame);
  }
  Status on_release(const Frame& frame) {
    Release release;
    FOLIOT_RETURN_IF_ERROR(decode(frame, release));
    return welcome() ? link_.models_.release(release.model) : unexpected(frame);
  }

  Status on_visits(const Frame& frame) {
    if (visits_) return Status::invalid_argument("VISITS after another");
    return decode(frame, visits_.emplace());
  }
  Status on_discard(const Frame& frame) {
    Discard discard;
    FOLIOT_RETURN_IF_ERROR(decode(frame, discard));
    link_.discard(discard.visit);
    return Status();
  }
  Status on_action(const Frame& frame, TimePoint now) {
    Action action;
    FOLIOT_RETURN_IF_ERROR(decode(frame, action));
    const Visits visits = std::exchange(visits_, std::nullopt).value_or(Visits{action.id, {}});
    if (visits.action != action.id) return Status::invalid_argument("an ACTION after the VISITS of another");
    const std::optional<DeviceId> device = own(action.device);
    if (!device) return Status::invalid_argument("an ACTION for another device");
    action.earliest = host_clock_.offset().to_own(action.earliest);
    action.latest = host_clock_.offset().to_own(action.latest);
    return link_.on_action(action, *device, visits, now);
  }

  WorkerLink& link_;
  Connection& connection_;
  PeerClock host_clock_;
  bool registered_ = false;
  std::vector<DeviceId> devices_;  // as the controller knows them, once it is welcome
  std::optional<Visits> visits_;   // of the action that comes next
};

class WorkerLink::ClientSession : public Session {
 public:
  ClientSession(WorkerLink& link, Connection& connection, TimePoint now)
      : link_(link), connection_(connection), last_message_(now) {}

  Connection& connection() { return connection_; }
  std::optional<uint16_t> number() const { return number_; }
  void set_number(std::optional<uint16_t> number) { number_ = number; }
  void check(TimePoint now) {
    constexpr Duration kSilence = kClusterTimeouts.frontend_silence;
    if (now - last_message_ > kSilence)
      connection_.request_close(Status::unavailable(fmt::format("no message for {:.0f} s", kSilence.to_seconds())));
  }

  Status on_frame(const Frame& frame, TimePoint now) override {
    last_message_ = now;
    switch (frame.type) {
      case MessageType::kInputs: return on_inputs(frame, now);
      case MessageType::kConsumed: return on_consumed(frame);
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kAttach: return on_attach(frame, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override {
    std::erase(link_.sessions_, this);
    link_.on_detach(*this, now);
    if (!reason.ok()) {
      link_.watch_.log(Severity::kWarning,
                       fmt::format("the front end at {} is gone: {}", connection_.peer(), reason.message()));
    }
  }

 private:
  Status on_attach(const Frame& frame, TimePoint now) {
    Attach attach;
    FOLIOT_RETURN_IF_ERROR(decode(frame, attach));
    if (number_) return Status::invalid_argument("a client attaches once");
    link_.on_attach(*this, attach.client, now);
    return Status();
  }
  Status on_inputs(const Frame& frame, TimePoint now) {
    Inputs inputs;
    FOLIOT_RETURN_IF_ERROR(decode(frame, inputs));
    if (!number_ || inputs.request.value() > kOwnIdMax) return Status::invalid_argument("INPUTS without a FETCH");
    return link_.on_inputs(*number_, inputs, now);
  }
  Status on_consumed(const Frame& frame) {
    Consumed consumed;
    FOLIOT_RETURN_IF_ERROR(decode(frame, consumed));
    if (!number_) return Status::invalid_argument("a CONSUMED without an ATTACH");
    link_.held_.consume(consumed.payload, *number_, consumed.consumers);
    return Status();
  }

  WorkerLink& link_;
  Connection& connection_;
  TimePoint last_message_;
  std::optional<uint16_t> number_;  // once it has attached
};

// With another worker, whose payloads are fetched.
class WorkerLink::HolderSession : public Session {
 public:
  HolderSession(WorkerLink& link, Connection& connection) : link_(link), connection_(connection), clock_(connection) {}

  void start(TimePoint now) { clock_.start(now); }
  // Its clock is of no interest, but that it answers is.
  void keep(TimePoint now) { clock_.keep(now); }
  Connection& connection() { return connection_; }
  const std::string& address() const { return connection_.ends().dialed; }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kInputs: return on_inputs(frame, now);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint /*now*/) override {
    const auto place = link_.holders_.find(address());
    if (place == link_.holders_.end() || place->second != this) return;
    place->second = nullptr;
    link_.lost_holders_.push_back(address());
    if (!reason.ok()) {
      link_.watch_.log(Severity::kWarning,
                       fmt::format("the worker at {} is lost: {}", connection_.peer(), reason.message()));
    }
  }

 private:
  Status on_inputs(const Frame& frame, TimePoint now) {
    Inputs inputs;
    FOLIOT_RETURN_IF_ERROR(decode(frame, inputs));
    link_.on_held_inputs(address(), inputs, now);
    return Status();
  }
  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    return clock_.on_pong(pong, now);
  }

  WorkerLink& link_;
  Connection& connection_;
  PeerClock clock_;
};

// With another worker, which fetches payloads.
class WorkerLink::FetcherSession : public Session {
 public:
  FetcherSession(const WorkerLink& link, Connection& connection) : link_(link), connection_(connection) {}

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kFetch:
        return answer_fetch(frame, connection_, [this](const Fetch& fetch) {
          if (fetch.source == 0) return link_.held_.find(fetch.payload, client_of(fetch.request));
          return link_.held_of(visit_of(run_of(fetch.request), fetch.source - 1), fetch.tensors);
        });
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint /*now*/) override {
    if (!reason.ok()) {
      link_.watch_.log(Severity::kWarning,
                       fmt::format("the worker at {} is gone: {}", connection_.peer(), reason.message()));
    }
  }

 private:
  const WorkerLink& link_;
  Connection& connection_;
};

// ---- The link ----

WorkerLink::WorkerLink(WorkerLinkOptions options, Watch watch)
    : options_(std::move(options)),
      watch_(std::move(watch)),
      staging_(options_.staging_bytes, options_.actions_max),
      held_(options_.held_bytes, options_.held_max),
      outcomes_(options_.actions_max),
      orders_(size_t{4} * options_.models_max) {}
WorkerLink::~WorkerLink() = default;

void WorkerLink::start(std::vector<Worker*> workers, std::string data_address, LinkControl& loop) {
  workers_ = std::move(workers);
  data_address_ = std::move(data_address);
  loop_ = &loop;
}

void WorkerLink::drain() {
  drain_asked_.store(true);
  loop_->wake();
}

void WorkerLink::go_on_draining(TimePoint now) {
  if (!std::exchange(draining_, true)) {
    idle_since_ = drain_began_ = now;
    if (controller_ != nullptr) controller_->leave();
  }
  if (now - idle_since_ > kClusterTimeouts.drain_quiet || now - drain_began_ > options_.drain_timeout)
    watch_.on_drained();
}

// Every action has one outcome, and there are no more of them than the ring holds.
void WorkerLink::report(const Outcome& outcome) {
  FOLIOT_CHECK(outcomes_.push(outcome));
  loop_->wake();
}

Result<std::unique_ptr<Session>> WorkerLink::on_open(Connection& connection, Role peer, TimePoint now) {
  const bool dialed = !connection.ends().dialed.empty();
  const bool holder = dialed && holders_.contains(connection.ends().dialed);
  if (!dialed && peer == Role::kWorker) {
    return std::unique_ptr<Session>(std::make_unique<FetcherSession>(*this, connection));
  }
  const Role expected = holder ? Role::kWorker : dialed ? Role::kController : Role::kClient;
  if (peer != expected) {
    return Status::invalid_argument(fmt::format("it is a {}, not a {}", to_string(peer), to_string(expected)));
  }
  if (holder) {
    auto session = std::make_unique<HolderSession>(*this, connection);
    session->start(now);
    on_holder(*session, now);
    return std::unique_ptr<Session>(std::move(session));
  }
  if (!dialed) {
    auto client = std::make_unique<ClientSession>(*this, connection, now);
    sessions_.push_back(client.get());
    return std::unique_ptr<Session>(std::move(client));
  }
  auto controller = std::make_unique<ControllerSession>(*this, connection);
  controller_ = controller.get();
  lost_clients_.reset();  // numbers are the controller's
  last_complaint_.clear();
  controller->start(now);
  return std::unique_ptr<Session>(std::move(controller));
}

// The same complaint about an absent controller comes twice a second.
void WorkerLink::on_no_greeting(const std::string& peer, const Status& reason) {
  if (holders_.contains(peer)) lost_holders_.push_back(peer);
  std::string complaint = fmt::format("{}: {}", peer, reason.message());
  if (reason.ok() || complaint == last_complaint_) return;
  watch_.log(Severity::kWarning, complaint);
  last_complaint_ = std::move(complaint);
}

TimePoint WorkerLink::on_turn_end(TimePoint now) {
  while (outcomes_.consume([&](Outcome& outcome) { on_outcome(outcome, now); })) {
  }
  while (orders_.consume([this](Order& order) { std::visit([this](auto& what) { handle(what); }, order); })) {
  }
  starve_rows_of_lost_holders(now);
  register_if_idle(now);
  if (now >= next_look_) {
    next_look_ = now + kClusterTimeouts.check_interval;
    refuse_what_is_late(now);
    held_.free_expired(now);
    if (controller_ != nullptr) controller_->keep(now);
    for (const auto& [address, holder] : holders_) {
      if (holder != nullptr) holder->keep(now);
    }
    send_unserved();
    for (ClientSession* client : sessions_) client->check(now);
  }
  if (!given_.empty()) idle_since_ = now;
  if (drain_asked_.load()) go_on_draining(now);
  return next_look_;
}

void WorkerLink::register_if_idle(TimePoint now) {
  if (controller_ == nullptr || !controller_->can_register() || !given_.empty() || draining_) return;
  if (!pages_are_clear(now)) return;
  Registration registration{.worker = options_.name,
                            .kind = options_.kind,
                            .data_address = reachable(data_address_, controller_->connection().ends().own_host),
                            .page_counts = std::vector<uint32_t>(workers_.size(), options_.page_count),
                            .lane_counts = std::vector<uint32_t>(workers_.size(), options_.lane_count),
                            .models = {},
                            .residents = std::vector<std::vector<uint32_t>>(workers_.size()),
                            .held_bytes = options_.held_bytes,
                            .held_payloads = options_.held_max};
  for (const ModelId model : models_.begin()) {
    for (size_t device = 0; device < workers_.size(); ++device) {
      if (!workers_[device]->resident(model)) continue;
      registration.residents[device].push_back(static_cast<uint32_t>(registration.models.size()));
    }
    registration.models.push_back(models_.info(model));
  }
  // The first model may still be on its way here.
  if (!registration.models.empty()) controller_->register_with(registration);
}

bool WorkerLink::pages_are_clear(TimePoint now) {
  for (const ModelId model : models_.strays()) {
    for (uint32_t device = 0; device < workers_.size(); ++device) {
      if (!workers_[device]->resident(model)) continue;
      if (given_.size() == options_.actions_max) return false;
      unload(model, DeviceId(device), now);
    }
  }
  return given_.empty();
}

void WorkerLink::unload(ModelId model, DeviceId device, TimePoint now) {
  const Action unload{.id = ActionId(kOwnActions | ++unloads_),
                      .type = ActionType::kUnload,
                      .model = model,
                      .earliest = now,
                      .latest = TimePoint::infinite_future()};
  const Given kept{.action = unload, .device = device, .model = model, .forgotten = true};
  Given& given = given_.emplace(unload.id, kept).first->second;
  observe(given, now);
  advance(given, now);
}

bool WorkerLink::is_resident(ModelId model) const {
  return std::ranges::any_of(workers_, [model](const Worker* worker) { return worker->resident(model); });
}

Status WorkerLink::on_welcome(const Welcome& welcome, TimePoint now) {
  FOLIOT_RETURN_IF_ERROR(models_.welcome(welcome.models));
  held_.start_handles(controller_->offset().to_host(now));
  for (const ModelId model : models_.strays()) {
    if (!is_resident(model)) continue;
    return Status::unavailable("its pages hold models that are not served; it registers again without them");
  }
  if (!pipelines_.pipelines.empty()) controller_->connection().send(pipelines_);
  watch_.on_controller(true);
  watch_.on_registered(welcome.models.size() - static_cast<size_t>(std::ranges::count(welcome.models, kUnnamed)));
  return Status();
}

// ---- Models ----

Status WorkerLink::check(const ModelInfo& model) const {
  const uint64_t batch_bytes = largest_batch_bytes(model);
  if (batch_bytes <= options_.staging_bytes) return Status();
  return Status::resource_exhausted(
      fmt::format("a batch's inputs and outputs take {}, and there are {} for all; choose a larger --staging",
                  format_bytes(batch_bytes), format_bytes(options_.staging_bytes)));
}

void WorkerLink::post(Order order) {
  FOLIOT_CHECK(orders_.push(std::move(order)));
  if (loop_ != nullptr) loop_->wake();
}

void WorkerLink::add_model(std::shared_ptr<const ModelInfo> model) { post(AddModel{std::move(model)}); }

void WorkerLink::extend_model(std::shared_ptr<const ModelInfo> /*model*/) { FOLIOT_CHECK(takes_parts()); }

void WorkerLink::remove_model(ModelId model, std::function<void()> gone) { post(RemoveModel{model, std::move(gone)}); }

void WorkerLink::handle(AddModel& added) {
  const ModelId id = added.model->id;
  for (Observer* observer : observers_) observer->on_model(*added.model);
  const std::optional<ModelId> earlier = models_.add(std::move(added.model));
  if (controller_ == nullptr || !controller_->registered()) return;
  controller_->connection().send(Offer{models_.info(id)});
  if (earlier) controller_->connection().send(Withdrawal{*earlier});
}

void WorkerLink::handle(RemoveModel& removed) {
  const bool withdrawn = models_.remove(removed.model, std::move(removed.gone));
  if (withdrawn && controller_ != nullptr && controller_->registered()) {
    controller_->connection().send(Withdrawal{removed.model});
  }
}

void WorkerLink::send_unserved() {
  if (catalog_ == nullptr || controller_ == nullptr || !controller_->welcome()) return;
  const uint64_t revision = catalog_->unavailable_revision();
  if (unserved_revision_ == revision) return;
  unserved_revision_ = revision;
  controller_->connection().send(unserved_models(*catalog_));
}

// ---- Actions ----

Status WorkerLink::on_action(const Action& action, DeviceId device, Visits visits, TimePoint now) {
  if (given_.contains(action.id) || action.id.value() >= kOwnActions) {
    return Status::invalid_argument("an ACTION that was sent before");
  }
  Given given{.action = action, .device = device};
  const std::optional<ModelId> model = models_.named(action.model);
  if (!model) {
    refuse(given, OutcomeStatus::kUnknownModel, now);
    return Status();
  }
  given.model = *model;
  observe(given, now);
  if (given_.size() == options_.actions_max) {
    refuse(given, OutcomeStatus::kQueueFull, now);
    return Status();
  }
  if (action.type == ActionType::kInfer) {
    for (Visits::Visit& visit : visits.visits) given.visits[visit.row].order = std::move(visit.order);
    if (const auto refusal = stage(given, now)) {
      refuse(given, *refusal, now);
      return Status();
    }
    if (const Status status = check_visits(given); !status.ok()) {
      release(given);
      return status;
    }
  }
  Given& kept = given_.emplace(action.id, given).first->second;
  for (uint32_t row = 0; row < action.rows.size(); ++row) fetch(kept, row);
  advance(kept, now);
  return Status();
}

// Takes room, and finds out whose inputs are needed; or says why not.
std::optional<OutcomeStatus> WorkerLink::stage(Given& given, TimePoint now) {
  const BatchRows& rows = given.action.rows;
  given.layout = models_.layout(given.model, given.action.bucket);
  if (given.layout == nullptr || rows.size() == 0) return OutcomeStatus::kUnknownModel;
  given.batch = staging_.acquire(*given.layout, rows.size());
  if (!given.batch || !reserve_held(given)) return OutcomeStatus::kNoIoMemory;
  given.inputs_by = std::min(given.action.latest, now + kClusterTimeouts.inputs);
  for (auto& [row, visit] : given.visits) {
    for (uint32_t input = 0; input < visit.order.inputs.size(); ++input) {
      const auto& [source, holder] = visit.order.inputs[input];
      auto group = std::ranges::find(visit.waiting, source.stage, &VisitSource::stage);
      if (group == visit.waiting.end()) group = visit.waiting.insert(group, {source.stage, holder, {}, {}});
      group->inputs.push_back(input);
      group->tensors.push_back(source.tensor);
    }
  }
  // What goes on has its inputs already.
  for (uint32_t row = 0; given.action.range.begins() && row < rows.size(); ++row) {
    (lost_clients_[client_of(rows[row].request)] ? given.gone : given.missing).set(row);
  }
  return std::nullopt;
}

// Room for the outputs that are to be held.
bool WorkerLink::reserve_held(Given& given) {
  for (uint32_t row = 0; row < given.action.rows.size(); ++row) {
    const auto visit = given.visits.find(row);
    const bool held = visit != given.visits.end() && visit->second.order.held;
    if (given.action.rows[row].consumers == 0 && !held) continue;
    const std::optional<HeldPayloads::Place> place = held_.reserve(given.layout->outputs);
    if (!place) return false;
    given.places.emplace(row, *place);
  }
  return true;
}

// The memory that it took.
void WorkerLink::release(const Given& given) {
  if (given.batch) staging_.release(*given.batch);
  for (const auto& [row, place] : given.places) held_.give_back(place);
}

// From a client that has not attached yet, it is fetched when it does.
void WorkerLink::fetch(Given& given, uint32_t row) {
  if (!given.missing[row]) return;
  const BatchRows::Row& wanted = given.action.rows[row];
  if (given.visits.contains(row)) return fetch_visit(given, row);
  if (wanted.input) return fetch_held(given, row);
  const auto client = clients_.find(client_of(wanted.request));
  if (client == clients_.end()) return;
  client->second->connection().send(Fetch{given.action.id, own_id(wanted.request), wanted.payload});
}

// From a worker that is not connected yet, it is fetched when it is (on_holder()).
void WorkerLink::fetch_held(Given& given, uint32_t row) {
  const BatchRows::Row& wanted = given.action.rows[row];
  if (wanted.input.holder && controller_ != nullptr && controller_->own(*wanted.input.holder)) {
    return feed_held(given, row, held_.find(wanted.input.handle, client_of(wanted.request)));
  }
  HolderSession* holder = holder_at(*wanted.input.holder, given, row);
  if (holder != nullptr) holder->connection().send(Fetch{given.action.id, wanted.request, wanted.input.handle});
}

// nullptr: it is not connected yet, or the row is starved, since it cannot be.
WorkerLink::HolderSession* WorkerLink::holder_at(DeviceId device, Given& given, uint32_t row) {
  const std::string* address = address_of({device, {}});
  if (address == nullptr) {
    starve(given, row, "the worker that held its inputs is gone; try again");
    return nullptr;
  }
  const auto [holder, is_new] = holders_.try_emplace(*address, nullptr);
  if (is_new) {
    if (const Status status = loop_->keep(*address); !status.ok()) {
      holders_.erase(holder);
      starve(given, row, fmt::format("the worker that holds its inputs: {}", status.message()));
      return nullptr;
    }
  }
  return holder->second;
}

// Errors: kInvalidArgument if they are not the inputs of the model.
Status WorkerLink::feed(Given& given, uint32_t row, const TensorBytes& tensors) {
  const std::vector<uint64_t>& wanted = given.layout->inputs;
  if (!std::ranges::equal(wanted, tensors, {}, {}, &std::span<const std::byte>::size)) {
    std::vector<size_t> sizes;
    for (const auto& tensor : tensors) sizes.push_back(tensor.size());
    return Status::invalid_argument(fmt::format("inputs of {} bytes do not fit the model '{}', which takes {}",
                                                fmt::join(sizes, " and "), models_.info(given.model).name,
                                                fmt::join(wanted, " and ")));
  }
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    std::ranges::copy(tensors[i], staging_.input_space(StagingArea::payload(*given.batch, row), i).begin());
  }
  given.missing.reset(row);
  return Status();
}

// With what its holder has sent; no tensors: it does not have it.
void WorkerLink::feed_held(Given& given, uint32_t row, const TensorBytes& tensors) {
  if (tensors.empty()) return starve(given, row, "its inputs are not held any more; try again");
  if (const Status status = feed(given, row, tensors); !status.ok()) starve(given, row, status.message());
}

void WorkerLink::starve(Given& given, uint32_t row, std::string reason) {
  given.missing.reset(row);
  given.unfed.emplace(row, std::move(reason));
}

// To the worker, if nothing is missing any more. `given` may be over after this.
void WorkerLink::advance(Given& given, TimePoint now) {
  if (given.missing.any()) return;
  const bool infer = given.action.type == ActionType::kInfer;
  if (!infer || given.gone.count() < given.action.rows.size()) return give_to_worker(given);
  refuse(given, OutcomeStatus::kTooLate, now);
  given_.erase(given.action.id);
}

void WorkerLink::give_to_worker(Given& given) {
  Action action = given.action;
  action.device = given.device;
  action.model = given.model;
  action.rows = BatchRows();
  for (uint32_t row = 0; row < given.action.rows.size(); ++row) {
    action.rows.add({given.action.rows[row].request, StagingArea::payload(*given.batch, row)});
  }
  workers_[given.device.value()]->send(action);
}

void WorkerLink::refuse(const Given& given, OutcomeStatus status, TimePoint now) {
  release(given);
  send_outcome({.action = given.action.id,
                .type = given.action.type,
                .device = given.action.device,
                .model = given.action.model,
                .status = status,
                .start = now,
                .end = now,
                .output_end = now},
               given, now);
}

void WorkerLink::refuse_what_is_late(TimePoint now) {
  std::erase_if(given_, [&](const auto& entry) {
    const Given& given = entry.second;
    if (given.missing.none() || now <= given.inputs_by) return false;
    refuse(given, OutcomeStatus::kTooLate, now);
    return true;
  });
}

void WorkerLink::on_outcome(const Outcome& outcome, TimePoint now) {
  const auto found = given_.find(outcome.action);
  FOLIOT_CHECK(found != given_.end());
  Given& given = found->second;
  Outcome sent = outcome;
  if (given.batch && !given.forgotten && outcome.done() && given.action.range.ends()) {
    send_outputs(given, now);
    end_visits(given, sent);
  }
  release(given);
  sent.device = given.action.device;
  sent.model = given.action.model;
  send_outcome(sent, given, now);
  given_.erase(found);
}

// Before the outcome, so that they are on their way when the controller says that
// they count.
void WorkerLink::send_outputs(Given& given, TimePoint now) {
  for (uint32_t row = 0; row < given.action.rows.size(); ++row) {
    if (given.visits.contains(row)) continue;
    const auto client = clients_.find(client_of(given.action.rows[row].request));
    if (client != clients_.end()) client->second->connection().send(outputs_of(given, row, now));
  }
}

// The row's outputs, or a reference to them, which are held from now on. What is held is
// always a client's that is attached, so that its end ends with it.
Outputs WorkerLink::outputs_of(Given& given, uint32_t row, TimePoint now) {
  const BatchRows::Row& answered = given.action.rows[row];
  Outputs outputs{given.action.id, own_id(answered.request), answered.payload};
  if (given.gone[row]) return outputs;
  if (const auto unfed = given.unfed.find(row); unfed != given.unfed.end()) {
    outputs.detail = unfed->second;
    return outputs;
  }
  for (uint32_t i = 0; i < given.layout->outputs.size(); ++i) {
    outputs.tensors.push_back(staging_.output(StagingArea::payload(*given.batch, row), i));
  }
  const auto place = given.places.find(row);
  if (place == given.places.end()) return outputs;
  outputs.held = {given.action.device, held_.hold(place->second, outputs.tensors, client_of(answered.request),
                                                  answered.consumers, now + kClusterTimeouts.held_payload)};
  outputs.tensors.clear();
  given.places.erase(place);
  return outputs;
}

void WorkerLink::observe(Given& given, TimePoint now) {
  if (observers_.empty()) return;
  given.observed = true;
  Action action = given.action;
  action.device = given.device;
  action.model = given.model;
  for (Observer* observer : observers_) observer->on_action(action, now);
}

void WorkerLink::observe(const Given& given, Outcome outcome, TimePoint now) {
  if (!given.observed) return;
  Action action = given.action;
  outcome.device = action.device = given.device;
  outcome.model = action.model = given.model;
  for (Observer* observer : observers_) observer->on_outcome(action, outcome, now);
}

void WorkerLink::send_outcome(Outcome outcome, const Given& given, TimePoint now) {
  observe(given, outcome, now);
  if (controller_ == nullptr || given.forgotten) return;
  const ClockOffset& offset = controller_->offset();
  outcome.start = offset.to_host(outcome.start);
  outcome.end = offset.to_host(outcome.end);
  outcome.output_end = offset.to_host(outcome.output_end);
  if (outcome.ready > TimePoint()) outcome.ready = offset.to_host(outcome.ready);
  controller_->connection().send(outcome);
}

// What waits for inputs is over; what the worker has runs on, without a receiver. What is
// held has no consumers any more: references are of the session.
void WorkerLink::forget_actions(TimePoint now) {
  forget_held_of(std::nullopt);
  on_workers({});
  for (auto& [id, given] : given_) {
    given.forgotten = true;
    if (given.missing.none()) continue;
    release(given);
    observe(given, {.action = id, .status = OutcomeStatus::kLost, .start = now, .end = now, .output_end = now}, now);
  }
  std::erase_if(given_, [](const auto& entry) { return entry.second.missing.any(); });
}

// ---- Clients ----

// Visits every such row whose inputs are waited for; actions that lack nothing afterwards
// go on.
template <typename Condition, typename Visit>
void WorkerLink::for_missing_rows(TimePoint now, Condition condition, Visit visit) {
  std::vector<ActionId> touched;
  for (auto& [id, given] : given_) {
    for (uint32_t row = 0; row < given.action.rows.size(); ++row) {
      if (!given.missing[row] || !condition(given, row)) continue;
      visit(given, row);
      if (given.missing.none()) touched.push_back(id);
    }
  }
  std::ranges::sort(touched);
  for (const ActionId id : touched) advance(given_.at(id), now);
}

void WorkerLink::on_attach(ClientSession& client, uint16_t number, TimePoint now) {
  const auto [place, added] = clients_.try_emplace(number, &client);
  if (!added) {
    place->second->set_number(std::nullopt);
    place->second->connection().request_close(Status::unavailable("another connection has taken its place"));
    place->second = &client;
    forget_held_of(number);
  }
  client.set_number(number);
  lost_clients_.reset(number);
  watch_.on_frontends(static_cast<uint32_t>(clients_.size()));
  for_missing_rows(
      now,
      [number](const Given& given, uint32_t row) {
        return client_of(given.action.rows[row].request) == number && !given.action.rows[row].input;
      },
      [this](Given& given, uint32_t row) {
        static const std::string kCall;
        given.visits.contains(row) ? fetch_visit(given, row, &kCall) : fetch(given, row);
      });
}

void WorkerLink::on_detach(ClientSession& client, TimePoint now) {
  if (!client.number()) return;
  clients_.erase(*client.number());
  watch_.on_frontends(static_cast<uint32_t>(clients_.size()));
  lost_clients_.set(*client.number());
  forget_held_of(*client.number());
  for_missing_rows(
      now,
      [&client](const Given& given, uint32_t row) {
        return client_of(given.action.rows[row].request) == *client.number();
      },
      [](Given& given, uint32_t row) {
        given.missing.reset(row);
        given.gone.set(row);
      });
}

WorkerLink::Given* WorkerLink::find_missing(const Inputs& inputs, RequestId request, uint32_t& row) {
  const auto found = given_.find(inputs.action);
  if (found == given_.end()) return nullptr;  // it was given up
  const BatchRows& rows = found->second.action.rows;
  const auto place = std::ranges::find(rows, request, &BatchRows::Row::request);
  row = static_cast<uint32_t>(place - rows.begin());
  return place != rows.end() && found->second.missing[row] ? &found->second : nullptr;
}

Status WorkerLink::on_inputs(uint16_t client, const Inputs& inputs, TimePoint now) {
  uint32_t row = 0;
  Given* given = find_missing(inputs, request_of(client, inputs.request), row);
  if (given == nullptr || given->action.rows[row].input) return Status();  // it came before, or comes from elsewhere
  if (inputs.tensors.empty()) {
    given->missing.reset(row);
    given->gone.set(row);
  } else if (given->visits.contains(row)) {
    FOLIOT_RETURN_IF_ERROR(feed_visit(*given, row, std::nullopt, inputs.tensors));
  } else {
    FOLIOT_RETURN_IF_ERROR(feed(*given, row, inputs.tensors));
  }
  advance(*given, now);
  return Status();
}

// ---- Other workers ----

void WorkerLink::on_workers(const Workers& workers) {
  addresses_.clear();
  std::set<std::string> there;
  for (const Workers::Worker& worker : workers.workers) {
    if (worker.data_address.empty()) continue;
    there.insert(worker.data_address);
    for (const DeviceId device : worker.devices) addresses_[device] = worker.data_address;
  }
  for (const auto& [address, holder] : holders_) {
    if (there.contains(address)) continue;
    loop_->release(address);
    lost_holders_.push_back(address);
  }
  std::erase_if(holders_, [&](const auto& holder) { return !there.contains(holder.first); });
}

const std::string* WorkerLink::address_of(const PayloadReference& payload) const {
  const auto address = payload ? addresses_.find(*payload.holder) : addresses_.end();
  return address == addresses_.end() ? nullptr : &address->second;
}

void WorkerLink::on_holder(HolderSession& holder, TimePoint now) {
  holders_[holder.address()] = &holder;
  for_missing_rows(
      now, [&](const Given& given, uint32_t row) { return is_waiting_for(given, row, holder.address()); },
      [&](Given& given, uint32_t row) {
        given.visits.contains(row) ? fetch_visit(given, row, &holder.address()) : fetch(given, row);
      });
}

void WorkerLink::starve_rows_of_lost_holders(TimePoint now) {
  if (lost_holders_.empty()) return;
  const std::vector<std::string> lost = std::exchange(lost_holders_, {});
  for_missing_rows(
      now,
      [&](const Given& given, uint32_t row) {
        if (given.visits.contains(row)) {
          return std::ranges::any_of(given.visits.at(row).waiting, [&](const VisitSource& source) {
            const std::string* address = source.stage ? address_of({source.holder, {}}) : nullptr;
            return source.stage && (address == nullptr || std::ranges::find(lost, *address) != lost.end());
          });
        }
        const PayloadReference& input = given.action.rows[row].input;
        const std::string* address = address_of(input);
        return input && (address == nullptr || std::ranges::find(lost, *address) != lost.end());
      },
      [this](Given& given, uint32_t row) { starve(given, row, "the worker that held its inputs is lost; try again"); });
}

void WorkerLink::on_held_inputs(const std::string& address, const Inputs& inputs, TimePoint now) {
  uint32_t row = 0;
  Given* given = find_missing(inputs, inputs.request, row);
  if (given == nullptr) return;
  if (const auto visit = given->visits.find(row); visit != given->visits.end()) {
    const auto source = std::ranges::find_if(visit->second.waiting, [&](const VisitSource& waiting) {
      return waiting.stage && *waiting.stage + 1 == inputs.source;
    });
    if (source == visit->second.waiting.end()) return;
    const std::string* from = address_of({source->holder, {}});
    if (from == nullptr || *from != address) return;
    if (inputs.tensors.empty()) {
      starve(*given, row, "what an earlier stage computed is not held any more");
    } else if (const Status status = feed_visit(*given, row, source->stage, inputs.tensors); !status.ok()) {
      starve(*given, row, status.message());
    } else {
      count_stage_inputs(inputs.tensors, true);
    }
    return advance(*given, now);
  }
  const std::string* holder = address_of(given->action.rows[row].input);
  if (holder == nullptr || *holder != address) return;
  feed_held(*given, row, inputs.tensors);
  advance(*given, now);
}

// ---- Visits of stages ----

bool WorkerLink::is_waiting_for(const Given& given, uint32_t row, const std::string& address) const {
  const auto at_address = [&](const PayloadReference& payload) {
    const std::string* from = address_of(payload);
    return from != nullptr && *from == address;
  };
  const auto visit = given.visits.find(row);
  if (visit == given.visits.end()) return at_address(given.action.rows[row].input);
  return std::ranges::any_of(visit->second.waiting, [&](const VisitSource& source) {
    return source.stage && at_address({source.holder, {}});
  });
}

Status WorkerLink::check_visits(const Given& given) const {
  const ModelInfo& model = models_.info(given.model);
  const Bucket& dimensions = model.buckets[given.action.bucket.value()];
  const auto element_is_there = [&](const StageCondition& condition) {
    if (condition.output >= model.outputs.size()) return false;
    const TensorSpec& output = model.outputs[condition.output];
    const uint64_t elements = byte_size(output.type, shape_in(output, dimensions)) / size_of(output.type);
    return elements > (condition.value == StageCondition::Value::kElement ? condition.element : 0);
  };
  for (const auto& [row, visit] : given.visits) {
    const VisitOrder& order = visit.order;
    if (row < given.action.rows.size() && order.inputs.size() == given.layout->inputs.size() &&
        std::ranges::all_of(order.answers, [&](uint32_t output) { return output < model.outputs.size(); }) &&
        std::ranges::all_of(order.conditions, element_is_there)) {
      continue;
    }
    return Status::invalid_argument(fmt::format("VISITS that do not fit the model '{}'", model.name));
  }
  return Status();
}

// From all sources, or from those at one address; empty: from the call.
void WorkerLink::fetch_visit(Given& given, uint32_t row, const std::string* only_from) {
  const std::vector<VisitSource> waiting = given.visits.at(row).waiting;
  for (const VisitSource& source : waiting) {
    if (only_from != nullptr) {
      const std::string* address = source.stage ? address_of({source.holder, {}}) : nullptr;
      if (source.stage ? address == nullptr || *address != *only_from : !only_from->empty()) continue;
    }
    if (!fetch_source(given, row, source)) return;
  }
}

bool WorkerLink::fetch_source(Given& given, uint32_t row, const VisitSource& source) {
  const BatchRows::Row& wanted = given.action.rows[row];
  if (!source.stage) {
    const auto client = clients_.find(client_of(wanted.request));
    if (client == clients_.end()) return true;  // until it attaches
    client->second->connection().send(
        Fetch{given.action.id, own_id(wanted.request), wanted.payload, 0, source.tensors});
    return true;
  }
  if (controller_ != nullptr && controller_->own(source.holder)) {
    const TensorBytes tensors = held_of(visit_of(run_of(wanted.request), *source.stage), source.tensors);
    if (tensors.empty()) {
      starve(given, row, "what an earlier stage computed is not held any more");
      return false;
    }
    if (const Status status = feed_visit(given, row, source.stage, tensors); !status.ok()) {
      starve(given, row, status.message());
      return false;
    }
    count_stage_inputs(tensors, false);
    return true;
  }
  HolderSession* holder = holder_at(source.holder, given, row);
  if (given.unfed.contains(row)) return false;
  if (holder != nullptr) {
    holder->connection().send(Fetch{given.action.id, wanted.request, {}, *source.stage + 1, source.tensors});
  }
  return true;
}

// Empty: it holds nothing of this visit, or not that.
TensorBytes WorkerLink::held_of(RequestId visit, const std::vector<uint32_t>& tensors) const {
  const auto held = visit_outputs_.find(visit);
  if (held == visit_outputs_.end()) return {};
  const TensorBytes all = held_.find(held->second, client_of(visit));
  TensorBytes chosen;
  for (const uint32_t tensor : tensors) {
    if (tensor >= all.size()) return {};
    chosen.push_back(all[tensor]);
  }
  return chosen;
}

// Errors: kInvalidArgument if they are not what the model takes.
Status WorkerLink::feed_visit(Given& given, uint32_t row, std::optional<uint32_t> stage, const TensorBytes& tensors) {
  std::vector<VisitSource>& waiting = given.visits.at(row).waiting;
  const auto source = std::ranges::find(waiting, stage, &VisitSource::stage);
  if (source == waiting.end()) return Status();  // it came before
  bool fits = tensors.size() == source->inputs.size();
  for (size_t i = 0; fits && i < tensors.size(); ++i) {
    fits = tensors[i].size() == given.layout->inputs[source->inputs[i]];
  }
  if (!fits) {
    return Status::invalid_argument(
        fmt::format("inputs of a stage that do not fit the model '{}'", models_.info(given.model).name));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PayloadHandle payload = StagingArea::payload(*given.batch, row);
    std::ranges::copy(tensors[i], staging_.input_space(payload, source->inputs[i]).begin());
  }
  waiting.erase(source);
  if (waiting.empty()) given.missing.reset(row);
  return Status();
}

void WorkerLink::count_stage_inputs(const TensorBytes& tensors, bool fetched) {
  uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.size();
  watch_.on_stage_inputs(bytes, fetched);
}

void WorkerLink::discard(RequestId visit) {
  const auto held = visit_outputs_.find(visit);
  if (held == visit_outputs_.end()) return;
  held_.consume(held->second, client_of(visit), 1);
  visit_outputs_.erase(held);
}

// Of this client, or of all.
void WorkerLink::forget_held_of(std::optional<uint16_t> client) {
  client ? held_.free_all_of(*client) : held_.free_all();
  std::erase_if(visit_outputs_, [&](const auto& held) { return !client || client_of(held.first) == *client; });
}

void WorkerLink::end_visits(Given& given, Outcome& outcome) {
  for (const auto& [row, visit] : given.visits) {
    if (!outcome.failed_rows[row] && !end_visit(given, row, outcome)) outcome.unfed_rows.set(row);
  }
}

// False: it was not computed on its inputs, or there is no client for whom to hold its outputs.
bool WorkerLink::end_visit(Given& given, uint32_t row, Outcome& outcome) {
  const BatchRows::Row& answered = given.action.rows[row];
  const auto client = clients_.find(client_of(answered.request));
  if (given.gone[row] || given.unfed.contains(row) || client == clients_.end()) return false;
  const VisitOrder& order = given.visits.at(row).order;
  TensorBytes outputs;
  for (uint32_t i = 0; i < given.layout->outputs.size(); ++i) {
    outputs.push_back(staging_.output(StagingArea::payload(*given.batch, row), i));
  }
  uint32_t held_conditions = 0;
  for (uint32_t i = 0; i < order.conditions.size(); ++i) {
    const StageCondition& condition = order.conditions[i];
    const DataType type = models_.info(given.model).outputs[condition.output].type;
    if (holds(condition, type, outputs[condition.output])) held_conditions |= 1u << i;
  }
  outcome.conditions[row] = static_cast<ConditionSet>(held_conditions);
  if (!order.answers.empty()) {
    Outputs answers{given.action.id, own_id(answered.request), answered.payload};
    for (const uint32_t output : order.answers) answers.tensors.push_back(outputs[output]);
    client->second->connection().send(answers);
  }
  if (const auto place = given.places.find(row); place != given.places.end()) {
    discard(answered.request);
    visit_outputs_[answered.request] =
        held_.hold(place->second, outputs, client_of(answered.request), 1, TimePoint::infinite_future());
    given.places.erase(place);
  }
  return true;
}

}  // namespace foliot
