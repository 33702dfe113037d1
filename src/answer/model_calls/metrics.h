// Metrics: the results of requests as Prometheus series. The rest of the controller's
// state is in observe/metrics/controller_metrics.h.
//
// A model's series are made with its first request, so that thousands of idle models
// cost a scrape nothing. All of its counters begin then, at zero: a rate over one that
// began with its first event would not see that event. A model has 25 series here at most, without those of
// its prediction cache, and they leave kGoneModelTime after it (decision 0332).
//
// Threading: the Observer's calls come from the controller's loop; the rest from any
// other thread. Counting takes a lock that the loop never takes.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_METRICS_H_
#define FOLIOT_ANSWER_MODEL_CALLS_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/statistics.h"
#include "answer/inference/tenant.h"
#include "foundation/core/observer.h"

namespace foliot {

class Metrics : public Observer {
 public:
  // A model that is replaced or comes back soon goes on counting.
  static constexpr Duration kGoneModelTime = Duration::seconds(900);

  // `statistics` is also exported, under the names nv_inference_*.
  explicit Metrics(CallStatistics& statistics);
  ~Metrics() override;

  // A row's answer, as it leaves.
  void count(const ModelInfo& model, const Completion& completion);
  // Rows that the front end refused itself, of which the controller knows nothing, so long after they came. `time`:
  // what they had until their deadline, Duration::max() without one.
  void count_refused(const ModelInfo& model, Refusal refusal, uint32_t rows, Duration waited, Duration time);
  // A row that ended so for the controller, after the deadline at which its call was refused.
  void count_discarded(Refusal refusal);
  // A name in a request that was ignored; `name` is one of boundedly many.
  void count_unknown_name(std::string_view place, std::string_view name);

  // Prometheus' text format. Tenants beyond the first hundred, by name, are one.
  std::string text(const std::vector<TenantStatistics>& tenants = {}) const;

  // Drops what is known of models that are not served, and were not kGoneModelTime before, as far as this was called.
  void forget_gone(const std::function<bool(const std::string&)>& is_served, TimePoint now) const;

  void on_model(const ModelInfo& model) override;
  // Counts executions. A front end of a cluster gets no outcomes.
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_METRICS_H_
