// kubernetes_call(): one call of the API server of Kubernetes, with the token of a service account.
//
// Threading: any; blocks for at most the timeout.
#ifndef FOLIOT_FOUNDATION_NET_KUBERNETES_CALL_H_
#define FOLIOT_FOUNDATION_NET_KUBERNETES_CALL_H_

#include <filesystem>
#include <string>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/net/http_call.h"

namespace foliot {

// In a pod, the defaults are those of its service account.
struct KubernetesServer {
  std::string url = "https://kubernetes.default.svc";
  // Sent with each call, and read again for each; empty: none.
  std::filesystem::path token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  // Authorities that may have signed the server's certificate; empty: those that the system trusts.
  std::filesystem::path ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  Duration timeout = Duration::seconds(5);
};

struct KubernetesCall {
  std::string method = "GET";
  std::string path;  // from "/apis" on
  std::string body{};
  std::string content_type{};  // of the body
};

// An answer of any code is one. Errors: kUnavailable naming the URL, or the token file that cannot be read.
Result<HttpAnswer> kubernetes_call(const KubernetesServer& server, const KubernetesCall& call);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_KUBERNETES_CALL_H_
