// ObjectStore: the objects of one bucket under one prefix, such as those of S3.
//
// Threading: one at a time. Calls block for as long as the store takes; see the implementation for its limits.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_STORE_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

struct StoredObject {
  std::string key;   // behind the prefix and its '/'
  std::string etag;  // names the content, without quotes
  uint64_t bytes = 0;

  bool operator==(const StoredObject&) const = default;
};

class ObjectStore {
 public:
  // Beyond that a prefix is refused: so many models are not in one repository.
  static constexpr size_t kObjectsMax = 200'000;

  virtual ~ObjectStore() = default;

  // "s3://BUCKET/PREFIX", for messages.
  virtual std::string place() const = 0;
  // All objects, by key. Errors name place, status and remedy: kNotFound: no such bucket; kInvalidArgument: refused,
  // or too many; kUnavailable: the same call may succeed later.
  virtual Result<std::vector<StoredObject>> list() = 0;
  // Gives the bytes of this version of an object from `begin` on to `on_bytes`, whose failure ends it and is returned.
  // True: the object's ETag is a hash of its content, as far as the store says. Errors: as list(), and kNotFound where
  // there is no such object or another version of it. After kUnavailable, what has come is right and may be gone on
  // from.
  using OnBytes = std::function<Status(std::span<const std::byte>)>;
  virtual Result<bool> read(const StoredObject& object, uint64_t begin, const OnBytes& on_bytes) = 0;
  // The bytes of each part but the last, of an object that was written in parts; nullopt: the store does not say.
  virtual Result<std::optional<uint64_t>> part_bytes(const StoredObject& object) = 0;
  // The object of this key as it is now. Errors: as read().
  virtual Result<StoredObject> find(const std::string& key) = 0;
  // Writes an object of the content of an open file, whole or not at all. Errors: as list().
  virtual Status write(const std::string& key, int file) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_STORE_H_
