#include "virtual/world/virtual_worker.h"

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr Duration kHeartbeat = Duration::milliseconds(50);
// How often a worker tries to get a session.
constexpr Duration kConnectInterval = Duration::milliseconds(100);
// How often one that has lost its session looks whether it has ended what it had.
constexpr Duration kQuiesceInterval = Duration::milliseconds(10);

}  // namespace

struct VirtualWorker::Process {
  Process(VirtualLoop& loop, Checker& checker, const Options& options, OutcomeSink& outcomes)
      : device(options.noise, options.seed(), options.lanes, options.resources),
        drivers(loop, device, checker, options.lanes.count),
        worker(options.worker, device, outcomes, drivers.wakers()) {
    device.set_readings(options.readings);
    drivers.drive(worker);
  }

  void add_model(const std::shared_ptr<const ModelInfo>& model) { worker.add_model(device.add({model}).value()); }

  SimulatedDevice device;
  WorkerDrivers drivers;
  Worker worker;
};

VirtualWorker::VirtualWorker(VirtualLoop& loop, Checker& checker, DeviceId device, Options options,
                             ControllerEnd& controller)
    : loop_(loop),
      checker_(checker),
      device_(device),
      options_(std::move(options)),
      controller_(controller),
      to_worker_(
          loop, [this] { return options_.link_delay() + extra_delay_; },
          [this](const ToWorker& message) { receive(message); }),
      to_controller_(
          loop, [this] { return options_.link_delay() + extra_delay_; },
          [this](const ToController& message) { deliver(message); }),
      process_(make_process()) {
  if (options_.heartbeats) beat();
}

VirtualWorker::~VirtualWorker() = default;

std::unique_ptr<VirtualWorker::Process> VirtualWorker::make_process() {
  OutcomeSink& outcomes = *this;
  return std::make_unique<Process>(loop_, checker_, options_, outcomes);
}

void VirtualWorker::add_model(std::shared_ptr<const ModelInfo> model) {
  if (process_) process_->add_model(model);
  models_.push_back(std::move(model));
}

uint32_t VirtualWorker::free_pages() const { return process_->worker.load().page_cache().free_pages(); }

// ---- The link ----

void VirtualWorker::report(const Outcome& outcome) {
  --in_flight_;
  if (session_ != 0) to_controller_.send({Kind::kOutcome, session_, outcome});
}

void VirtualWorker::receive(const ToWorker& message) {
  if (process_ == nullptr || message.session != session_) return;
  if (!message.close) {
    ++in_flight_;
    return process_->worker.send(message.action);
  }
  session_ = 0;
  if (leaving_) return kill();
  connect_after(kConnectInterval);
}

void VirtualWorker::deliver(const ToController& message) {
  switch (message.kind) {
    case Kind::kOutcome: return controller_.on_report(device_, message.session, message.outcome);
    case Kind::kHeartbeat: return controller_.on_heartbeat(device_, message.session);
    case Kind::kLeave: return controller_.on_leave(device_, message.session);
    case Kind::kClose: return controller_.on_close(device_, message.session);
    case Kind::kRegistration: break;
  }
  // It has nothing to do until it is answered, so this is what it held when it wrote.
  std::vector<ModelId> residents;
  for (const auto& model : models_) {
    if (process_ != nullptr && process_->worker.resident(model->id)) residents.push_back(model->id);
  }
  controller_.on_registration(device_, message.session, residents);
}

void VirtualWorker::connect_after(Duration wait) {
  loop_.at(loop_.now() + wait, [this] { connect(); });
}

void VirtualWorker::connect() {
  if (process_ == nullptr || session_ != 0) return;
  if (frozen_ || in_flight_ > 0) return connect_after(kQuiesceInterval);
  session_ = ++last_session_;
  say(Kind::kRegistration);
}

void VirtualWorker::beat() {
  if (process_ != nullptr && !frozen_ && session_ != 0) say(Kind::kHeartbeat);
  loop_.at(loop_.now() + kHeartbeat, [this] { beat(); });
}

void VirtualWorker::block_lines() {
  to_controller_.set_blocked(!link_up_);
  to_worker_.set_blocked(!link_up_ || frozen_);
}

// ---- Trouble ----

void VirtualWorker::kill() {
  if (process_ == nullptr) return;
  process_->drivers.pause();
  dead_.push_back(std::move(process_));
  in_flight_ = 0;
  leaving_ = false;
  if (session_ != 0) say(Kind::kClose);
  session_ = 0;
}

void VirtualWorker::start() {
  if (process_ != nullptr) {
    FOLIOT_CHECK(leaving_);
    loop_.at(loop_.now() + kQuiesceInterval, [this] { start(); });
    return;
  }
  process_ = make_process();
  for (const auto& model : models_) process_->add_model(model);
  connect();
}

void VirtualWorker::freeze() {
  frozen_ = true;
  process_->drivers.pause();
  block_lines();
}

void VirtualWorker::resume() {
  frozen_ = false;
  process_->drivers.resume();
  block_lines();
}

void VirtualWorker::set_slowdown(double factor) { process_->device.set_slowdown(factor); }

void VirtualWorker::set_failing(bool loads, bool execs) { process_->device.set_failing(loads, execs); }

void VirtualWorker::damage(ModelId model) { process_->device.damage(model); }

void VirtualWorker::set_link_up(bool up) {
  link_up_ = up;
  block_lines();
}

void VirtualWorker::leave() {
  leaving_ = true;
  if (session_ != 0) return say(Kind::kLeave);
  kill();
}

}  // namespace foliot
