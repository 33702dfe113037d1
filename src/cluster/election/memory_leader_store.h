// MemoryLeaderStore: a LeaderStore for simulations and tests.
//
// Threading: one thread.
#ifndef FOLIOT_CLUSTER_ELECTION_MEMORY_LEADER_STORE_H_
#define FOLIOT_CLUSTER_ELECTION_MEMORY_LEADER_STORE_H_

#include <string>

#include "cluster/election/leader_store.h"

namespace foliot {

class MemoryLeaderStore : public LeaderStore {
 public:
  Result<StoredLeader> read() override { return stored_; }
  Result<std::optional<std::string>> swap(const std::string& version, const LeaderRecord& record) override {
    if (version != stored_.version) return std::optional<std::string>();
    stored_ = {record, std::to_string(++versions_)};
    return std::optional(stored_.version);
  }
  std::string place() const override { return "memory"; }
  // It loses what it kept.
  void clear() { stored_ = {}; }

 private:
  StoredLeader stored_;
  uint64_t versions_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_MEMORY_LEADER_STORE_H_
