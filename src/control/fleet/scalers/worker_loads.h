// WorkerLoads: what the worker autoscaler sees of a cluster (WorkerView): how much of the last
// two seconds the devices of each worker were busy, and whether EXECs took longer than profiled.
//
// A worker is Overloaded or Interfered where its busiest device is, by the bounds of MonitorOptions;
// a device that runs EXECs beside each other (lanes) is never called Interfered, since those have no
// profile of their own. Every worker may leave: a real one finishes what it was given.
//
// Threading: Observer's calls and on_time(), from the controller's loop.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_WORKER_LOADS_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_WORKER_LOADS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/cluster.h"
#include "control/fleet/scalers/worker_autoscaler.h"
#include "control/variants/instance_monitor.h"
#include "foundation/base/time.h"
#include "foundation/core/observer.h"

namespace foliot {

class WorkerLoads : public Observer {
 public:
  static constexpr Duration kInterval = InstanceMonitor::kWindow;

  // The worker that has a device, while one does.
  using WorkerOf = std::function<std::string(DeviceId)>;
  using Sink = std::function<void(const std::vector<WorkerView>&)>;
  // `cluster`, and what the functions refer to, outlive it. `sink` is given the workers that are
  // there, by name: every interval, and when one comes or goes.
  WorkerLoads(const Cluster& cluster, WorkerOf worker_of, Sink sink, TimePoint now, const MonitorOptions& options = {})
      : cluster_(cluster), worker_of_(std::move(worker_of)), sink_(std::move(sink)), options_(options), last_(now) {}

  // Gives the sink views if they are due; so does every event.
  void on_time(TimePoint now);

  void on_request(const Request& request, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;

 private:
  struct Device {
    std::string worker{};  // empty: no worker has it
    Duration busy{};       // since the last view, by all its lanes
    Duration took{};       // of EXECs whose duration is profiled
    Duration profiled{};
    double utilisation = 0;  // in the last view, as the next two
    bool overloaded = false;
    bool interfered = false;
  };
  Device& device(DeviceId id);
  void judge(Device& device, uint32_t lane_count, Duration interval) const;
  void give() const;

  const Cluster& cluster_;
  const WorkerOf worker_of_;
  const Sink sink_;
  const MonitorOptions options_;
  TimePoint last_;
  std::vector<Device> devices_;  // by DeviceId
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_WORKER_LOADS_H_
