// ReplicaKinds: the kinds of device that the replicas of this machine's container models are.
//
// A container model runs on devices of a kind of its own, "container:NAME", and on no other.
// While two versions of one model run beside each other, the second is "container:NAME.2".
// Kinds are used again: a controller keeps them for ever.
//
// Threading: any thread.
#ifndef FOLIOT_NODE_REPLICAS_REPLICA_KINDS_H_
#define FOLIOT_NODE_REPLICAS_REPLICA_KINDS_H_

#include <map>
#include <string>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"

namespace foliot {

class ReplicaKinds {
 public:
  // A kind that no other version uses. Errors: kResourceExhausted if there can be no more.
  Result<std::string> take(const std::string& model);
  void give_back(const std::string& kind);

 private:
  Mutex mutex_;
  std::map<std::string, bool> kinds_ GUARDED_BY(mutex_);  // whether it is taken
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPLICAS_REPLICA_KINDS_H_
