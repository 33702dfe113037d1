// SelectionMetrics: what applications answered and learned, as Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_SELECTION_SELECTION_METRICS_H_
#define FOLIOT_ANSWER_SELECTION_SELECTION_METRICS_H_

#include <string>

#include "answer/selection/selected_inference.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class SelectionMetrics : public MetricsSource {
 public:
  // The inference outlives it.
  explicit SelectionMetrics(const SelectedInference& inference) : inference_(inference) {}
  std::string text() const override;

 private:
  const SelectedInference& inference_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_SELECTION_METRICS_H_
