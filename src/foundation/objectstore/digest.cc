#include "foundation/objectstore/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "foundation/base/check.h"
#include "foundation/base/error_text.h"

namespace foliot {

void Digest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(const evp_md_st* kind) : kind_(kind), context_(EVP_MD_CTX_new()) {
  FOLIOT_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), kind_, nullptr) == 1);
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;

Digest Digest::md5() { return Digest(EVP_md5()); }
Digest Digest::sha256() { return Digest(EVP_sha256()); }

void Digest::update(std::span<const std::byte> bytes) {
  FOLIOT_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::vector<std::byte> Digest::finish() {
  std::vector<std::byte> digest(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  FOLIOT_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), &size) == 1);
  digest.resize(size);
  FOLIOT_CHECK(EVP_DigestInit_ex(context_.get(), kind_, nullptr) == 1);
  return digest;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

Result<std::string> sha256_of_file(int file) {
  Digest digest = Digest::sha256();
  std::vector<std::byte> piece(256 << 10);
  for (off_t offset = 0;;) {
    const ssize_t count = ::pread(file, piece.data(), piece.size(), offset);
    if (count < 0) return Status::internal(fmt::format("cannot read a file to be stored: {}", error_text(errno)));
    if (count == 0) return to_hex(digest.finish());
    digest.update(std::span(piece).first(static_cast<size_t>(count)));
    offset += count;
  }
}

}  // namespace foliot
