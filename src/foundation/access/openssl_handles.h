// OpenSSL's objects, released when their owner goes.
#ifndef FOLIOT_FOUNDATION_ACCESS_OPENSSL_HANDLES_H_
#define FOLIOT_FOUNDATION_ACCESS_OPENSSL_HANDLES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace foliot {

template <auto release>
struct OpensslRelease {
  void operator()(auto* thing) const { release(thing); }
};
using Bio = std::unique_ptr<BIO, OpensslRelease<BIO_free>>;
using Certificate = std::unique_ptr<X509, OpensslRelease<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpensslRelease<EVP_PKEY_free>>;

// Reads from `text`, which must outlive it.
inline Bio bio_of(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_OPENSSL_HANDLES_H_
