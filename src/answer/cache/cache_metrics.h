// CacheMetrics: how full the cache of predictions is, as Prometheus series. Hits and misses of
// each model are with its statistics (answer/model_calls/metrics.h).
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_CACHE_CACHE_METRICS_H_
#define FOLIOT_ANSWER_CACHE_CACHE_METRICS_H_

#include <string>

#include "answer/cache/cached_inference.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class CacheMetrics : public MetricsSource {
 public:
  // The cache outlives it.
  explicit CacheMetrics(const CachedInference& cache) : cache_(cache) {}
  std::string text() const override;

 private:
  const CachedInference& cache_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_CACHE_CACHE_METRICS_H_
