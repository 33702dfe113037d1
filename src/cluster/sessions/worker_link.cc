#include "cluster/sessions/worker_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "cluster/sessions/answer_fetch.h"
#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/reachable_address.h"
#include "cluster/sessions/worker_link_sessions.h"
#include "foundation/base/check.h"
#include "foundation/base/hash.h"
#include "foundation/base/units.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

// Ids of actions that the worker gives itself; the controller's are smaller.
constexpr uint64_t kOwnActions = uint64_t{1} << 63;
// Of pipelines and tasks, that the loop has not taken in yet.
constexpr size_t kOffersWaitingMax = 64;

uint64_t largest_batch_bytes(const ModelInfo& model) {
  uint64_t row_bytes = 0;
  for (uint16_t bucket = 0; bucket < model.buckets.size(); ++bucket) {
    row_bytes = std::max(row_bytes, row_layout(model, BucketId(bucket)).bytes());
  }
  return row_bytes * model.batch_size_max();
}

// Where the clocks of several controllers differ, those cannot keep handles apart: a device that one of them calls 0 is
// another worker's for the next. So each worker begins anywhere, and elsewhere each time.
TimePoint handles_from(const std::string& worker, uint64_t epoch, TimePoint controllers_time) {
  constexpr uint64_t kMicrosecondsMax = uint64_t{1} << 43;
  if (epoch == 0) return controllers_time;
  const std::string session = fmt::format("{} {} {}", worker, epoch, controllers_time.nanoseconds());
  return TimePoint() +
         Duration::microseconds(static_cast<int64_t>(hash64(std::as_bytes(std::span(session))) % kMicrosecondsMax));
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

// ---- The link ----

WorkerLink::WorkerLink(WorkerLinkOptions options, Watch watch)
    : options_(std::move(options)),
      watch_(std::move(watch)),
      staging_(options_.staging_bytes, options_.actions_max),
      held_(options_.held_bytes, options_.held_max),
      outcomes_(options_.actions_max),
      orders_(size_t{4} * options_.models_max + kOffersWaitingMax) {}
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
  const Standing& peer_standing = connection.peer_standing();
  if (!peer_standing.stands_by) FOLIOT_RETURN_IF_ERROR(obey(*controller, peer_standing.epoch, now));
  controllers_.push_back(controller.get());
  controller->start(now);
  return std::unique_ptr<Session>(std::move(controller));
}

Status WorkerLink::obey(ControllerSession& controller, uint64_t epoch, TimePoint now) {
  const uint64_t epoch_before = obeyed_.value();
  FOLIOT_RETURN_IF_ERROR(obeyed_.obey(epoch, controller_ == nullptr ? nullptr : &controller_->connection().peer()));
  if (controller_ != nullptr) {
    controller_->connection().request_close(Status::unavailable(
        fmt::format("the controller at {} leads with epoch {}", controller.connection().peer(), epoch)));
    lose_controller(now);
  }
  controller_ = &controller;
  lost_clients_.reset();  // numbers are the controller's
  if (epoch > epoch_before) end_attachments(now);
  return Status();
}

void WorkerLink::lose_controller(TimePoint now) {
  controller_ = nullptr;
  forget_actions(now);
  models_.lose_names();
  unserved_revision_.reset();
  watch_.on_controller(false);
}

// Those of earlier epochs: another controller gave them their numbers.
void WorkerLink::end_attachments(TimePoint now) {
  clients_.clear();
  for (ClientSession* client : sessions_) {
    if (!client->attach()) continue;
    client->set_number(std::nullopt);
    on_attach(*client, *client->attach(), now);
  }
}

void WorkerLink::on_no_greeting(const std::string& peer, const Status& reason) {
  if (holders_.contains(peer)) lost_holders_.push_back(peer);
  if (!reason.ok()) complain(fmt::format("{}: {}", peer, reason.message()));
}

