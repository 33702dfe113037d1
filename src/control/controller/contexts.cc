#include "control/controller/contexts.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

void Contexts::sent(const Action& infer) {
  FOLIOT_CHECK(infer.context < count());
  Context& own = contexts_[infer.context];
  if (infer.range.begins()) {
    FOLIOT_CHECK(may_begin(infer.context, infer.range));
  } else {
    FOLIOT_CHECK(unfinished(infer.context) != nullptr && own.last.range.last == infer.range.first);
  }
  ++own.outstanding;
  if (infer.range.whole()) return;
  own.held = true;
  own.last = infer;
}

bool Contexts::over(const Action& infer, bool done, TimePoint start, Duration exec) {
  Context& own = contexts_[infer.context];
  FOLIOT_CHECK(own.outstanding > 0);
  --own.outstanding;
  if (infer.range.begins()) own.started = start;
  own.took = infer.range.begins() ? exec : own.took + exec;
  own.lanes = infer.range.begins() ? infer.lanes.count : std::min(own.lanes, infer.lanes.count);
  if (infer.range.whole()) return false;
  own.held = done && !infer.range.ends();
  return own.held;
}

void Contexts::abandon(ContextIndex context) {
  FOLIOT_CHECK(unfinished(context) != nullptr);
  contexts_[context].held = false;
}

}  // namespace foliot
