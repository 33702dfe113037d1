#include "app/worker_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/guest_clock.h"

namespace foliot {

namespace {

// How often it is looked at which clocks need a ping.
constexpr Duration kKeepInterval = Duration::milliseconds(100);

}  // namespace

// A worker, and its way to the controller for as long as there is one.
struct WorkerService::Emulated : public OutcomeSink {
  void report(const Outcome& outcome) override {
    if (connection == nullptr) return;
    Outcome told = outcome;
    told.start = offset->to_host(outcome.start);
    told.end = offset->to_host(outcome.end);
    told.output_end = offset->to_host(outcome.output_end);
    connection->send(told);
  }

  Connection* connection = nullptr;
  const ClockOffset* offset = nullptr;
  std::unique_ptr<EmulatedWorker> worker;
};

class WorkerService::ControllerConversation : public Conversation {
 public:
  ControllerConversation(WorkerService& service, Connection& connection, uint64_t number)
      : service_(service), connection_(connection), number_(number), host_clock_(connection) {}

  void start(TimePoint now) { host_clock_.start(now); }

  Status on_frame(const Frame& frame, TimePoint now) override {
    service_.clock_.advance(now);
    switch (frame.type) {
      case MessageType::kAction: return on_action(frame);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kWelcome: return on_welcome(frame);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return Status::invalid_argument(fmt::format("a {} has no place here", to_string(frame.type)));
    }
  }
  void on_close(const Status& reason, TimePoint /*now*/) override {
    std::erase(service_.conversations_, this);
    if (emulated_) {
      emulated_->connection = nullptr;
      service_.retired_.push_back(std::move(emulated_));
    }
    if (!reason.ok()) service_.watch_.on_lost(reason.with_context(connection_.peer()));
  }

  void keep(TimePoint now) { host_clock_.keep(now); }

 private:
  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    FOLIOT_RETURN_IF_ERROR(host_clock_.on_pong(pong, now));
    if (registered_ || !host_clock_.ready()) return Status();
    registered_ = true;
    connection_.send(Registration{.worker = fmt::format("{}-{}", service_.options_.name, number_),
                                  .data_address = {},
                                  .page_counts = {service_.options_.page_count},
                                  .models = service_.options_.models,
                                  .residents = {{}}});
    return Status();
  }

  Status on_welcome(const Frame& frame) {
    Welcome welcome;
    FOLIOT_RETURN_IF_ERROR(decode(frame, welcome));
    std::vector<ModelInfo> models = service_.options_.models;
    if (emulated_ || !registered_ || welcome.devices.size() != 1 || welcome.models.size() != models.size()) {
      return Status::invalid_argument("a WELCOME that does not fit the registration");
    }
    device_ = welcome.devices.front();
    for (size_t i = 0; i < models.size(); ++i) models[i].id = welcome.models[i];
    emulated_ = std::make_unique<Emulated>();
    emulated_->connection = &connection_;
    emulated_->offset = &host_clock_.offset();
    emulated_->worker =
        std::make_unique<EmulatedWorker>(EmulatedWorkerOptions{.page_count = service_.options_.page_count,
                                                               .noise = service_.options_.noise,
                                                               .seed = service_.options_.seed + number_},
                                         models, service_.clock_, *emulated_);
    service_.watch_.on_ready(++service_.ready_);
    return Status();
  }

  Status on_action(const Frame& frame) {
    Action action;
    FOLIOT_RETURN_IF_ERROR(decode(frame, action));
    if (!emulated_ || action.device != device_) return Status::invalid_argument("an ACTION for another device");
    action.earliest = host_clock_.offset().to_own(action.earliest);
    action.latest = host_clock_.offset().to_own(action.latest);
    emulated_->worker->send(action);
    return Status();
  }

  Status on_goodbye(const Frame& frame) {
    Goodbye goodbye;
    FOLIOT_RETURN_IF_ERROR(decode(frame, goodbye));
    return Status::unavailable(fmt::format("the controller says: {}", goodbye.reason));
  }

  WorkerService& service_;
  Connection& connection_;
  const uint64_t number_;
  GuestClock host_clock_;
  bool registered_ = false;
  DeviceId device_;
  std::unique_ptr<Emulated> emulated_;  // once it has been welcomed
};

WorkerService::WorkerService(WorkerServiceOptions options, Watch watch)
    : options_(std::move(options)), watch_(std::move(watch)) {}
WorkerService::~WorkerService() = default;

Result<std::unique_ptr<Conversation>> WorkerService::on_open(Connection& connection, Role peer, TimePoint now) {
  if (peer != Role::kController) {
    return Status::invalid_argument(fmt::format("it is a {}, and no controller", to_string(peer)));
  }
  auto conversation = std::make_unique<ControllerConversation>(*this, connection, opened_++);
  conversations_.push_back(conversation.get());
  conversation->start(now);
  return std::unique_ptr<Conversation>(std::move(conversation));
}

void WorkerService::on_no_greeting(const std::string& peer, const Status& reason) {
  if (!reason.ok()) watch_.on_lost(reason.with_context(peer));
}

TimePoint WorkerService::on_turn_end(TimePoint now) {
  clock_.advance(now);
  if (now >= next_keep_) {
    for (ControllerConversation* conversation : conversations_) conversation->keep(now);
    next_keep_ = now + kKeepInterval;
  }
  return std::min(clock_.next(), next_keep_);
}

}  // namespace foliot
