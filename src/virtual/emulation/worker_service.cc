#include "virtual/emulation/worker_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "cluster/transport/frame_handlers.h"
#include "cluster/transport/peer_clock.h"

namespace foliot {

namespace {

// How often clocks are kept and unregistered workers looked for.
constexpr Duration kKeepInterval = Duration::milliseconds(25);
// Between attempts to find the controller again.
constexpr Duration kConnectIntervalMin = Duration::milliseconds(50);
constexpr Duration kConnectIntervalMax = Duration::milliseconds(500);

}  // namespace

// A worker, and its way to the controller while there is one. It knows models by
// their positions in the options, whatever the controller calls them.
struct WorkerService::Emulated : public OutcomeSink {
  Emulated(const WorkerServiceOptions& options, uint64_t number_of_it, EmulationClock& clock)
      : number(number_of_it),
        worker({.page_count = options.page_count, .noise = options.noise, .seed = options.seed + number_of_it},
               options.models, clock, *this) {}

  void report(const Outcome& outcome) override {
    --in_flight;
    if (connection == nullptr) return;
    Outcome sent = outcome;
    sent.model = names.at(outcome.model.value());
    sent.start = offset->to_host(outcome.start);
    sent.end = offset->to_host(outcome.end);
    sent.output_end = offset->to_host(outcome.output_end);
    if (outcome.ready > TimePoint()) sent.ready = offset->to_host(outcome.ready);
    connection->send(sent);
  }
  std::vector<uint32_t> residents() const {
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < models; ++i) {
      if (worker.worker().resident(ModelId(i))) found.push_back(i);
    }
    return found;
  }

  const uint64_t number;
  bool taken = false;  // by a session
  Connection* connection = nullptr;
  const ClockOffset* offset = nullptr;
  std::vector<ModelId> names;  // the controller's, by position
  uint64_t in_flight = 0;      // actions without an outcome, of whatever connection
  uint32_t models = 0;
  EmulatedWorker worker;
};

class WorkerService::ControllerSession : public Session {
 public:
  ControllerSession(WorkerService& service, Connection& connection, Emulated& emulated)
      : service_(service),
        connection_(connection),
        emulated_(emulated),
        host_clock_(connection, service.options_.pong_timeout) {
    emulated_.taken = true;
  }

  void start(TimePoint now) { host_clock_.start(now); }

  Status on_frame(const Frame& frame, TimePoint now) override {
    service_.clock_.advance(now);
    switch (frame.type) {
      case MessageType::kAction: return on_action(frame);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kWelcome: return on_welcome(frame);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint /*now*/) override {
    std::erase(service_.sessions_, this);
    emulated_.connection = nullptr;
    emulated_.taken = false;
    if (!reason.ok()) service_.on_gone(welcomed_, reason.with_context(connection_.peer()));
  }

  // Pings, and registers once times can be exchanged and what an earlier controller
  // asked for is over.
  void keep(TimePoint now) {
    host_clock_.keep(now);
    if (registered_ || !host_clock_.ready() || emulated_.in_flight > 0) return;
    registered_ = true;
    connection_.send(Registration{.worker = name(),
                                  .kind = service_.options_.kind,
                                  .data_address = {},
                                  .page_counts = {service_.options_.page_count},
                                  .lane_counts = {1},
                                  .context_counts = {1},
                                  .models = service_.options_.models,
                                  .residents = {emulated_.residents()}});
  }

 private:
  std::string name() const {
    const std::string& first = service_.options_.name;
    return emulated_.number == 0 ? first : fmt::format("{}-{}", first, emulated_.number);
  }

  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    FOLIOT_RETURN_IF_ERROR(host_clock_.on_pong(pong, now));
    keep(now);
    return Status();
  }

