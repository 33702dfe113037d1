// ReplicaDevices: the replicas of container models as devices of the controller: their
// numbers and kinds.
//
// A container model runs on devices of a kind of its own, "container:NAME", and on no other.
// While two versions of one model run beside each other, the second is "container:NAME.2".
// Numbers and kinds are used again: a controller keeps both for ever.
//
// Threading: any thread.
#ifndef FOLIOT_SERVING_REPLICA_DEVICES_H_
#define FOLIOT_SERVING_REPLICA_DEVICES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/ids.h"
#include "core/ports.h"
#include "serving/controller_inbox.h"

namespace foliot {

class ReplicaDevices {
 public:
  // Numbers below `first` belong to other devices, of one kind. The inbox outlives this.
  ReplicaDevices(ControllerInbox& inbox, uint32_t first) : inbox_(inbox), next_(first) {}

  // A kind that no other version uses. Errors: kResourceExhausted if there can be no more.
  Result<std::string> take_kind(const std::string& model);
  void give_back_kind(const std::string& kind);

  // A device of this kind joins the controller, holding the model; it gets its actions by
  // `actions`. Errors: kResourceExhausted. REQUIRES: the controller has the model.
  Result<DeviceId> join(const std::string& kind, ModelId model, ActionSink& actions);
  // It is lost; returns when nothing is sent to it any more. REQUIRES: it reports nothing any
  // more; the controller's loop runs.
  void lose(DeviceId device, const std::string& kind);

 private:
  struct Kind {
    bool taken = false;
    std::vector<DeviceId> free;  // devices of it that are lost
  };

  ControllerInbox& inbox_;
  std::mutex mutex_;  // guards what follows, and the order in which devices join
  std::map<std::string, Kind> kinds_;
  uint32_t next_;
  uint32_t joined_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_REPLICA_DEVICES_H_
