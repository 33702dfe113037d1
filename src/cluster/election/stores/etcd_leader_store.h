// EtcdLeaderStore: the record of the leader as a key of etcd 3.4 or later, by its JSON gateway; swapped by a
// transaction on the key's mod_revision.
//
// Each call goes to one member. After one that failed the next goes to the next member.
//
// Threading: as LeaderStore.
#ifndef FOLIOT_CLUSTER_ELECTION_STORES_ETCD_LEADER_STORE_H_
#define FOLIOT_CLUSTER_ELECTION_STORES_ETCD_LEADER_STORE_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cluster/election/leader_store.h"
#include "foundation/base/time.h"

namespace foliot {

struct EtcdOptions {
  std::vector<std::string> members;  // "http://HOST:PORT" or https
  std::string key = "foliot/leader";
  std::string user{};  // empty: none
  std::string password{};
  std::string ca_file{};                           // PEM, of https; empty: the machine's
  Duration timeout = Duration::milliseconds(500);  // of a call
};

class EtcdLeaderStore : public LeaderStore {
 public:
  explicit EtcdLeaderStore(EtcdOptions options) : options_(std::move(options)) {}

  Result<StoredLeader> read() override;
  Result<std::optional<std::string>> swap(const std::string& version, const LeaderRecord& record) override;
  std::string place() const override;

 private:
  // What `path` of /v3 answers. Errors: kUnavailable naming member, code and message.
  Result<nlohmann::json> call(const std::string& path, const nlohmann::json& body);
  Result<nlohmann::json> post(const std::string& path, const nlohmann::json& body);
  Status log_in();

  const EtcdOptions options_;
  size_t member_ = 0;
  std::string token_;  // of the user; empty: it is not logged in
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_STORES_ETCD_LEADER_STORE_H_
