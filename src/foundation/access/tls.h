// TLS configuration: PEM files, read once at the start, so that a wrong path is an
// error then and not at the first connection.
#ifndef FOLIOT_FOUNDATION_ACCESS_TLS_H_
#define FOLIOT_FOUNDATION_ACCESS_TLS_H_

#include <filesystem>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

struct TlsFiles {
  std::filesystem::path certificate;  // with its chain; empty: no TLS
  std::filesystem::path private_key;
  // The authority that signs the certificates that peers must show; empty: they need
  // none.
  std::filesystem::path peer_authority;
};

// In PEM.
struct TlsIdentity {
  std::string certificate;
  std::string private_key;
  std::string peer_authority;  // empty: peers need no certificate
};

// Errors: kInvalidArgument naming the file, for one that cannot be read, is not PEM,
// has expired, or a key that does not belong to the certificate. REQUIRES: there is
// a certificate.
Result<TlsIdentity> read_tls_identity(const TlsFiles& files);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_TLS_H_
