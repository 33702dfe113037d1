// InferenceStack: what answers clients on one machine, from the protocols down to the
// requests: a front end over the layers of Inference, of which the lowest makes the
// requests. A layer between them is put in here.
//
// Threading: made, started and stopped by one thread; drain() and in_flight() by any;
// origin() as RequestOrigin says.
#ifndef FOLIOT_NODE_SERVER_INFERENCE_STACK_H_
#define FOLIOT_NODE_SERVER_INFERENCE_STACK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/cache/cache_metrics.h"
#include "answer/cache/cached_inference.h"
#include "answer/inference/served_names.h"
#include "answer/inference/statistics.h"
#include "answer/model_calls/inference_service.h"
#include "answer/model_calls/metrics.h"
#include "answer/selection/application.h"
#include "answer/selection/selected_inference.h"
#include "answer/selection/selection_metrics.h"
#include "answer/versions/served_versions.h"
#include "answer/versions/version_metrics.h"
#include "answer/versions/versioned_inference.h"
#include "edge/frontend/frontend.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/call_label.h"
#include "foundation/core/catalog.h"
#include "foundation/core/request_origin.h"
#include "foundation/platform/timer_thread.h"
#include "observe/metrics/metrics_source.h"
#include "observe/tracing/tracing.h"

namespace foliot {

class InferenceStack : private MetricsSource {
 public:
  // `now` is the clock of the controller's loop, callable from any thread. All references
  // outlive the stack, as do `personal` and `jobs`; null: there are none.
  InferenceStack(const FrontendOptions& options, Catalog& catalog, LabelledRequestSink& requests,
                 ModelRepository& repository, const std::function<TimePoint()>& now,
                 PersonalService* personal = nullptr, JobService* jobs = nullptr);

  // Before start(): the process, as foliot_info has it (info_metrics()).
  void describe(std::string info) { info_ = std::move(info); }
  // Likewise: calls are traced. It outlives the stack.
  void trace(Tracing& tracing);
  // Once: clients are answered from here on.
  Status start();
  Frontend& frontend() { return *frontend_; }
  SelectedInference& applications() { return selected_; }
  ServedVersions& versions() { return versions_; }
  // `log`: of a version that is taken out of its split, from any thread. Before start().
  void log_rollbacks(std::function<void(const std::string&)> log);
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
  std::string text() const override;

  ServedVersions versions_;
  ServedNames names_;
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  InferenceService service_;
  CachedInference cached_;
  CacheMetrics cache_metrics_{cached_};
  const std::function<TimePoint()> now_;
  VersionedInference versioned_{cached_, names_, now_};
  VersionMetrics version_metrics_{versioned_.watch()};
  SelectedInference selected_;
  SelectionMetrics selection_metrics_{selected_};
  std::unique_ptr<Frontend> frontend_;
  std::string info_;
  TimerThread timer_{2};  // ends calls at their deadlines; ends before the front end, whose mailboxes it uses
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_INFERENCE_STACK_H_
