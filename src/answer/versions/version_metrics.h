// VersionMetrics: what a SplitWatch has seen of shadows and canaries, as Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_VERSIONS_VERSION_METRICS_H_
#define FOLIOT_ANSWER_VERSIONS_VERSION_METRICS_H_

#include <string>

#include "answer/versions/split_watch.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class VersionMetrics : public MetricsSource {
 public:
  // The watch outlives it, and forgets what is gone when this is asked.
  explicit VersionMetrics(SplitWatch& watch) : watch_(watch) {}
  std::string text() const override;

 private:
  SplitWatch& watch_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_VERSION_METRICS_H_
