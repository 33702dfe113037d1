// UserTable: users and their observations, and the weights that follow from them.
//
// Observations alone are state. Weights are brought up to date when they are read: all that came
// since the last time is one update. The matrix A of a user (user_weights.h) is kept for the users that were
// read last, at most `factors_max` (CLOCK), and built anew for any other.
//
// After a build that has replaced many updates the weights are compared with those before: corrections()
// counts those that differed by more than kDriftMax.
//
// Threading: not thread-safe.
#ifndef FOLIOT_PERSONAL_USER_TABLE_H_
#define FOLIOT_PERSONAL_USER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "personal/item_table.h"
#include "personal/running_mean.h"
#include "personal/user_weights.h"

namespace foliot {

// What a user made of an item. `id` is the client's: of one user, each counts once.
struct UserObservation {
  uint64_t id = 0;
  uint64_t item = 0;
  float value = 0;

  bool operator==(const UserObservation&) const = default;
};

class UserTable {
 public:
  static constexpr double kDriftMax = 1e-4;

  struct Options {
    float lambda = 1;
    bool prior_is_mean = true;  // else zero
    size_t factors_max = 1024;
  };
  // What is stored of a user.
  struct Stored {
    uint64_t user = 0;
    uint64_t number = 0;  // of the last record of the log that is part of it
    std::vector<UserObservation> observations{};
    std::vector<float> weights{};  // of all of these; empty: not known
  };

  UserTable(std::shared_ptr<const ItemTable> items, const Options& options);

  // Observations whose ids the user has already are left out; without effect if `number` is not above that of
  // the user's last change.
  void add(uint64_t user, uint64_t number, std::span<const UserObservation> observations);
  void remove(uint64_t user, uint64_t number);
  // REQUIRES: the user is unknown; weights are those of this table of items.
  void restore(Stored stored);

  bool has(uint64_t user, uint64_t id) const;
  std::span<const UserObservation> observations(uint64_t user) const;
  size_t users() const { return by_id_.size(); }

  // Those of an unknown user are the mean. Valid until the next call of another function.
  std::span<const float> weights(uint64_t user);
  const UserWeights& factor(uint64_t user);

  // Users stand in places below places(); nullopt: this one is empty. Users that come meanwhile may
  // take a place that was empty.
  size_t places() const { return users_.size(); }
  std::optional<Stored> stored(size_t place);

  const ItemTable& items() const { return *items_; }
  uint64_t corrections() const { return corrections_; }
  uint64_t builds() const { return builds_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct User {
    uint64_t id = 0;
    uint64_t number = 0;
    bool is_used = false;
    uint32_t factor = kNone;  // index in factors_
    uint32_t settled = 0;     // so many observations are in the weights, and in the factor if there is one
    std::vector<UserObservation> observations;
    std::vector<float> weights;
  };
  struct Factor {
    uint32_t user = kNone;
    bool was_read = false;  // since the last look
    UserWeights weights;
  };
  User& add_user(uint64_t user);
  // Brings the weights, or weights and factor, up to date.
  void settle(uint32_t place, bool needs_factor);
  void build(User& user, UserWeights& weights);
  void solve(User& user, const UserWeights& weights);
  uint32_t free_factor();
  // Their features, one after the other, and their values; of known items.
  void gather(std::span<const UserObservation> observations);

  const std::shared_ptr<const ItemTable> items_;
  const Options options_;
  RunningMean mean_;
  std::vector<User> users_;
  std::vector<uint32_t> empty_places_;
  FlatMap<uint64_t, uint32_t> by_id_;
  std::vector<Factor> factors_;
  uint32_t next_look_ = 0;
  const UserWeights no_observations_;
  uint64_t corrections_ = 0;
  uint64_t builds_ = 0;
  // Used again by each call.
  std::vector<float> rows_;
  std::vector<float> values_;
  std::vector<float> prior_;
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_USER_TABLE_H_
