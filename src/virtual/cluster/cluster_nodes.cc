#include "virtual/cluster/cluster_nodes.h"

#include <fmt/format.h>

#include <limits>

#include "foundation/base/check.h"

namespace foliot {

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
};

SimulatedController::SimulatedController(ClusterWorld& world, const NodeClock& clock, const ControllerOptions& options,
                                         const Controller::PolicyFactory& make_policy, Duration clock_error,
                                         const MakeScaler& make_scaler)
    : SimulatedNode(world, "controller", clock),
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

void SimulatedController::end_process() {}
VirtualLinkLoop& SimulatedController::links() { return processes_.back()->links; }
ControllerService& SimulatedController::service() { return processes_.back()->service; }
size_t SimulatedController::workers() const { return world_.checker.workers_of(processes_.back()->links.process()); }

}  // namespace foliot
