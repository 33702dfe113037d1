// Relays: ports whose target is made after the part that sends to it. They close
// the circle front end -> controller -> worker -> controller -> front end.
#ifndef FOLIOT_CLUSTER_RELAY_H_
#define FOLIOT_CLUSTER_RELAY_H_

#include "core/ports.h"

namespace foliot {

// REQUIRES: set_target() before the first send().
class ActionRelay : public ActionSink {
 public:
  void set_target(ActionSink& target) { target_ = &target; }
  void send(const Action& action) override { target_->send(action); }

 private:
  ActionSink* target_ = nullptr;
};

// REQUIRES: set_target() before the first complete().
class CompletionRelay : public CompletionSink {
 public:
  void set_target(CompletionSink& target) { target_ = &target; }
  void complete(const Completion& completion) override { target_->complete(completion); }

 private:
  CompletionSink* target_ = nullptr;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_RELAY_H_
