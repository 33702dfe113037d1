#include "answer/inference/answer.h"

#include "foundation/base/check.h"

namespace foliot {

std::string_view to_string(Quality quality) {
  switch (quality) {
    case Quality::kComplete: return "complete";
    case Quality::kPartial: return "partial";
    case Quality::kDefault: return "default";
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
