// RedisLeaderStore: the record of the leader as a key of Redis, swapped by a script. Clusters that share a server of
// Redis have a database each.
//
// Threading: as LeaderStore.
#ifndef FOLIOT_CLUSTER_ELECTION_STORES_REDIS_LEADER_STORE_H_
#define FOLIOT_CLUSTER_ELECTION_STORES_REDIS_LEADER_STORE_H_

#include <string>
#include <utility>

#include "cluster/election/leader_store.h"
#include "foundation/net/redis_connection.h"

namespace foliot {

class RedisLeaderStore : public LeaderStore {
 public:
  static constexpr const char* kKey = "foliot:leader";

  explicit RedisLeaderStore(RedisAddress address) : connection_(std::move(address)) {}

  Result<StoredLeader> read() override;
  Result<std::optional<std::string>> swap(const std::string& version, const LeaderRecord& record) override;
  std::string place() const override;

 private:
  RedisConnection connection_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_STORES_REDIS_LEADER_STORE_H_
