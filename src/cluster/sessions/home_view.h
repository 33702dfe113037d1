// HomeView: the front ends that keep users of personal models, as one of them knows them, and the homes of each user
// among them, by rendezvous hashing: the front ends with the highest hashes of (front end, user), the highest first.
// Equal lists give equal homes on every machine. A front end that comes or goes changes the homes of its own users
// only.
//
// Threading: not thread-safe.
#ifndef FOLIOT_CLUSTER_SESSIONS_HOME_VIEW_H_
#define FOLIOT_CLUSTER_SESSIONS_HOME_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/transport/message.h"

namespace foliot {

class HomeView {
 public:
  static constexpr size_t kReplicasMax = 2;

  // Of no front ends.
  HomeView() = default;
  explicit HomeView(const Homes& homes);

  uint64_t epoch() const { return epoch_; }
  // Ascending.
  const std::vector<std::string>& names() const { return names_; }
  // At most `replicas`, fewer if there are not so many front ends. REQUIRES: replicas is 1 to kReplicasMax.
  std::vector<std::string> homes_of(uint64_t user, size_t replicas) const;

 private:
  uint64_t epoch_ = 0;
  std::vector<std::string> names_;
  std::vector<uint64_t> hashes_;  // of the names
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_HOME_VIEW_H_
