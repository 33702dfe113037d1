#include "virtual/world/virtual_cluster.h"

#include <algorithm>
#include <map>
#include <utility>

namespace foliot {

VirtualCluster::VirtualCluster(VirtualLoop& loop, const VirtualClusterOptions& options,
                               const Controller::PolicyFactory& make_policy, OnCompletion on_completion)
    : loop_(loop),
      options_(options),
      on_completion_(std::move(on_completion)),
      random_(options.seed),
      checker_(
          {.returns_max = options.controller.returns_max, .load_back_off = options.controller.load_back_off.first}),
      controller_(options.controller, make_policy, *this, *this) {
  controller_.add_observer(checker_);
  controller_.add_observer(hash_);
  controller_.add_observer(*this);
  VirtualWorker::Options worker_options{
      .worker = {.page_count = 0,
                 .io_cache_bytes = uint64_t{64} << 20,
                 .models_max = options.models_max,
                 .infers_in_flight_max = 2 * options.controller.infers_outstanding_max,
                 .lane_count = options.lanes.count,
                 .context_count = options.contexts},
      .noise = options.noise,
      .lanes = options.lanes,
      .resources = options.resources,
      .readings = options.readings,
      .heartbeats = options.controller.health.has_value(),
      .link_delay = [this] { return link_delay(); },
      .seed = [this] { return random_.next(); }};
  VirtualWorker::ControllerEnd& own_end = *this;
  std::vector<VirtualDevices> kinds = options.kinds;
  if (kinds.empty()) kinds = {{.count = options.devices, .pages = options.pages_per_device}};
  for (const VirtualDevices& kind : kinds) {
    worker_options.worker.page_count = kind.pages;
    for (uint32_t i = 0; i < kind.count; ++i) {
      const DeviceId id =
          controller_.add_device(kind.pages, loop_.now(), kind.kind, options.lanes.count, options.contexts);
      places_.push_back({kind.kind, kind.pages});
      workers_.push_back(std::make_unique<VirtualWorker>(loop_, checker_, id, worker_options, own_end));
      sessions_.push_back(VirtualWorker::kFirstSession);
    }
  }
}

VirtualCluster::~VirtualCluster() = default;

void VirtualCluster::add_model(std::shared_ptr<const ModelInfo> model) {
  give_workers(model);
  controller_.add_model(std::move(model), loop_.now());
  schedule_turn();
}

void VirtualCluster::give_workers(const std::shared_ptr<const ModelInfo>& model) {
  std::map<std::string, std::shared_ptr<const ModelInfo>> by_kind;
  for (const Runnable& runnable : model->runnables) {
    const bool whole = model->runnables.size() == 1;
    by_kind[runnable.kind] = whole ? model : std::make_shared<const ModelInfo>(only_for(runnable.kind, *model));
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (const auto own = by_kind.find(places_[i].kind); own != by_kind.end()) workers_[i]->add_model(own->second);
  }
}

void VirtualCluster::add_unready_model(const std::shared_ptr<const ModelInfo>& model) {
  give_workers(model);
  controller_.add_model(std::make_shared<const ModelInfo>(with_batch_sizes(*model, 1)), loop_.now());
  schedule_turn();
}

void VirtualCluster::extend_model(std::shared_ptr<const ModelInfo> model) {
  controller_.extend_model(std::move(model));
  schedule_turn();
}

void VirtualCluster::remove_model(ModelId model) {
  controller_.remove_model(model, loop_.now());
  schedule_turn();
}

Status VirtualCluster::set_targets(const Targets& targets) {
  schedule_turn();
  return controller_.set_targets(targets, loop_.now());
}

void VirtualCluster::submit(const Request& request) {
  controller_.on_request(request, loop_.now());
  schedule_turn();
}

void VirtualCluster::cancel(RequestId request) {
  controller_.on_cancel(request, Refusal::kCancelled, loop_.now());
  schedule_turn();
}

bool VirtualCluster::pages_agree() const {
  const auto& devices = controller_.cluster().devices;
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceModel& device) {
    return !device.up() || workers_[device.id().value()]->free_pages() == device.free_pages();
  });
}

void VirtualCluster::complete(const Completion& completion) {
  if (on_completion_) on_completion_(completion);
}

void VirtualCluster::send(const Action& action) {
  const uint32_t device = action.device.value();
  workers_[device]->send(action, sessions_[device]);
}

void VirtualCluster::schedule_turn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  loop_.at(loop_.now(), [this] { turn(); });
}