// About a controller that is absent, or does not take this worker.
void WorkerLink::complain(const std::string& complaint) {
  if (complaints_.is_new(complaint)) watch_.log(Severity::kWarning, complaint);
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
    for (ControllerSession* controller : controllers_) controller->keep(now);
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
                            .context_counts = std::vector<uint32_t>(workers_.size(), options_.context_count),
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
  held_.start_handles(handles_from(options_.name, obeyed_.value(), controller_->offset().to_host(now)));
  for (const ModelId model : models_.strays()) {
    if (!is_resident(model)) continue;
    return Status::unavailable("its pages hold models that are not served; it registers again without them");
  }
  if (!pipelines_.pipelines.empty()) controller_->connection().send(pipelines_);
  if (!tasks_.tasks.empty()) controller_->connection().send(tasks_);
  complaints_.forget();
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

// One that has no welcome yet gets them with it.
void WorkerLink::handle(Pipelines& offered) {
  pipelines_ = std::move(offered);
  if (controller_ != nullptr && controller_->welcome()) controller_->connection().send(pipelines_);
}

void WorkerLink::handle(Tasks& offered) {
  tasks_ = std::move(offered);
  if (controller_ != nullptr && controller_->welcome()) controller_->connection().send(tasks_);
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
    for (Visits::Visit& visit : visits.visits) given.visits[visit.row] = std::move(visit.order);
    if (const auto refusal = stage(given, now)) {
      refuse(given, *refusal, now);
      return Status();
    }
    if (const Status status = check_visits(given); !status.ok()) {
      release(given);
      return status;
    }
    for (const auto& [row, order] : given.visits) put_zeros(given, row, order);
  }
  Given& kept = given_.emplace(action.id, given).first->second;
  for (uint32_t row = 0; row < action.rows.size(); ++row) {
    fetch(kept, row, [](const InputSource&) { return true; });
  }
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
  const auto before = unfinished_.extract(std::pair(given.device, given.action.context));
  if (!given.action.range.begins()) {  // what goes on has its inputs already, as far as it ever had
    if (before) given.inputs = std::move(before.mapped());
    return std::nullopt;
  }
  given.inputs = BatchInputs(rows, given.visits);
  for (uint32_t row = 0; row < rows.size(); ++row) {
    if (lost_clients_[client_of(rows[row].request)]) given.inputs.drop(row);
  }
  return std::nullopt;
}

// Where fewer pieces come than there may be.
void WorkerLink::put_zeros(const Given& given, uint32_t row, const VisitOrder& order) {
  for (uint32_t input = 0; input < order.inputs.size(); ++input) {
    const auto& [tensor, taken, pieces, pieces_most] = order.inputs[input];
    const std::span<std::byte> space = staging_.input_space(StagingArea::payload(*given.batch, row), input);
    std::ranges::fill(space.subspan(space.size() / pieces_most * pieces.size()), std::byte());
  }
}

