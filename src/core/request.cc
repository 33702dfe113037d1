#include "core/request.h"

#include "base/check.h"

namespace foliot {

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
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
