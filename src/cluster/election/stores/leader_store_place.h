// open_leader_store(): the store that --election names.
//
//   etcd://HOST:PORT[,HOST:PORT...][/KEY], etcds:// with TLS    FOLIOT_ETCD_USER, FOLIOT_ETCD_PASSWORD, FOLIOT_ETCD_CA
//   kubernetes://NAMESPACE/NAME                                 FOLIOT_KUBERNETES_SERVER outside of a pod
//   redis://HOST[:PORT][/DATABASE], unix:PATH                   FOLIOT_REDIS_PASSWORD
//
// What is secret comes from the environment, since flags are seen by all processes.
#ifndef FOLIOT_CLUSTER_ELECTION_STORES_LEADER_STORE_PLACE_H_
#define FOLIOT_CLUSTER_ELECTION_STORES_LEADER_STORE_PLACE_H_

#include <memory>
#include <string>

#include "cluster/election/leader_store.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// Calls nothing yet. `timeout`: of a call; Redis has RedisConnection::kTimeout. Errors: kInvalidArgument naming the
// place and the forms that it may have.
Result<std::unique_ptr<LeaderStore>> open_leader_store(const std::string& place, Duration timeout);

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_STORES_LEADER_STORE_PLACE_H_
