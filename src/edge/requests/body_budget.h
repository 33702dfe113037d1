// BodyBudget: the bytes of requests' bodies that are being read or answered, by source and in all. A source, which is
// a key or an address, may have one body, or as many bytes as are left free: alone half of all, beside another one a
// third. So one that sends much leaves room for bodies of others.
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_REQUESTS_BODY_BUDGET_H_
#define FOLIOT_EDGE_REQUESTS_BODY_BUDGET_H_

#include <cstdint>
#include <map>
#include <string>

#include "foundation/base/mutex.h"

namespace foliot {

// A body so small counts in all, and for no source: most are, and whose they are need not be looked up.
inline constexpr uint64_t kUnsharedBodyBytes = 16 << 10;

class BodyBudget {
 public:
  explicit BodyBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // A body of this source, empty for none, grows or shrinks from `held` to `bytes`. False: it may not grow so far, and
  // holds what it held.
  bool resize(const std::string& source, uint64_t held, uint64_t bytes);
  // Even where there is no room.
  void add(const std::string& source, uint64_t bytes);
  // True if the source has more than it may, or all together have.
  bool is_exceeded_by(const std::string& source) const;
  // Why a body that holds `held` was refused.
  std::string refusal(const std::string& source, uint64_t held) const;

 private:
  uint64_t bytes_of(const std::string& source) const REQUIRES(mutex_);
  uint64_t bytes_free() const REQUIRES(mutex_) { return bytes_ < bytes_max_ ? bytes_max_ - bytes_ : 0; }
  void set(const std::string& source, uint64_t bytes) REQUIRES(mutex_);

  const uint64_t bytes_max_;
  mutable Mutex mutex_;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t> sources_ GUARDED_BY(mutex_);  // of those that have some
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_BODY_BUDGET_H_
