// Gate: lets a call in or not, by the key that it shows. Without a key ring
// everybody is let in.
//
// Threading: any thread.
#ifndef FOLIOT_FRONTEND_GATE_H_
#define FOLIOT_FRONTEND_GATE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "access/key_ring.h"
#include "frontend/call_error.h"

namespace foliot {

// One line for the log, of a call that was turned away: who, from where, what and
// why, and never the key. Called from any thread; must not block.
using DenialLog = std::function<void(const std::string&)>;

class Gate {
 public:
  // `keys` null: open.
  Gate(std::shared_ptr<const KeyRing> keys, DenialLog log) : keys_(std::move(keys)), log_(std::move(log)) {}

  bool open() const { return keys_ == nullptr; }
  // `authorization` is the header of that name, "Bearer KEY". Returns why the call is
  // turned away, or nothing. `peer` and `what` are for the log.
  std::optional<CallError> turn_away(std::string_view authorization, Scope scope, std::string_view peer,
                                     std::string_view what) const;

 private:
  const std::shared_ptr<const KeyRing> keys_;
  const DenialLog log_;
};

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_GATE_H_