// Room for the outputs that are to be held.
bool WorkerLink::reserve_held(Given& given) {
  for (uint32_t row = 0; row < given.action.rows.size(); ++row) {
    const auto visit = given.visits.find(row);
    const bool held = visit != given.visits.end() && visit->second.held;
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

// From those of its sources for which `condition` holds. Where a front end has not attached yet, or a
// holder is not connected, that follows when it is.
template <typename Condition>
void WorkerLink::fetch(Given& given, uint32_t row, Condition condition) {
  if (!given.inputs.waits(row)) return;
  const std::vector<InputSource> sources = given.inputs.sources(row);
  for (const InputSource& source : sources) {
    if (!given.inputs.waits(row)) return;
    if (!condition(source)) continue;
    source.holder ? fetch_from_holder(given, row, source) : fetch_from_call(given, row, source);
  }
}

void WorkerLink::fetch_from_call(const Given& given, uint32_t row, const InputSource& source) {
  const RequestId request = given.action.rows[row].request;
  const auto client = clients_.find(client_of(request));
  if (client == clients_.end()) return;
  client->second->connection().send(
      Fetch{given.action.id, own_id(request), source.payload, source.number(), source.tensors, source.taken});
}

void WorkerLink::fetch_from_holder(Given& given, uint32_t row, const InputSource& source) {
  const RequestId request = given.action.rows[row].request;
  if (controller_ != nullptr && controller_->own(*source.holder)) {
    return feed_held(given, row, source, held(request, source), false);
  }
  const std::string* address = address_of(source);
  if (address == nullptr) return given.inputs.starve(row, "the worker that held its inputs is gone; try again");
  const auto [holder, is_new] = holders_.try_emplace(*address, nullptr);
  if (is_new) {
    if (const Status status = loop_->keep(*address); !status.ok()) {
      holders_.erase(holder);
      return given.inputs.starve(row, fmt::format("the worker that holds its inputs: {}", status.message()));
    }
  }
  if (holder->second == nullptr) return;
  holder->second->connection().send(
      Fetch{given.action.id, request, source.payload, source.number(), source.tensors, source.taken});
}

// What is held here for this request, or of a visit of its run; empty: it is not.
TensorBytes WorkerLink::held(RequestId request, const InputSource& source) const {
  if (!source.slot) return held_.find(source.payload, client_of(request));
  return take_parts(stage_outputs_.find(visit_of(run_of(request), *source.slot), source.tensors), source.taken);
}

// Errors: kInvalidArgument if they are not the inputs of the model.
Status WorkerLink::feed(Given& given, uint32_t row, const InputSource& source, const TensorBytes& tensors) {
  std::vector<uint32_t> inputs = source.inputs;
  if (inputs.empty()) {
    for (uint32_t input = 0; input < given.layout->inputs.size(); ++input) inputs.push_back(input);
  }
  std::vector<TensorPart> places = source.places;
  places.resize(inputs.size());
  std::vector<uint64_t> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) wanted.push_back(given.layout->inputs[inputs[i]] / places[i].of);
  if (!std::ranges::equal(wanted, tensors, {}, {}, &std::span<const std::byte>::size)) {
    std::vector<size_t> sizes;
    for (const auto& tensor : tensors) sizes.push_back(tensor.size());
    return Status::invalid_argument(fmt::format("inputs of {} bytes do not fit the model '{}', which takes {}",
                                                fmt::join(sizes, " and "), models_.info(given.model).name,
                                                fmt::join(wanted, " and ")));
  }
  const PayloadHandle payload = StagingArea::payload(*given.batch, row);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::ranges::copy(tensors[i], part_of(staging_.input_space(payload, inputs[i]), places[i]).begin());
  }
  given.inputs.receive(row, source.number());
  return Status();
}

// With what its holder has; no tensors: it does not hold them.
void WorkerLink::feed_held(Given& given, uint32_t row, const InputSource& source, const TensorBytes& tensors,
                           bool fetched) {
  if (tensors.empty()) return given.inputs.starve(row, "its inputs are not held any more; try again");
  if (const Status status = feed(given, row, source, tensors); !status.ok()) {
    return given.inputs.starve(row, status.message());
  }
  if (!source.slot) return;
  uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.size();
  watch_.on_stage_inputs(bytes, fetched);
}