void VirtualCluster::turn() {
  turn_scheduled_ = false;
  const TimePoint wake = controller_.turn(loop_.now());
  std::erase_if(leaving_, [&](DeviceId device) {
    if (!controller_.idle(device)) return false;
    controller_.lose_device(device, DeviceTrouble::kLeft, loop_.now());
    return true;
  });
  const uint64_t this_turn = ++turns_;
  if (wake.is_infinite()) return;
  loop_.at(std::max(wake, loop_.now()), [this, this_turn] {
    if (this_turn == turns_) schedule_turn();
  });
}

Duration VirtualCluster::link_delay() { return options_.link + options_.link_jitter.scaled(random_.exponential()); }

// ---- What workers say ----

void VirtualCluster::on_registration(DeviceId device, uint64_t session, const std::vector<ModelId>& residents) {
  // A worker that comes anew has given up its former session.
  controller_.lose_device(device, DeviceTrouble::kLink, loop_.now());
  if (controller_.may_join(device) > loop_.now()) return workers_[device.value()]->close(session);
  sessions_[device.value()] = session;
  const Place& place = places_[device.value()];
  controller_.join_device(device, place.pages, residents, loop_.now(), place.kind, options_.lanes.count,
                          options_.contexts);
  schedule_turn();
}

void VirtualCluster::on_report(DeviceId device, uint64_t session, const Outcome& outcome) {
  if (session != sessions_[device.value()]) return;
  controller_.on_outcome(outcome, loop_.now());
  schedule_turn();
}

void VirtualCluster::on_heartbeat(DeviceId device, uint64_t session) {
  if (session == sessions_[device.value()]) controller_.on_message(device, loop_.now());
}

void VirtualCluster::on_leave(DeviceId device, uint64_t session) {
  if (session != sessions_[device.value()]) return;
  controller_.drain_device(device, loop_.now());
  leaving_.push_back(device);
  schedule_turn();
}

void VirtualCluster::on_close(DeviceId device, uint64_t session) {
  if (session != sessions_[device.value()]) return;
  controller_.lose_device(device, DeviceTrouble::kLink, loop_.now());
  schedule_turn();
}

void VirtualCluster::on_device(const DeviceChange& change, TimePoint /*now*/) {
  if (change.state != DeviceState::kLost) return;
  const uint32_t device = change.device.value();
  if (sessions_[device] != 0) workers_[device]->close(sessions_[device]);
  sessions_[device] = 0;
  std::erase(leaving_, change.device);
}

// ---- What goes wrong ----

void VirtualCluster::schedule(std::vector<Fault> faults) {
  FOLIOT_CHECK(faults_.empty());
  faults_ = std::move(faults);
  for (const Fault& fault : faults_) {
    loop_.at(loop_.now() + fault.at, [this, &fault] { begin(fault); });
    loop_.at(loop_.now() + fault.end(), [this, &fault] { end(fault); });
  }
}

void VirtualCluster::begin(const Fault& fault) {
  VirtualWorker& worker = *workers_[fault.device];
  switch (fault.kind) {
    case FaultKind::kKill: return worker.kill();
    case FaultKind::kFreeze: return worker.freeze();
    case FaultKind::kSlow: return worker.set_slowdown(fault.factor);
    case FaultKind::kDelay: return worker.set_extra_delay(fault.delay);
    case FaultKind::kFail: return worker.set_failing(fault.loads_fail, fault.execs_fail);
    case FaultKind::kPartition: return worker.set_link_up(false);
    case FaultKind::kDrain: return worker.leave();
    case FaultKind::kAway: controller_.drain_device(DeviceId(fault.device), loop_.now()); return schedule_turn();
  }
}

void VirtualCluster::end(const Fault& fault) {
  VirtualWorker& worker = *workers_[fault.device];
  switch (fault.kind) {
    case FaultKind::kKill: return worker.start();
    case FaultKind::kFreeze: return worker.resume();
    case FaultKind::kSlow: return worker.set_slowdown(1);
    case FaultKind::kDelay: return worker.set_extra_delay(Duration());
    case FaultKind::kFail: return worker.set_failing(false, false);
    case FaultKind::kPartition: return worker.set_link_up(true);
    case FaultKind::kDrain: return worker.start();
    case FaultKind::kAway: controller_.resume_device(DeviceId(fault.device), loop_.now()); return schedule_turn();
  }
}

}  // namespace foliot
