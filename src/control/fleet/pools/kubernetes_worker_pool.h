// KubernetesWorkerPool: a pool of pods: each kind is a StatefulSet, and its size the number of
// replicas, by the scale subresource. Pod NAME-N is the worker of that name: workers are
// started with `--name` of the pod's name. Kubernetes replaces pods that end.
//
// In a pod, the defaults are those of its service account, which needs the verbs `get` and
// `patch` on `statefulsets/scale`.
#ifndef FOLIOT_CONTROL_FLEET_POOLS_KUBERNETES_WORKER_POOL_H_
#define FOLIOT_CONTROL_FLEET_POOLS_KUBERNETES_WORKER_POOL_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "control/fleet/scalers/worker_pool.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct KubernetesWorkerPoolOptions {
  std::string server = "https://kubernetes.default.svc";
  // Sent with each call, and read again for each; empty: none.
  std::filesystem::path token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  // Authorities that may have signed the server's certificate; empty: those that the system trusts.
  std::filesystem::path ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  struct StatefulSet {
    std::string name_space = "default";
    std::string name;
  };
  std::map<std::string, StatefulSet, std::less<>> stateful_sets;  // by kind
  Duration timeout = Duration::seconds(5);                        // of a call
};

// Threading: one thread, which calls wait for.
class KubernetesWorkerPool : public WorkerPool {
 public:
  explicit KubernetesWorkerPool(KubernetesWorkerPoolOptions options) : options_(std::move(options)) {}

  Result<uint32_t> size(std::string_view kind) override;
  Status set_size(std::string_view kind, uint32_t workers) override;
  std::optional<std::string> next_to_leave(std::string_view kind) override;

 private:
  // Of the scale that the server answers, `spec.replicas`. `patch` empty: only asks.
  Result<uint32_t> scale(std::string_view kind, const std::string& patch) const;

  const KubernetesWorkerPoolOptions options_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_POOLS_KUBERNETES_WORKER_POOL_H_
