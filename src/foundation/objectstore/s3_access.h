// S3Access: credentials, region and endpoint, from where the tools of AWS take them.
//
// Each value is the first that is given of: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or
// AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_CA_BUNDLE; then the profile AWS_PROFILE ("default")
// of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and of AWS_CONFIG_FILE (~/.aws/config). Roles of an instance or
// of a web identity are not asked for.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_S3_ACCESS_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_S3_ACCESS_H_

#include <functional>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

// The value of a variable of the environment; empty: it is not set.
using Environment = std::function<std::string(const char* name)>;
// That of this process.
std::string environment_variable(const char* name);

struct S3Access {
  std::string key_id;
  std::string secret;
  std::string token;     // of a session; empty: none
  std::string region;    // empty: nothing says it
  std::string endpoint;  // likewise
  std::string ca_file;   // likewise

  // Reads the files anew each time, since tools replace what has expired. Errors: kInvalidArgument naming what is
  // missing and where it is looked for. Any thread.
  static Result<S3Access> read(const Environment& environment = environment_variable);
  bool operator==(const S3Access&) const = default;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_S3_ACCESS_H_
