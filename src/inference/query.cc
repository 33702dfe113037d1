#include "inference/query.h"

#include <algorithm>

namespace foliot {

TimePoint deadline_of(const Query& query, const ModelInfo& model) {
  if (query.request_class != RequestClass::kDeadline) return TimePoint::infinite_future();
  return model.default_slo ? std::min(query.deadline, query.arrival + *model.default_slo) : query.deadline;
}

}  // namespace foliot
