#include "sim/virtual_cluster.h"

#include <algorithm>
#include <deque>

namespace foliot {

// One worker, its simulated device and the two directions of its link.
struct VirtualCluster::Node : public OutcomeSink {
  Node(VirtualCluster& owner, DeviceId device_id)
      : cluster(owner),
        id(device_id),
        device(owner.options_.noise, owner.random_.next()),
        load(owner.loop_, device, owner.checker_, ExecutorKind::kLoad),
        input(owner.loop_, device, owner.checker_, ExecutorKind::kInput),
        exec(owner.loop_, device, owner.checker_, ExecutorKind::kExec),
        output(owner.loop_, device, owner.checker_, ExecutorKind::kOutput),
        worker({.page_count = owner.options_.pages_per_device,
                .io_cache_bytes = uint64_t{64} << 20,
                .models_max = owner.options_.models_max,
                .infers_in_flight_max = 2 * owner.options_.controller.infers_outstanding_max},
               device, *this, {load, input, exec, output}) {
    const auto executors = worker.executors();
    load.set_executor(*executors[0]);
    input.set_executor(*executors[1]);
    exec.set_executor(*executors[2]);
    output.set_executor(*executors[3]);
  }

  void deliver(const Action& action) {
    to_worker = std::max(to_worker, cluster.loop_.now() + cluster.link_delay());
    actions.push_back(action);
    cluster.loop_.at(to_worker, [this] {
      worker.send(actions.front());
      actions.pop_front();
    });
  }

  void report(const Outcome& outcome) override {
    to_controller = std::max(to_controller, cluster.loop_.now() + cluster.link_delay());
    outcomes.push_back(outcome);
    cluster.loop_.at(to_controller, [this] {
      cluster.controller_.on_outcome(outcomes.front(), cluster.loop_.now());
      outcomes.pop_front();
      cluster.schedule_turn();
    });
  }

  VirtualCluster& cluster;
  DeviceId id;
  SimulatedDevice device;
  ExecutorDriver load;
  ExecutorDriver input;
  ExecutorDriver exec;
  ExecutorDriver output;
  Worker worker;
  // What is on the link's way in each direction, in order, and when the last of it
  // arrives.
  std::deque<Action> actions;
  std::deque<Outcome> outcomes;
  TimePoint to_worker;
  TimePoint to_controller;
};

VirtualCluster::VirtualCluster(VirtualLoop& loop, const VirtualClusterOptions& options,
                               const Controller::SchedulerFactory& make_scheduler, OnCompletion on_completion)
    : loop_(loop),
      options_(options),
      on_completion_(std::move(on_completion)),
      random_(options.seed),
      controller_(options.controller, make_scheduler, *this, *this) {
  controller_.add_observer(checker_);
  controller_.add_observer(hash_);
  for (uint32_t i = 0; i < options.devices; ++i) {
    const DeviceId id = controller_.add_device(options.pages_per_device, loop_.now());
    nodes_.push_back(std::make_unique<Node>(*this, id));
  }
}

VirtualCluster::~VirtualCluster() = default;

void VirtualCluster::add_model(std::shared_ptr<const ModelInfo> model) {
  WorkerModel worker_model{.id = model->id, .pages = model->pages, .batch_sizes = model->batch_sizes};
  for (const Bucket& bucket : model->buckets) {
    worker_model.io_bytes.insert(worker_model.io_bytes.end(), bucket.seed_exec.size(), IoBytes{4096, 4096});
  }
  for (auto& node : nodes_) {
    node->device.add_model(model);
    node->worker.add_model(worker_model);
  }
  controller_.add_model(std::move(model), loop_.now());
  schedule_turn();
}

void VirtualCluster::remove_model(ModelId model) {
  controller_.remove_model(model, loop_.now());
  schedule_turn();
}

void VirtualCluster::submit(const Request& request) {
  controller_.on_request(request, loop_.now());
  schedule_turn();
}

void VirtualCluster::cancel(RequestId request) {
  controller_.on_cancel(request, loop_.now());
  schedule_turn();
}

bool VirtualCluster::pages_agree() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return node->worker.load().page_cache().free_pages() == controller_.cluster().device(node->id).free_pages();
  });
}

void VirtualCluster::complete(const Completion& completion) {
  if (on_completion_) on_completion_(completion);
}

void VirtualCluster::send(const Action& action) { nodes_[action.device.value()]->deliver(action); }

void VirtualCluster::schedule_turn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  loop_.at(loop_.now(), [this] { turn(); });
}

void VirtualCluster::turn() {
  turn_scheduled_ = false;
  const TimePoint wake = controller_.turn(loop_.now());
  const uint64_t this_turn = ++turns_;
  if (wake.is_infinite()) return;
  loop_.at(std::max(wake, loop_.now()), [this, this_turn] {
    if (this_turn == turns_) schedule_turn();
  });
}

Duration VirtualCluster::link_delay() { return options_.link + options_.link_jitter.scaled(random_.exponential()); }

}  // namespace foliot
