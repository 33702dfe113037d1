// WaitingChanges: changes of users that wait for the disk, in the order of the log, and what waits of each user: limits
// count it.
//
// Threading: one owner, or a lock around it.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_WAITING_CHANGES_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_WAITING_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "answer/personal/items/computed_items.h"
#include "answer/personal/items/known_items.h"
#include "answer/personal/weights/observation_table.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/status.h"

namespace foliot {

struct UserChange {
  uint64_t number = 0;  // of its record
  uint64_t user = 0;
  bool forgets = false;
  std::optional<uint64_t> generation{};  // of a copy; nullopt: the one that the user has
  std::vector<UserObservation> observations{};
  std::function<void(const Status&)> done{};
  std::vector<uint64_t> claims{};  // of items
  std::vector<KnownItem> items{};  // those of them that are new
  std::vector<float> features{};   // of these, by this:
  std::shared_ptr<ComputedItems> by{};
};

class WaitingChanges {
 public:
  bool empty() const { return changes_.empty(); }
  // REQUIRES: not empty.
  const UserChange& front() const { return changes_.front(); }
  UserChange pop();
  // `is_known`: the user has observations on disk.
  void push(UserChange change, bool is_known);

  bool has(uint64_t user) const { return users_.find(user) != nullptr; }
  // Those that wait of this user.
  size_t observations(uint64_t user) const;
  // Users of whom observations wait, and none is on disk.
  size_t new_users() const { return new_users_; }
  // Calls it with those that wait of this user.
  void for_each(uint64_t user, const std::function<void(const UserChange&)>& call) const;

 private:
  struct OfUser {
    size_t changes = 0;
    size_t observations = 0;
    bool is_new = false;
  };
  std::deque<UserChange> changes_;
  FlatMap<uint64_t, OfUser> users_;
  size_t new_users_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_WAITING_CHANGES_H_
