// JobMetrics: whether this front end keeps the jobs that several share, as a Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_SERVING_JOB_METRICS_H_
#define FOLIOT_SERVING_JOB_METRICS_H_

#include <string>

#include "metrics/metrics_source.h"
#include "serving/kept_jobs.h"

namespace foliot {

class JobMetrics final : public MetricsSource {
 public:
  // The jobs outlive it.
  explicit JobMetrics(const KeptJobs& jobs) : jobs_(jobs) {}
  std::string text() const override;

 private:
  const KeptJobs& jobs_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_JOB_METRICS_H_
