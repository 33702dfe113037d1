// GrpcCredentials: TLS for a gRPC server whose certificate may be replaced while it
// serves: each handshake takes the latest.
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_GRPC_GRPC_CREDENTIALS_H_
#define FOLIOT_EDGE_GRPC_GRPC_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <mutex>
#include <string>

#include "foundation/access/tls.h"

namespace foliot {

class GrpcCredentials : public grpc::ServerCredentials {
 public:
  explicit GrpcCredentials(TlsIdentity identity);
  ~GrpcCredentials() override;

  void use(TlsIdentity identity);

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override;
  // gRPC asks it before each handshake.
  static grpc_ssl_certificate_config_reload_status fetch(void* credentials,
                                                         grpc_ssl_server_certificate_config** config);

  std::mutex mutex_;  // guards the identity, and whether gRPC has it
  TlsIdentity identity_;
  bool taken_ = false;
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_CREDENTIALS_H_
