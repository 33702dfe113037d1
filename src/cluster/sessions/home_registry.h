// HomeRegistry: the front ends that keep users of personal models, as the controller names them to each of them.
//
// A controller that has just begun names none for `first_after`, so that front ends that find it again one after the
// other do not move all users.
//
// Threading: not thread-safe.
#ifndef FOLIOT_CLUSTER_SESSIONS_HOME_REGISTRY_H_
#define FOLIOT_CLUSTER_SESSIONS_HOME_REGISTRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/transport/message.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class HomeRegistry {
 public:
  // Front ends look for their controller twice a second.
  static constexpr Duration kFirstAfter = Duration::seconds(1);

  // A front end with the name of another one takes its place: it was restarted. `session` is never used again.
  // Errors: kResourceExhausted.
  Status join(uint64_t session, HomeOffer home, TimePoint now);
  // Without effect if it has not joined, or another one took its place.
  void leave(uint64_t session);
  // What is to be sent to all that have joined; nullopt: nothing has changed, or it is too early.
  std::optional<Homes> take(TimePoint now);
  // When take() has to be called again, whatever happens.
  TimePoint next() const { return changed_ ? first_at_ : TimePoint::infinite_future(); }

 private:
  struct Entry {
    uint64_t session = 0;
    HomeOffer home;
  };
  std::map<std::string, Entry> entries_;  // by name
  bool changed_ = false;
  std::optional<uint64_t> epoch_;
  TimePoint first_at_ = TimePoint::infinite_future();
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_HOME_REGISTRY_H_
