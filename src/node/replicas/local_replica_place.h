// LocalReplicaPlace: replicas as devices of the controller in this process. The numbers of
// lost ones are used again: a controller keeps them for ever.
#ifndef FOLIOT_NODE_REPLICAS_LOCAL_REPLICA_PLACE_H_
#define FOLIOT_NODE_REPLICAS_LOCAL_REPLICA_PLACE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/core/ids.h"
#include "foundation/core/payload.h"
#include "node/replicas/replica_place.h"
#include "node/threads/controller_inbox.h"

namespace foliot {

class LocalReplicaPlace : public ReplicaPlace {
 public:
  // Numbers below `first` belong to other devices, of one kind. References outlive this, and
  // the controller's loop runs while there are sessions.
  LocalReplicaPlace(ControllerInbox& inbox, PayloadStore& payloads, uint32_t first)
      : inbox_(inbox), payloads_(payloads), next_(first) {}

  ModelSink& planner() override { return inbox_; }
  std::unique_ptr<Session> make_session(const std::string& name, const std::string& kind,
                                        std::shared_ptr<const ModelInfo> model) override;

  // A device of this kind joins the controller, holding the model; it gets its actions by
  // `actions`. Errors: kResourceExhausted. REQUIRES: the controller has the model.
  Result<DeviceId> join(const std::string& kind, ModelId model, ActionSink& actions);
  // It is lost; returns when nothing is sent to it any more. REQUIRES: it reports nothing any
  // more.
  void lose(DeviceId device, const std::string& kind);

 private:
  class LocalSession;

  ControllerInbox& inbox_;
  PayloadStore& payloads_;
  Mutex mutex_;                                                           // also of the order in which devices join
  std::map<std::string, std::vector<DeviceId>> free_ GUARDED_BY(mutex_);  // lost devices, by kind
  uint32_t next_ GUARDED_BY(mutex_);
  size_t joined_ GUARDED_BY(mutex_) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPLICAS_LOCAL_REPLICA_PLACE_H_
