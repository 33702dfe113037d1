// ObjectAddress: a bucket and a prefix of it, as "s3://BUCKET/PREFIX".
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_ADDRESS_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_ADDRESS_H_

#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

struct ObjectAddress {
  std::string bucket;
  std::string prefix;  // without '/' at either end; empty: all of the bucket

  // Errors: kInvalidArgument naming it.
  static Result<ObjectAddress> parse(const std::string& text);
  // Whether it is meant as an address, right or wrong, and not as the path of a file.
  static bool is_one(std::string_view text) { return text.starts_with("s3://"); }
  std::string text() const;
  // What a folder of its objects is called: the prefix's last part, or the bucket.
  std::string name() const;
};

// Whether a key can be the path of a file below a folder: no part of it is empty, "." or "..", or longer than a file's
// name may be, and there are no control characters or backslashes.
bool is_safe_key(std::string_view key);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_ADDRESS_H_
