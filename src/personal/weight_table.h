// WeightTable: the weights of users by one version: they follow from the users' observations, the features of
// items and the weights that were trained.
//
// Weights are brought up to date when they are read: all that came since the last time is one
// update. The matrix A of a user (user_weights.h) is kept for the users that were read last, at most
// `factors_max` (CLOCK), and built anew for any other.
//
// Trained weights w stand for the observations that they were trained on: the value of each of these is taken to be
// what w predicts, and w is the prior. So A^-1 b is w, and each later observation changes it as if it
// had been there: each counts once. They do not apply to a user that was forgotten and came again.
//
// Updates of a matrix cross-validate themselves: one observation in ten is held out, predicted by the weights that
// all others of this update gave, and then learned.
//
// After a build that has replaced many updates the weights are compared with those before: corrections()
// counts those that differed by more than kDriftMax.
//
// Threading: not thread-safe; prepare() and error() by any thread.
#ifndef FOLIOT_PERSONAL_WEIGHT_TABLE_H_
#define FOLIOT_PERSONAL_WEIGHT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "personal/kept_weights.h"
#include "personal/observation_table.h"
#include "personal/personal_version.h"
#include "personal/running_loss.h"
#include "personal/running_mean.h"
#include "personal/user_weights.h"

namespace foliot {

class WeightTable {
 public:
  static constexpr double kDriftMax = 1e-4;

  struct Options {
    float lambda = 1;           // where the version has none
    bool prior_is_mean = true;  // else zero
    size_t factors_max = 1024;
  };
  // The weights of a user, made apart from the table.
  struct Prepared {
    uint32_t settled = 0;
    std::vector<float> weights{};
    std::optional<UserWeights> factor{};
  };

  // `users` outlives it.
  WeightTable(const ObservationTable& users, PersonalVersion version, const Options& options);

  const PersonalVersion& version() const { return version_; }
  const ItemFeatures& items() const { return version_.features(); }
  uint64_t fingerprint() const { return version_.fingerprint(options_.lambda); }

  // Those of an unknown user are the mean. Valid until the next call of another function.
  std::span<const float> weights(uint64_t user);
  // As they were when they were last read.
  std::span<const float> settled_weights(uint32_t place);
  void record_loss(uint32_t place, double loss) { entry(place).loss.record(loss); }
  // Of the user, since this version is served.
  RunningLoss loss(uint32_t place) const { return place < entries_.size() ? entries_[place].loss : RunningLoss(); }
  size_t unsettled(uint32_t place) const;
  void settle(uint32_t place) { settle(place, false); }
  const UserWeights& factor(uint64_t user);
  bool has_factor(uint32_t place) const;

  // The mean of all users, as a prior.
  std::vector<float> mean() const;
  // What the weights of a user with these observations are; needs no lock.
  Prepared prepare(const ObservationTable::User& user, std::span<const float> prior, bool needs_factor) const;
  // Of the prediction for an observation by the weights of a user with these observations; nullopt: the item is
  // unknown. Needs no lock.
  std::optional<double> error(const ObservationTable::User& user, std::span<const float> prior,
                              const UserObservation& observation) const;
  // REQUIRES: it was prepared from the first of the observations of the user that has this place now.
  void store(uint32_t place, Prepared prepared);
  // Weights from a snapshot, of all observations that the user has now.
  void restore(uint32_t place, std::vector<float> weights);
  // The place is empty from here on. After ObservationTable::remove().
  void remove(uint32_t place);

  // Of a user that leaves memory, or comes back: the mean counts it all the time.
  KeptWeights kept(uint32_t place) const;
  uint32_t settled(uint32_t place) const { return place < entries_.size() ? entries_[place].settled : 0; }
  void release(uint32_t place);
  // REQUIRES: the weights are of this table, and the place was empty.
  void resume(uint32_t place, KeptWeights kept);
  // These weights are of a user that is not in memory, and were not counted before.
  void count(std::span<const float> weights) { mean_.replace({}, weights); }
  const RunningMean& running_mean() const { return mean_; }
  // REQUIRES: it has as many features, and there are no users yet.
  void restore_mean(RunningMean mean) { mean_ = std::move(mean); }

  const RunningLoss& held_out() const { return held_out_; }
  uint64_t corrections() const { return corrections_; }
  uint64_t builds() const { return builds_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    uint32_t factor = kNone;  // index in factors_
    uint32_t settled = 0;     // so many observations are in the weights, and in the factor if there is one
    std::vector<float> weights{};
    RunningLoss loss{};
  };
  struct Factor {
    uint32_t place = kNone;
    bool was_read = false;  // since the last look
    UserWeights weights;
  };
  // Features of observations, one after the other, and their values; of known items.
  struct Gathered {
    std::vector<float> rows{};
    std::vector<float> values{};
    void clear() {
      rows.clear();
      values.clear();
    }
  };
  Entry& entry(uint32_t place);
  std::optional<TrainedWeights::User> trained(const ObservationTable::User& user) const;
  // Observation `index` of the user.
  void gather(const ObservationTable::User& user, size_t index, std::span<const float> trained, size_t trained_count,
              Gathered& gathered) const;
  void gather_all(const ObservationTable::User& user, Gathered& gathered) const;
  // Brings the weights, or weights and factor, up to date.
  void settle(uint32_t place, bool needs_factor);
  // False: a pivot is not positive.
  bool add_new(const ObservationTable::User& user, Entry& entry, UserWeights& weights);
  void build(const ObservationTable::User& user, UserWeights& weights);
  void solve(const ObservationTable::User& user, Entry& entry, const UserWeights& weights);
  uint32_t free_factor();

  const ObservationTable& users_;
  const PersonalVersion version_;
  const Options options_;
  const float lambda_;
  RunningMean mean_;
  std::vector<Entry> entries_;  // by the user's place
  std::vector<Factor> factors_;
  uint32_t next_look_ = 0;
  const UserWeights no_observations_;
  RunningLoss held_out_;
  uint64_t corrections_ = 0;
  uint64_t builds_ = 0;
  // Used again by each call.
  Gathered gathered_;
  Gathered held_;
  std::vector<float> prior_;
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_WEIGHT_TABLE_H_
