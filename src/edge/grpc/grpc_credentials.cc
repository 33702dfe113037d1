#include "edge/grpc/grpc_credentials.h"

#include <grpc/grpc.h>

#include <utility>

#include "foundation/base/check.h"

namespace foliot {

GrpcCredentials::GrpcCredentials(TlsIdentity identity) : identity_(std::move(identity)) {
  const auto asked = identity_.peer_authority.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                      : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  credentials_ = grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(asked, fetch, this));
  FOLIOT_CHECK(credentials_ != nullptr);
}

GrpcCredentials::~GrpcCredentials() { grpc_server_credentials_release(credentials_); }

void GrpcCredentials::use(TlsIdentity identity) {
  MutexLock lock(mutex_);
  identity_ = std::move(identity);
  taken_ = false;
}

int GrpcCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return grpc_server_add_http2_port(server, address.c_str(), credentials_);
}

void GrpcCredentials::SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) {
  FOLIOT_CHECK(false);  // keys are the gate's (edge/requests/gate.h)
}

grpc_ssl_certificate_config_reload_status GrpcCredentials::fetch(void* credentials,
                                                                 grpc_ssl_server_certificate_config** config) {
  auto& self = *static_cast<GrpcCredentials*>(credentials);
  MutexLock lock(self.mutex_);
  if (self.taken_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair{self.identity_.private_key.c_str(), self.identity_.certificate.c_str()};
  // gRPC needs an authority even where no client certificate is requested.
  const std::string& authority = self.identity_.peer_authority;
  const std::string& given = authority.empty() ? self.identity_.certificate : authority;
  *config = grpc_ssl_server_certificate_config_create(given.c_str(), &pair, 1);
  self.taken_ = true;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace foliot
