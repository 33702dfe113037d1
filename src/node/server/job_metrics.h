// JobMetrics: whether this front end keeps the jobs that several share, as a Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_NODE_SERVER_JOB_METRICS_H_
#define FOLIOT_NODE_SERVER_JOB_METRICS_H_

#include <string>

#include "node/server/kept_jobs.h"
#include "observe/metrics/metrics_source.h"

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

#endif  // FOLIOT_NODE_SERVER_JOB_METRICS_H_
