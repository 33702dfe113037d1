// GrpcCredentials: TLS for a gRPC server whose certificate may be replaced while it
// serves: each handshake takes the latest.
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_GRPC_GRPC_CREDENTIALS_H_
#define FOLIOT_EDGE_GRPC_GRPC_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "foundation/access/tls.h"
#include "foundation/base/mutex.h"

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

  grpc_server_credentials* credentials_ = nullptr;
  Mutex mutex_;
  TlsIdentity identity_ GUARDED_BY(mutex_);
  bool taken_ GUARDED_BY(mutex_) = false;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_CREDENTIALS_H_
