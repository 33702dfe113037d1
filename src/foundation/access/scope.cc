#include "foundation/access/scope.h"

#include "foundation/base/check.h"

namespace foliot {

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::kInfer: return "infer";
    case Scope::kAdmin: return "admin";
    case Scope::kMetrics: return "metrics";
    case Scope::kFeedback: return "feedback";
    case Scope::kObserve: return "observe";
    case Scope::kJobs: return "jobs";
  }
  FOLIOT_CHECK(false);
}

std::optional<Scope> scope_named(std::string_view name) {
  for (const Scope scope : kScopes) {
    if (name == to_string(scope)) return scope;
  }
  return std::nullopt;
}

}  // namespace foliot
