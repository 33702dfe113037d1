#include "foundation/core/action.h"

namespace foliot {

std::string_view to_string(ActionType type) {
  switch (type) {
    case ActionType::kLoad: return "LOAD";
    case ActionType::kUnload: return "UNLOAD";
    case ActionType::kInfer: return "INFER";
  }
  FOLIOT_CHECK(false);
}

std::string_view to_string(OutcomeStatus status) {
  switch (status) {
    case OutcomeStatus::kDone: return "done";
    case OutcomeStatus::kTooLate: return "too late";
    case OutcomeStatus::kNotLoaded: return "not loaded";
    case OutcomeStatus::kNoPages: return "no pages";
    case OutcomeStatus::kNoIoMemory: return "no io memory";
    case OutcomeStatus::kQueueFull: return "queue full";
    case OutcomeStatus::kUnknownModel: return "unknown model";
    case OutcomeStatus::kBusy: return "busy";
    case OutcomeStatus::kFailed: return "failed";
    case OutcomeStatus::kLost: return "lost";
    case OutcomeStatus::kNoContext: return "no context";
    case OutcomeStatus::kModelError: return "model error";
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
