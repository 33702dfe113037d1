// EtagCheck: whether bytes that come in order are those that an object's ETag was made of.
//
// An ETag is the MD5 of the content, or, of an object that was written in parts, "MD5-N": the MD5 of the MD5s of its N
// parts. Of other forms, as of objects that a key of the store's encrypts, it says nothing of the content.
//
// Threading: one thread.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_ETAG_CHECK_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_ETAG_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "foundation/objectstore/digest.h"
#include "foundation/objectstore/object_store.h"

namespace foliot {

class EtagCheck {
 public:
  // `part_bytes`: ObjectStore::part_bytes() of an object with is_of_parts().
  EtagCheck(const StoredObject& object, std::optional<uint64_t> part_bytes);

  static bool is_of_parts(const StoredObject& object);
  // The ETag is a hash of the content.
  bool is_possible() const { return kind_ != Kind::kUnknown; }
  void update(std::span<const std::byte> bytes);
  // REQUIRES: is_possible(). Once, after the last byte.
  bool matches();

 private:
  enum class Kind { kUnknown, kWhole, kParts };
  std::string etag_;
  uint64_t part_bytes_ = 0;
  Kind kind_ = Kind::kUnknown;
  Digest content_ = Digest::md5();  // of all, or of the part that comes
  uint64_t part_left_ = 0;          // bytes
  uint64_t parts_ = 0;
  Digest parts_digest_ = Digest::md5();
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_ETAG_CHECK_H_
