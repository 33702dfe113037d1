// TaskMetrics: what tasks' calls were answered by, and what that cost, as Prometheus series: the
// time of devices that their EXECs took, each row its part of its batch, at the price of the kind.
// LOADs and the memory of residents are not counted: they serve later calls, too.
//
// Threading: the Observer's calls belong to the controller's loop; text() may be called from any
// thread.
#ifndef FOLIOT_OBSERVE_METRICS_TASK_METRICS_H_
#define FOLIOT_OBSERVE_METRICS_TASK_METRICS_H_

#include <memory>
#include <string>

#include "foundation/core/observer.h"
#include "observe/metrics/device_prices.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class TaskMetrics : public Observer, public MetricsSource {
 public:
  explicit TaskMetrics(DevicePrices prices);
  ~TaskMetrics() override;

  std::string text() const override;

  void on_model(const ModelInfo& model) override;
  void on_task(const TaskInfo& task) override;
  void on_task_removed(ServedTaskId task) override;
  void on_device(const DeviceChange& change, TimePoint now) override;
  void on_request(const Request& request, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_TASK_METRICS_H_
