#include "virtual/cluster/cluster_nodes.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// How often it is looked at what an election has to call.
constexpr Duration kElectionStep = Duration::milliseconds(5);

}  // namespace

void SimulatedNode::start() {
  if (runs_) return;
  runs_ = true;
  awake_since_ = world_.loop.now();
  world_.network.set_up(host_, true);
  make_process();
}

void SimulatedNode::kill(bool machine_crashes) {
  if (!runs_) return;
  links().kill(machine_crashes);
  end_process();
  ended();
}

void SimulatedNode::freeze() {
  if (!runs_ || frozen_) return;
  frozen_ = true;
  links().freeze();
  pause_process(true);
}

void SimulatedNode::resume() {
  if (!runs_ || !frozen_) return;
  frozen_ = false;
  awake_since_ = world_.loop.now();
  pause_process(false);
  links().resume();
}

// ---- The controller ----

// A front end that has stood still sends what came meanwhile as a burst of equals. Which of
// them waits is the policy's choice where not all can be met, so their order is not checked.
struct SimulatedController::Process {
  Process(SimulatedController& node, VirtualLoop& loop)
      : checker({.returns_max = node.options_.returns_max,
                 .load_back_off = node.options_.load_back_off.first,
                 .overtaken_max = std::numeric_limits<uint32_t>::max(),
                 .clock_error = node.clock_error_}),
        service(
            node.options_, node.make_policy_, [&loop, clock = node.clock_] { return clock.local(loop.now()); },
            [](Severity, const std::string&) {}),
        links(node.world_.network, node.host_, node.clock_, {.role = Role::kController}, service) {}

  Checker checker;
  ControllerService service;
  VirtualLinkLoop links;
  std::unique_ptr<SimulatedScaler> scaler;
  std::optional<uint64_t> led;  // the epoch with which it leads, or led
};

SimulatedController::SimulatedController(ClusterWorld& world, const std::string& name, const NodeClock& clock,
                                         const ControllerOptions& options, const Controller::PolicyFactory& make_policy,
                                         Duration clock_error, const MakeScaler& make_scaler)
    : SimulatedNode(world, name, clock),
      options_(options),
      make_policy_(make_policy),
      clock_error_(clock_error),
      make_scaler_(make_scaler) {}
SimulatedController::~SimulatedController() = default;

void SimulatedController::make_process() {
  Process& process = *processes_.emplace_back(std::make_unique<Process>(*this, world_.loop));
  Controller& controller = process.service.controller();
  controller.add_observer(process.checker);
  controller.add_observer(world_.hash);
  controller.add_observer(world_.checker.add_controller(process.links.process()));
  if (store_ != nullptr) {
    if (!std::exchange(replaced_, false)) {
      election_ =
          std::make_shared<Election>(ElectionOptions{.address = name_, .instance = process.links.process() + 1});
    }
    process.service.stand_by();
    process.service.set_election_watch(
        [this, election = election_](uint64_t epoch) { election->on_epoch_seen(epoch, now()); },
        [this, election = election_](size_t workers) { election->on_workers(workers, now()); });
    step_election(process);
  }
  process.links.listen(kPort);
  if (!make_scaler_) return;
  process.scaler = make_scaler_();
  controller.add_observer(*process.scaler);
  scale_later(process);
}

void SimulatedController::scale_later(Process& process) {
  world_.loop.at(world_.loop.now() + SimulatedScaler::kInterval, [this, &process] {
    if (!runs() || !scales_ || &process != processes_.back().get()) return;
    process.links.post([this, &process] {
      if (auto targets = process.scaler->step(now()))
        process.service.scale(Autoscaler::kPipelines, *std::move(targets));
    });
    scale_later(process);
  });
}

// ---- Its election ----

bool SimulatedController::leads() {
  if (!runs()) return false;
  return store_ == nullptr || (processes_.back()->led && election_->epoch() == processes_.back()->led);
}

void SimulatedController::step_election(Process& process) {
  world_.loop.at(world_.loop.now() + kElectionStep, [this, &process] {
    if (!runs() || &process != processes_.back().get()) return;
    process.links.post([this, &process] {
      if (&process != processes_.back().get()) return;
      if (const auto call = election_->next(now())) call_store(process, *call);
      follow_election(process);
    });
    step_election(process);
  });
}

// The store does it at once; the answer comes later, or never.
void SimulatedController::call_store(Process& process, const Election::Call& call) {
  const bool lost = cut_off_ || store_->down;
  const Duration taken = lost ? store_->timeout : Duration::milliseconds(1 + static_cast<int64_t>(random_.below(5)));
  const Status gone = Status::unavailable("no answer");
  std::function<void()> answer;
  if (call.kind == Election::Kind::kRead) {
    const Result<StoredLeader> read = lost ? Result<StoredLeader>(gone) : store_->kept.read();
    answer = [this, election = election_, read] { election->on_read(read, now()); };
  } else {
    const Result<std::optional<std::string>> swapped =
        lost ? Result<std::optional<std::string>>(gone) : store_->kept.swap(call.version, call.record);
    answer = [this, election = election_, swapped] { election->on_swap(swapped, now()); };
  }
  answers_.push_back(std::move(answer));
  const size_t number = answers_.size() - 1;
  world_.loop.at(world_.loop.now() + taken,
                 [this, &process, number] { process.links.post([this, number] { answers_[number](); }); });
}

// One that was replaced begins anew, with what its election knows.
void SimulatedController::follow_election(Process& process) {
  const std::optional<uint64_t> epoch = election_->epoch();
  if (process.led && epoch != process.led) {
    world_.loop.at(world_.loop.now(), [this, &process] {
      if (!runs() || &process != processes_.back().get()) return;
      replaced_ = true;
      kill(false);
      start();
    });
    return;
  }
  if (!epoch || process.led) return;
  process.led = epoch;
  process.service.lead(*epoch);
  process.links.wake();
}

void SimulatedController::end_process() {}
VirtualLinkLoop& SimulatedController::links() { return processes_.back()->links; }
ControllerService& SimulatedController::service() { return processes_.back()->service; }
size_t SimulatedController::workers() const { return world_.checker.workers_of(processes_.back()->links.process()); }

}  // namespace foliot
