#include "answer/inference/query.h"

#include <fmt/format.h>

namespace foliot {

Status check_no_requirements(const Query& query, std::string_view name) {
  if (!query.accuracy && !query.cost) return Status();
  return Status::invalid_argument(
      fmt::format("parameter '{}' is for tasks, and '{}' is none: leave it out, or call a task",
                  query.accuracy ? "accuracy" : "cost", name));
}

TimePoint deadline_of(const Query& query, const ModelInfo& model) { return applied_deadline(query, model).at; }

AppliedDeadline applied_deadline(const Query& query, const ModelInfo& model) {
  if (query.request_class != RequestClass::kDeadline) return {};
  if (!model.default_slo || query.deadline <= query.arrival + *model.default_slo) {
    return {.at = query.deadline, .origin = query.deadline_origin};
  }
  return {.at = query.arrival + *model.default_slo, .origin = DeadlineOrigin::kDefaultSlo};
}

}  // namespace foliot
