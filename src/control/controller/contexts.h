// Contexts: what the controller knows of the contexts of one device, each of which holds the
// intermediates of one unfinished batch (Abacus, section 6.1).
//
// INFERs of whole plans come and go in a context that no batch holds. A batch that is run
// in ranges holds its context from its first INFER on, until the outcome of the last one, of
// one that failed or was refused, or until it is abandoned; at most one INFER of it is
// outstanding.
#ifndef FOLIOT_CONTROL_CONTROLLER_CONTEXTS_H_
#define FOLIOT_CONTROL_CONTROLLER_CONTEXTS_H_

#include <cstdint>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

class Contexts {
 public:
  explicit Contexts(uint32_t count = 1) : contexts_(count) {}

  uint32_t count() const { return static_cast<uint32_t>(contexts_.size()); }
  // Whether the first INFER of a batch, with this range, may be sent into the context. Where
  // it is not the last, nothing else may be outstanding there.
  bool may_begin(ContextIndex context, OperatorRange range) const {
    if (context >= count() || !range.begins() || range.last == 0 || contexts_[context].held) return false;
    return range.ends() || contexts_[context].outstanding == 0;
  }
  // The last INFER of the batch that holds the context and has none outstanding; nullptr if
  // there is none.
  const Action* unfinished(ContextIndex context) const {
    if (context >= count()) return nullptr;
    const Context& own = contexts_[context];
    return own.held && own.outstanding == 0 ? &own.last : nullptr;
  }

  // REQUIRES: it may begin, or goes on with the unfinished() batch.
  void sent(const Action& infer);
  // An INFER is over, whose EXEC began then and took so long. Returns whether its batch goes on.
  bool over(const Action& infer, bool done, TimePoint start, Duration exec);
  // These are of the batch that was last in the context: when its first EXEC began, and how long all of them took.
  TimePoint started(ContextIndex context) const { return contexts_[context].started; }
  Duration took(ContextIndex context) const { return contexts_[context].took; }
  // The fewest lanes that one of them took.
  uint32_t lanes(ContextIndex context) const { return contexts_[context].lanes; }
  // REQUIRES: an unfinished() batch.
  void abandon(ContextIndex context);

 private:
  struct Context {
    bool held = false;
    uint32_t outstanding = 0;  // INFERs
    TimePoint started;
    Duration took;
    uint32_t lanes = 0;
    Action last;  // held: of the batch
  };
  std::vector<Context> contexts_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_CONTEXTS_H_
