// Certificates that tests make for themselves, signed by their own keys.
#ifndef FOLIOT_FOUNDATION_ACCESS_TEST_CERTIFICATES_H_
#define FOLIOT_FOUNDATION_ACCESS_TEST_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>

#include "foundation/base/check.h"

namespace foliot {

struct TestCertificate {
  std::string certificate;  // PEM
  std::string private_key;
};

struct TestCertificateOptions {
  std::string name = "localhost";
  int days = 1;  // negative: it has expired
};

inline std::string take_pem(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

// For localhost and 127.0.0.1, valid from two days ago.
inline TestCertificate make_test_certificate(const TestCertificateOptions& options = {}) {
  constexpr long kDay = 24L * 60 * 60;
  char curve[] = "P-256";
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve);
  X509* const certificate = X509_new();
  FOLIOT_CHECK(key != nullptr && certificate != nullptr);
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), options.days * kDay);
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(options.name.c_str()), -1,
                             -1, 0);
  X509_set_issuer_name(certificate, name);
  for (const auto& [extension, value] : {std::pair(NID_basic_constraints, "critical,CA:TRUE"),
                                         std::pair(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1")}) {
    X509_EXTENSION* const added = X509V3_EXT_conf_nid(nullptr, nullptr, extension, value);
    FOLIOT_CHECK(added != nullptr && X509_add_ext(certificate, added, -1) == 1);
    X509_EXTENSION_free(added);
  }
  FOLIOT_CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
  BIO* const certificate_out = BIO_new(BIO_s_mem());
  BIO* const key_out = BIO_new(BIO_s_mem());
  FOLIOT_CHECK(PEM_write_bio_X509(certificate_out, certificate) == 1);
  FOLIOT_CHECK(PEM_write_bio_PrivateKey(key_out, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {take_pem(certificate_out), take_pem(key_out)};
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_TEST_CERTIFICATES_H_
