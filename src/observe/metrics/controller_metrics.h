// ControllerMetrics: the controller's state as Prometheus series: its devices, actions,
// predictions, refusals, queue and turns.
//
// A model's series are made when something first happens to it, so that thousands of
// idle models cost a scrape nothing.
//
// Threading: the Observer's calls and on_turn() belong to the controller's loop; text()
// may be called from any thread. Prometheus' histograms take a lock that only a scrape
// contends for, and for as long as it copies one of them.
#ifndef FOLIOT_OBSERVE_METRICS_CONTROLLER_METRICS_H_
#define FOLIOT_OBSERVE_METRICS_CONTROLLER_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "foundation/core/observer.h"
#include "foundation/core/request.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class ControllerMetrics : public Observer, public MetricsSource {
 public:
  ControllerMetrics();
  ~ControllerMetrics() override;

  // A turn of the loop is over: how long the policy took to decide, the requests that
  // wait now, and the actions without an outcome.
  void on_turn(Duration decision, const CountByClass& queued, uint64_t actions_outstanding);

  std::string text() const override;

  void on_model(const ModelInfo& model) override;
  // Its series leave GoneModels::kTime later.
  void on_model_removed(ModelId model, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;
  void on_timing(DeviceId device, Duration margin, Duration lookahead, TimePoint now) override;
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_CONTROLLER_METRICS_H_
