// S3Store: an ObjectStore behind the interface of S3, such as that of Amazon, of Google (with its interoperable keys),
// MinIO or Ceph.
//
// Requests are signed by Signature Version 4. Credentials are read for each call. A request has no time limit of its
// own, since objects may be large; it ends after kStallTimeout without a byte.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_S3_STORE_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_S3_STORE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/net/http_call.h"
#include "foundation/net/http_connection.h"
#include "foundation/objectstore/object_address.h"
#include "foundation/objectstore/object_store.h"
#include "foundation/objectstore/s3_access.h"

namespace foliot {

struct S3Options {
  ObjectAddress address;
  // URL. With "{bucket}" in its host, that is replaced by the bucket; without, the bucket begins the path. Empty: as
  // the environment says (S3Access), or Amazon's of the region.
  std::string endpoint{};
  std::string region{};  // empty: as the environment says, or us-east-1
  Environment environment = environment_variable;
  std::function<bool()> cancelled = [] { return false; };  // asked from the calling thread; true ends a call
};

class S3Store : public ObjectStore {
 public:
  static constexpr Duration kStallTimeout = Duration::seconds(15);

  explicit S3Store(S3Options options) : options_(std::move(options)) {}

  std::string place() const override { return options_.address.text(); }
  Result<std::vector<StoredObject>> list() override;
  Result<bool> read(const StoredObject& object, uint64_t begin, const OnBytes& on_bytes) override;
  Result<std::optional<uint64_t>> part_bytes(const StoredObject& object) override;
  Result<StoredObject> find(const std::string& key) override;
  Status write(const std::string& key, int file) override;

 private:
  struct Request {
    std::string method = "GET";
    std::string key{};                           // behind the prefix; empty: the bucket
    std::map<std::string, std::string> query{};  // sorted, as it is signed
    std::vector<std::string> headers{};
    std::string body_sha256{};  // empty: of no body
  };
  struct Place {
    S3Access access;
    std::string region;
    std::string url;  // of the bucket
  };
  Result<Place> where() const;
  // `call` has what is particular of the request. Errors: kUnavailable naming place and key.
  Result<HttpAnswer> make(const Request& request, HttpCall call);
  std::string what(const Request& request) const;
  // Of an answer that is no success.
  Status failure(const Request& request, const HttpAnswer& answer) const;

  const S3Options options_;
  HttpConnection connection_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_S3_STORE_H_
