#include "inference/query.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {

Status check_no_requirements(const Query& query, std::string_view name) {
  if (!query.accuracy && !query.cost) return Status();
  return Status::invalid_argument(
      fmt::format("parameter '{}' is for tasks, and '{}' is none: leave it out, or call a task",
                  query.accuracy ? "accuracy" : "cost", name));
}

TimePoint deadline_of(const Query& query, const ModelInfo& model) {
  if (query.request_class != RequestClass::kDeadline) return TimePoint::infinite_future();
  return model.default_slo ? std::min(query.deadline, query.arrival + *model.default_slo) : query.deadline;
}

}  // namespace foliot
