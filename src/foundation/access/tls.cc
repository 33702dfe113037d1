#include "foundation/access/tls.h"

#include <fmt/format.h>
#include <openssl/pem.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "foundation/access/openssl_handles.h"

namespace foliot {
namespace {

Result<std::string> read_file(const std::filesystem::path& file, const char* what) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || text.empty()) {
    return Status::invalid_argument(fmt::format("{}: cannot read the {}", file.string(), what));
  }
  return text;
}

Result<Certificate> parse_certificate(const std::string& pem, const std::filesystem::path& file) {
  const Bio bio = bio_of(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) return Status::invalid_argument(fmt::format("{}: not a certificate in PEM", file.string()));
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Status::invalid_argument(fmt::format("{}: the certificate has expired", file.string()));
  }
  return certificate;
}

// A key that needs a password is not one for a server that starts by itself.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*unused*/) { return 0; }

}  // namespace

Result<TlsIdentity> read_tls_identity(const TlsFiles& files) {
  TlsIdentity identity;
  FOLIOT_ASSIGN_OR_RETURN(identity.certificate, read_file(files.certificate, "certificate"));
  FOLIOT_ASSIGN_OR_RETURN(const Certificate certificate, parse_certificate(identity.certificate, files.certificate));
  if (files.private_key.empty()) {
    return Status::invalid_argument(fmt::format("{}: its private key is missing", files.certificate.string()));
  }
  FOLIOT_ASSIGN_OR_RETURN(identity.private_key, read_file(files.private_key, "private key"));
  const Bio bio(BIO_new_mem_buf(identity.private_key.data(), static_cast<int>(identity.private_key.size())));
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (!key) {
    return Status::invalid_argument(
        fmt::format("{}: not a private key in PEM without a password", files.private_key.string()));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Status::invalid_argument(
        fmt::format("{} is not the private key of {}", files.private_key.string(), files.certificate.string()));
  }
  if (!files.peer_authority.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(identity.peer_authority, read_file(files.peer_authority, "authority of the peers"));
    FOLIOT_RETURN_IF_ERROR(parse_certificate(identity.peer_authority, files.peer_authority).status());
  }
  return identity;
}

}  // namespace foliot
