// KubernetesLeaderStore: the record of the leader as an annotation of a Lease of Kubernetes, swapped by its
// resourceVersion. The Lease's holder is the leader's address, for people; its times are not used.
//
// The service account needs the verbs `get` and `update` on the Lease, and `create` where there is none yet.
//
// Threading: as LeaderStore.
#ifndef FOLIOT_CLUSTER_ELECTION_STORES_KUBERNETES_LEADER_STORE_H_
#define FOLIOT_CLUSTER_ELECTION_STORES_KUBERNETES_LEADER_STORE_H_

#include <string>
#include <utility>

#include "cluster/election/leader_store.h"
#include "foundation/net/kubernetes_call.h"

namespace foliot {

struct KubernetesLeaseName {
  std::string name_space;
  std::string name;
};

class KubernetesLeaderStore : public LeaderStore {
 public:
  static constexpr const char* kAnnotation = "foliot-leader";

  KubernetesLeaderStore(KubernetesServer server, KubernetesLeaseName lease)
      : server_(std::move(server)), lease_(std::move(lease)) {}

  Result<StoredLeader> read() override;
  Result<std::optional<std::string>> swap(const std::string& version, const LeaderRecord& record) override;
  std::string place() const override;

 private:
  std::string leases() const;  // their path
  Status refused(const HttpAnswer& answer) const;

  const KubernetesServer server_;
  const KubernetesLeaseName lease_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_STORES_KUBERNETES_LEADER_STORE_H_
