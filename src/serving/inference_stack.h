// InferenceStack: what answers clients on one machine, from the protocols down to the
// requests: a front end over the layers of Inference, of which the lowest makes the
// requests. A layer between them is put in here.
//
// Threading: made, started and stopped by one thread; drain() and in_flight() by any;
// origin() as RequestOrigin says.
#ifndef FOLIOT_SERVING_INFERENCE_STACK_H_
#define FOLIOT_SERVING_INFERENCE_STACK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "cache/cache_metrics.h"
#include "cache/cached_inference.h"
#include "calls/inference_service.h"
#include "calls/metrics.h"
#include "core/call_label.h"
#include "core/catalog.h"
#include "core/request_origin.h"
#include "frontend/frontend.h"
#include "inference/served_names.h"
#include "inference/statistics.h"
#include "metrics/metrics_source.h"
#include "platform/timer_thread.h"
#include "selection/application.h"
#include "selection/selected_inference.h"
#include "selection/selection_metrics.h"

namespace foliot {

class InferenceStack : private MetricsSource {
 public:
  // `now` is the clock of the controller's loop, callable from any thread. All references
  // outlive the stack, as do `personal` and `jobs`; null: there are none.
  InferenceStack(const FrontendOptions& options, const Catalog& catalog, LabelledRequestSink& requests,
                 ModelRepository& repository, const std::function<TimePoint()>& now,
                 PersonalService* personal = nullptr, JobService* jobs = nullptr);

  // Once: clients are answered from here on.
  Status start();
  Frontend& frontend() { return *frontend_; }
  SelectedInference& applications() { return selected_; }
  // What answers all calls, for parts of the server that make calls themselves.
  Inference& inference() { return selected_; }
  RequestOrigin& origin() { return service_; }
  // From now on new inferences are refused (kDraining, 503) and readiness is false; what is
  // in flight is answered.
  void drain() { names_.drain(); }
  // Rows in flight.
  uint64_t in_flight() const { return service_.rows_in_flight(); }
  bool wait_until_answered(Duration timeout) { return service_.wait_until_answered(timeout); }

 private:
  std::string text() const override { return metrics_.text(frontend_->tenants()); }

  ServedNames names_;
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  InferenceService service_;
  CachedInference cached_;
  CacheMetrics cache_metrics_{cached_};
  SelectedInference selected_;
  SelectionMetrics selection_metrics_{selected_};
  std::unique_ptr<Frontend> frontend_;
  TimerThread timer_;  // ends calls of applications; ends before the front end, whose mailboxes it uses
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_INFERENCE_STACK_H_