// To the worker, if nothing is waited for any more. `given` may be over after this.
void WorkerLink::advance(Given& given, TimePoint now) {
  if (!given.inputs.complete()) return;
  const bool infer = given.action.type == ActionType::kInfer;
  if (!infer || given.inputs.dropped_count() < given.action.rows.size()) return give_to_worker(given);
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
    if (given.inputs.complete() || now <= given.inputs_by) return false;
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
  if (outcome.done() && !given.forgotten && !given.action.range.ends()) {
    unfinished_[{given.device, given.action.context}] = given.inputs;
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
  if (given.inputs.is_dropped(row)) return outputs;
  if (const std::string* reason = given.inputs.starved(row); reason != nullptr) {
    outputs.detail = *reason;
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
    if (given.inputs.complete()) continue;
    release(given);
    observe(given, {.action = id, .status = OutcomeStatus::kLost, .start = now, .end = now, .output_end = now}, now);
  }
  std::erase_if(given_, [](const auto& entry) { return !entry.second.inputs.complete(); });
  unfinished_.clear();
}

// ---- Clients ----

// Changes every such row whose inputs are waited for; actions that lack nothing afterwards
// go on.
template <typename Condition, typename Change>
void WorkerLink::for_waiting_rows(TimePoint now, Condition condition, Change change) {
  std::vector<ActionId> touched;
  for (auto& [id, given] : given_) {
    for (uint32_t row = 0; row < given.action.rows.size(); ++row) {
      if (!given.inputs.waits(row) || !condition(given, row)) continue;
      change(given, row);
      if (given.inputs.complete()) touched.push_back(id);
    }
  }
  std::ranges::sort(touched);
  for (const ActionId id : touched) advance(given_.at(id), now);
}

// One of a later epoch waits until its controller is obeyed here, too.
void WorkerLink::on_attach(ClientSession& client, const Attach& attach, TimePoint now) {
  if (attach.epoch == obeyed_.value()) return this->attach(client, attach.client, now);
  if (attach.epoch > obeyed_.value()) return;
  client.connection().request_close(Status::unavailable(
      fmt::format("it obeys a controller of epoch {}, this side one of epoch {}", attach.epoch, obeyed_.value())));
}

void WorkerLink::attach(ClientSession& client, uint16_t number, TimePoint now) {
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
  for_waiting_rows(
      now, [number](const Given& given, uint32_t row) { return client_of(given.action.rows[row].request) == number; },
      [this](Given& given, uint32_t row) {
        fetch(given, row, [](const InputSource& source) { return !source.holder; });
      });
}

void WorkerLink::on_detach(ClientSession& client, TimePoint now) {
  if (!client.number()) return;
  clients_.erase(*client.number());
  watch_.on_frontends(static_cast<uint32_t>(clients_.size()));
  lost_clients_.set(*client.number());
  forget_held_of(*client.number());
  for_waiting_rows(
      now,
      [&client](const Given& given, uint32_t row) {
        return client_of(given.action.rows[row].request) == *client.number();
      },
      [](Given& given, uint32_t row) { given.inputs.drop(row); });
}

WorkerLink::Given* WorkerLink::find_waiting(const Inputs& inputs, RequestId request, uint32_t& row,
                                            InputSource& source) {
  const auto found = given_.find(inputs.action);
  if (found == given_.end()) return nullptr;  // it was given up
  Given& given = found->second;
  const auto place = std::ranges::find(given.action.rows, request, &BatchRows::Row::request);
  if (place == given.action.rows.end()) return nullptr;
  row = static_cast<uint32_t>(place - given.action.rows.begin());
  const InputSource* waiting = given.inputs.waits(row) ? given.inputs.find(row, inputs.source) : nullptr;
  if (waiting == nullptr) return nullptr;  // they came before
  source = *waiting;
  return &given;
}

Status WorkerLink::on_inputs(uint16_t client, const Inputs& inputs, TimePoint now) {
  uint32_t row = 0;
  InputSource source;
  Given* given = find_waiting(inputs, request_of(client, inputs.request), row, source);
  if (given == nullptr || source.holder) return Status();
  if (inputs.tensors.empty()) {
    given->inputs.drop(row);
  } else {
    FOLIOT_RETURN_IF_ERROR(feed(*given, row, source, inputs.tensors));
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

const std::string* WorkerLink::address_of(const InputSource& source) const {
  const auto address = source.holder ? addresses_.find(*source.holder) : addresses_.end();
  return address == addresses_.end() ? nullptr : &address->second;
}

bool WorkerLink::is_at(const InputSource& source, const std::string& address) const {
  const std::string* from = address_of(source);
  return from != nullptr && *from == address;
}

void WorkerLink::on_holder(HolderSession& holder, TimePoint now) {
  holders_[holder.address()] = &holder;
  for_waiting_rows(
      now, [](const Given&, uint32_t) { return true; },
      [&](Given& given, uint32_t row) {
        fetch(given, row, [&](const InputSource& source) { return is_at(source, holder.address()); });
      });
}

void WorkerLink::starve_rows_of_lost_holders(TimePoint now) {
  if (lost_holders_.empty()) return;
  const std::vector<std::string> lost = std::exchange(lost_holders_, {});
  const auto is_lost = [&](const InputSource& source) {
    const std::string* address = address_of(source);
    return source.holder && (address == nullptr || std::ranges::find(lost, *address) != lost.end());
  };
  for_waiting_rows(
      now, [&](const Given& given, uint32_t row) { return std::ranges::any_of(given.inputs.sources(row), is_lost); },
      [](Given& given, uint32_t row) {
        given.inputs.starve(row, "the worker that held its inputs is lost; try again");
      });
}

void WorkerLink::on_held_inputs(const std::string& address, const Inputs& inputs, TimePoint now) {
  uint32_t row = 0;
  InputSource source;
  Given* given = find_waiting(inputs, inputs.request, row, source);
  if (given == nullptr || !is_at(source, address)) return;
  feed_held(*given, row, source, inputs.tensors, true);
  advance(*given, now);
}

// ---- Visits of stages ----

Status WorkerLink::check_visits(const Given& given) const {
  const ModelInfo& model = models_.info(given.model);
  const Bucket& dimensions = model.buckets[given.action.bucket.value()];
  const auto element_is_there = [&](const StageCondition& condition) {
    if (condition.output >= model.outputs.size()) return false;
    const TensorSpec& output = model.outputs[condition.output];
    const uint64_t elements = byte_size(output.type, shape_in(output, dimensions)) / size_of(output.type);
    return elements > (condition.value == StageCondition::Value::kElement ? condition.element : 0);
  };
  const auto pieces_fit = [&](const VisitOrder& order) {
    if (order.inputs.size() != given.layout->inputs.size()) return false;
    for (uint32_t input = 0; input < order.inputs.size(); ++input) {
      if (given.layout->inputs[input] % order.inputs[input].pieces_most != 0) return false;
    }
    return true;
  };
  for (const auto& [row, order] : given.visits) {
    if (row < given.action.rows.size() && pieces_fit(order) &&
        std::ranges::all_of(order.answers, [&](uint32_t output) { return output < model.outputs.size(); }) &&
        (!order.count || element_is_there({.output = *order.count})) &&
        std::ranges::all_of(order.conditions, element_is_there)) {
      continue;
    }
    return Status::invalid_argument(fmt::format("VISITS that do not fit the model '{}'", model.name));
  }
  return Status();
}

// Of this client, or of all.
void WorkerLink::forget_held_of(std::optional<uint16_t> client) {
  client ? held_.free_all_of(*client) : held_.free_all();
  client ? stage_outputs_.forget_client(*client) : stage_outputs_.forget_all();
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
  if (given.inputs.is_dropped(row) || given.inputs.starved(row) != nullptr || client == clients_.end()) return false;
  const VisitOrder& order = given.visits.at(row);
  TensorBytes outputs;
  for (uint32_t i = 0; i < given.layout->outputs.size(); ++i) {
    outputs.push_back(staging_.output(StagingArea::payload(*given.batch, row), i));
  }
  const auto count = order.count ? std::optional(StageCount{.output = *order.count}) : std::nullopt;
  const VisitReading reading = read_visit(order.conditions, count, models_.info(given.model).outputs,
                                          [&](uint32_t output) { return outputs[output]; });
  outcome.conditions.set(row, reading.conditions);
  outcome.counts.set(row, reading.count);
  if (!order.answers.empty()) {
    Outputs answers{given.action.id, own_id(answered.request), answered.payload};
    for (const uint32_t output : order.answers) answers.tensors.push_back(outputs[output]);
    client->second->connection().send(answers);
  }
  if (const auto place = given.places.find(row); place != given.places.end()) {
    stage_outputs_.hold(answered.request, place->second, outputs);
    given.places.erase(place);
  }
  return true;
}

}  // namespace foliot
