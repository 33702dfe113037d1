// ObjectListing: a page of what ListObjectsV2 answers, and the error documents of S3.
//
// Threading: any.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_LISTING_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_LISTING_H_

#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/objectstore/object_store.h"

namespace foliot {

struct ObjectListing {
  std::vector<StoredObject> objects;  // keys with their prefix
  std::string continuation;           // names the next page; empty: this is the last one

  // Errors: kInvalidArgument saying what of the XML is wrong.
  static Result<ObjectListing> parse(std::string_view xml);
};

struct StoreError {
  std::string code;  // "NoSuchBucket"; empty: the text is no error document
  std::string message;

  static StoreError parse(std::string_view xml);
};

// As a part of a path or a query: all but letters, digits and -._~ as %XX; and '/', if `keep_slashes`.
std::string percent_encoded(std::string_view text, bool keep_slashes);
// Errors: kInvalidArgument for a '%' that no two digits follow.
Result<std::string> percent_decoded(std::string_view text);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_OBJECT_LISTING_H_
