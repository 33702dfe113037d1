#include "foundation/access/tls_session.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <limits>
#include <utility>

#include "foundation/access/openssl_handles.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// The leaf, then its chain.
bool use_certificates(SSL_CTX* context, const std::string& pem) {
  const Bio bio = bio_of(pem);
  const Certificate leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) return false;
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) == 1) continue;
    X509_free(next);
    return false;
  }
  ERR_clear_error();  // of the end of the file
  return true;
}

bool use_private_key(SSL_CTX* context, const std::string& pem) {
  const Bio bio = bio_of(pem);
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

bool trust_authorities(SSL_CTX* context, const std::string& pem) {
  const Bio bio = bio_of(pem);
  bool any = false;
  while (const Certificate authority{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1) return false;
    any = true;
  }
  ERR_clear_error();
  return any;
}

// What went wrong, in terms of the operator who has to correct it.
std::string reason_of(const SSL* session, unsigned long error) {
  if (const long verdict = SSL_get_verify_result(session); verdict != X509_V_OK) {
    return fmt::format("its certificate is not accepted: {}", X509_verify_cert_error_string(verdict));
  }
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_UNSUPPORTED_PROTOCOL: return "it does not speak TLS 1.3, and this side does";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return "it shows no certificate";
    default: break;
  }
  const char* const text = ERR_reason_error_string(error);
  return fmt::format("TLS: {}", text == nullptr ? "the connection ended" : text);
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::make(const TlsIdentity& identity) {
  FOLIOT_CHECK(!identity.peer_authority.empty());
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  FOLIOT_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  ERR_clear_error();
  if (!use_certificates(context.get(), identity.certificate) || !use_private_key(context.get(), identity.private_key) ||
      !trust_authorities(context.get(), identity.peer_authority)) {
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    return Status::invalid_argument(fmt::format("TLS: {}", reason == nullptr ? "not a certificate in PEM" : reason));
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context)));
}

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsSession::TlsSession(const TlsContext& context, TlsEnd end) : session_(SSL_new(context.context_.get())) {
  BIO* const received = BIO_new(BIO_s_mem());
  BIO* const to_send = BIO_new(BIO_s_mem());
  FOLIOT_CHECK(session_ != nullptr && received != nullptr && to_send != nullptr);
  SSL_set_bio(session_.get(), received, to_send);
  if (end == TlsEnd::kCalled) {
    SSL_set_accept_state(session_.get());
  } else {
    SSL_set_connect_state(session_.get());
    FOLIOT_CHECK(shake_hands().ok());
  }
}

bool TlsSession::established() const { return SSL_is_init_finished(session_.get()) == 1; }

Status TlsSession::receive(std::span<const std::byte> bytes) {
  FOLIOT_CHECK(bytes.size() <= std::numeric_limits<int>::max());
  const int size = static_cast<int>(bytes.size());
  FOLIOT_CHECK(BIO_write(SSL_get_rbio(session_.get()), bytes.data(), size) == size);
  return established() ? Status() : shake_hands();
}

Status TlsSession::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(session_.get());
  take_unsent();
  return result == 1 ? Status() : failed(result);
}

Result<size_t> TlsSession::read(std::span<std::byte> to) {
  if (!established()) return size_t{0};
  size_t bytes = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(session_.get(), to.data(), to.size(), &bytes);
  take_unsent();
  if (result != 1) FOLIOT_RETURN_IF_ERROR(failed(result));
  return bytes;
}

Status TlsSession::write(std::span<const std::byte> bytes) {
  size_t written = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written);
  take_unsent();
  if (result != 1) return Status::unavailable(reason_of(session_.get(), ERR_peek_error()));
  FOLIOT_CHECK(written == bytes.size());  // memory takes all
  return Status();
}

// Ok if it only needs more bytes from the peer.
Status TlsSession::failed(int result) {
  const int error = SSL_get_error(session_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Status();
  if (error == SSL_ERROR_ZERO_RETURN) return Status::unavailable("the peer closed the connection");
  return Status::unavailable(reason_of(session_.get(), ERR_peek_error()));
}

void TlsSession::take_unsent() {
  BIO* const from = SSL_get_wbio(session_.get());
  const size_t pending = BIO_ctrl_pending(from);
  if (pending == 0) return;
  const size_t before = unsent_.size();
  unsent_.resize(before + pending);
  FOLIOT_CHECK(BIO_read(from, unsent_.data() + before, static_cast<int>(pending)) == static_cast<int>(pending));
}

void TlsSession::sent(size_t bytes) {
  sent_ += bytes;
  FOLIOT_CHECK(sent_ <= unsent_.size());
  if (sent_ < unsent_.size()) return;
  unsent_.clear();
  sent_ = 0;
}

}  // namespace foliot
