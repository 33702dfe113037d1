#include "foundation/core/request.h"

#include <algorithm>
#include <span>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {

TenantId tenant_named(std::string_view name) {
  const uint64_t hash = hash64(std::as_bytes(std::span(name)));
  return TenantId(std::max<uint32_t>(1, static_cast<uint32_t>(hash)));
}

std::string_view to_string(RequestClass request_class) {
  switch (request_class) {
    case RequestClass::kDeadline: return "deadline";
    case RequestClass::kBestEffort: return "best_effort";
    case RequestClass::kOffline: return "offline";
  }
  FOLIOT_CHECK(false);
}

std::string_view to_string(UnmetRequirement unmet) {
  switch (unmet) {
    case UnmetRequirement::kNone: return "";
    case UnmetRequirement::kAccuracy: return "accuracy";
    case UnmetRequirement::kCost: return "cost";
  }
  return "?";
}

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone: return "none";
    case Refusal::kUnmeetable: return "unmeetable";
    case Refusal::kOverload: return "overload";
    case Refusal::kExpired: return "expired";
    case Refusal::kLate: return "late";
    case Refusal::kWorkerLost: return "worker_lost";
    case Refusal::kUnloaded: return "unloaded";
    case Refusal::kCancelled: return "cancelled";
    case Refusal::kDraining: return "draining";
    case Refusal::kDisconnected: return "disconnected";
    case Refusal::kOverShare: return "over_share";
    case Refusal::kModelError: return "model_error";
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
