// ReplicaPlace: where the replicas of container models are devices: of the controller in this
// process (node/replicas/local_replica_place.h), or of one over a link
// (node/replicas/linked_replica_place.h).
//
// Threading: any thread; a session belongs to the thread of its replica, but for drain().
#ifndef FOLIOT_NODE_REPLICAS_REPLICA_PLACE_H_
#define FOLIOT_NODE_REPLICAS_REPLICA_PLACE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "engine/worker/worker.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"
#include "foundation/core/model_sink.h"
#include "foundation/core/payload.h"
#include "foundation/core/ports.h"
#include "node/replicas/replica_kinds.h"

namespace foliot {

class ReplicaPlace {
 public:
  // The time of one process as a device.
  class Session {
   public:
    virtual ~Session() = default;
    // What its worker is made with.
    virtual PayloadStore& payloads() = 0;
    virtual OutcomeSink& outcomes() = 0;
    // Its worker, which holds the model, gets actions from now on. Once. Errors:
    // kResourceExhausted.
    virtual Status join(Worker& worker) = 0;
    // It gets no more work, and is done with what it was given; at most for some time. Any
    // thread.
    virtual void drain() = 0;
    // The worker gets no more actions, and what it had is over. REQUIRES: join() succeeded; the
    // worker's executors have stopped.
    virtual void leave() = 0;
  };

  virtual ~ReplicaPlace() = default;
  ReplicaKinds& kinds() { return kinds_; }
  // The part that models are added to before their replicas join, and removed from before
  // these leave.
  virtual ModelSink& planner() = 0;
  // `name`: of the replica; `kind`: one of kinds(). REQUIRES: the planner has the model.
  virtual std::unique_ptr<Session> make_session(const std::string& name, const std::string& kind,
                                                std::shared_ptr<const ModelInfo> model) = 0;

 private:
  ReplicaKinds kinds_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPLICAS_REPLICA_PLACE_H_