  Status on_welcome(const Frame& frame) {
    Welcome welcome;
    FOLIOT_RETURN_IF_ERROR(decode(frame, welcome));
    if (welcomed_ || !registered_ || welcome.devices.size() != 1 ||
        welcome.models.size() != service_.options_.models.size()) {
      return Status::invalid_argument("a WELCOME that does not fit the registration");
    }
    const auto unnamed = std::ranges::find(welcome.models, kUnnamed);
    if (unnamed != welcome.models.end()) {
      const auto position = static_cast<size_t>(unnamed - welcome.models.begin());
      return Status::invalid_argument(fmt::format("all workers must bring the same models: others did not bring '{}'",
                                                  service_.options_.models[position].name));
    }
    welcomed_ = true;
    device_ = welcome.devices.front();
    for (uint32_t i = 0; i < welcome.models.size(); ++i) positions_.emplace(welcome.models[i], ModelId(i));
    emulated_.names = welcome.models;
    emulated_.connection = &connection_;
    emulated_.offset = &host_clock_.offset();
    service_.on_welcomed();
    return Status();
  }

  Status on_action(const Frame& frame) {
    Action action;
    FOLIOT_RETURN_IF_ERROR(decode(frame, action));
    if (!welcomed_ || action.device != device_) return Status::invalid_argument("an ACTION for another device");
    const auto position = positions_.find(action.model);
    if (position == positions_.end()) return Status::invalid_argument("an ACTION of an unknown model");
    action.model = position->second;
    action.earliest = host_clock_.offset().to_own(action.earliest);
    action.latest = host_clock_.offset().to_own(action.latest);
    ++emulated_.in_flight;
    emulated_.worker.send(action);
    return Status();
  }

  WorkerService& service_;
  Connection& connection_;
  Emulated& emulated_;
  PeerClock host_clock_;
  bool registered_ = false;
  bool welcomed_ = false;
  DeviceId device_;
  std::unordered_map<ModelId, ModelId> positions_;  // by the controller's names
};

WorkerService::WorkerService(WorkerServiceOptions options, Watch watch)
    : options_(std::move(options)), watch_(std::move(watch)), connect_interval_(kConnectIntervalMin) {
  for (uint32_t i = 0; i < options_.models.size(); ++i) options_.models[i].id = ModelId(i);
}
WorkerService::~WorkerService() = default;

Result<std::unique_ptr<Session>> WorkerService::on_open(Connection& connection, Role peer, TimePoint now) {
  if (peer != Role::kController) {
    return Status::invalid_argument(fmt::format("it is a {}, not a controller", to_string(peer)));
  }
  if (connection.peer_standing().stands_by) return Status::unavailable("it stands by: name the controller that leads");
  auto idle = std::ranges::find_if(emulated_, [](const auto& worker) { return !worker->taken; });
  if (idle == emulated_.end()) {
    emulated_.push_back(std::make_unique<Emulated>(options_, emulated_.size(), clock_));
    emulated_.back()->models = static_cast<uint32_t>(options_.models.size());
    idle = std::prev(emulated_.end());
  }
  auto session = std::make_unique<ControllerSession>(*this, connection, **idle);
  sessions_.push_back(session.get());
  session->start(now);
  return std::unique_ptr<Session>(std::move(session));
}

void WorkerService::on_no_greeting(const std::string& peer, const Status& reason) {
  if (!reason.ok()) on_gone(false, reason.with_context(peer));
}

void WorkerService::on_welcomed() {
  connect_interval_ = kConnectIntervalMin;
  if (++ready_ > ready_max_) watch_.on_ready(ready_max_ = ready_);
}

// A worker that was registered once looks for the controller until it is found again.
// It may have been restarted; or it has given the worker up, and takes it back later.
void WorkerService::on_gone(bool welcomed, const Status& reason) {
  if (welcomed) --ready_;
  if (ready_max_ == 0 || !watch_.connect) return watch_.on_lost(reason);
  ++missing_;
}

void WorkerService::find_controller(TimePoint now) {
  if (missing_ == 0 || now < next_connect_) return;
  for (uint32_t left = std::exchange(missing_, 0); left > 0; --left) {
    if (watch_.connect().ok()) continue;
    missing_ = left;
    break;
  }
  next_connect_ = now + connect_interval_;
  connect_interval_ = std::min(connect_interval_ * 2, kConnectIntervalMax);
}

TimePoint WorkerService::on_turn_end(TimePoint now) {
  clock_.advance(now);
  find_controller(now);
  if (now >= next_keep_) {
    for (ControllerSession* session : sessions_) session->keep(now);
    next_keep_ = now + kKeepInterval;
  }
  return std::min(clock_.next(), next_keep_);
}

}  // namespace foliot
