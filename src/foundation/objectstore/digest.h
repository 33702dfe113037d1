// Digest: MD5 or SHA-256 of bytes that come in pieces. MD5 finds damage here, which it does; it is no proof against
// forgery.
//
// Threading: one thread.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_DIGEST_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_DIGEST_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foundation/base/status.h"

struct evp_md_ctx_st;
struct evp_md_st;

namespace foliot {

class Digest {
 public:
  static Digest md5();
  static Digest sha256();
  ~Digest();
  Digest(Digest&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // Of what came since the beginning or the last finish().
  std::vector<std::byte> finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  explicit Digest(const evp_md_st* kind);
  const evp_md_st* kind_;
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string to_hex(std::span<const std::byte> bytes);
// SHA-256 of an open file, from its beginning on, in hexadecimal. Errors: kInternal.
Result<std::string> sha256_of_file(int file);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_DIGEST_H_
