// UserDigest: what a front end keeps of a user of a personal model, in short: copies with equal digests have equal
// observations.
#ifndef FOLIOT_FOUNDATION_CORE_USER_DIGEST_H_
#define FOLIOT_FOUNDATION_CORE_USER_DIGEST_H_

#include <cstdint>

namespace foliot {

struct UserDigest {
  uint64_t user = 0;
  uint64_t generation = 0;  // how often the user was forgotten
  uint64_t observations = 0;
  uint64_t hash = 0;  // of the set of their ids

  bool operator==(const UserDigest&) const = default;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_USER_DIGEST_H_
