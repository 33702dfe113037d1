// CostMetrics: what the time of devices costs, by model and tenant, as a Prometheus series. A device
// has a price per hour. Its time belongs to those whose rows it computes, each row its part of the
// EXEC, by the lanes that this took. The time in which it computes nothing belongs to the models that
// it keeps, each its part of the device's pages. That is charged to the rows that the model computes
// next, which it was kept for; to no tenant, if it is unloaded or its device is lost before. So
// nothing is charged twice; what is not charged is the time of lanes and pages that were not used.
//
// Tenants are named by their numbers (tenant_named() in foundation/core/request.h): front ends know the keys,
// and serve a series that has both.
//
// Threading: the Observer's calls belong to the controller's loop; text() may be called from any
// thread.
#ifndef FOLIOT_OBSERVE_METRICS_COST_METRICS_H_
#define FOLIOT_OBSERVE_METRICS_COST_METRICS_H_

#include <memory>
#include <string>

#include "foundation/core/observer.h"
#include "observe/metrics/device_prices.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class CostMetrics : public Observer, public MetricsSource {
 public:
  explicit CostMetrics(DevicePrices prices);
  ~CostMetrics() override;

  std::string text() const override;

  void on_model(const ModelInfo& model) override;
  void on_model_extended(const ModelInfo& model) override;
  // Its series leave GoneModels::kTime later.
  void on_model_removed(ModelId model, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override;
  void on_request(const Request& request, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;

 private:
  struct Accounts;
  std::unique_ptr<Accounts> accounts_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_COST_METRICS_H_
