// WeightTable: the weights of users by one version: they follow from the users' observations, the features of
// items and the weights that were trained.
//
// They follow from nothing else: not from when users are read, and not from which users are in memory. The prior is
// what all users have in common (pooled_prior.h), or zero. Values are clipped to what several users have seen
// (population.h), unless the range was asked for.
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
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_WEIGHT_TABLE_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_WEIGHT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "answer/personal/items/personal_version.h"
#include "answer/personal/storage/pooled_prior.h"
#include "answer/personal/weights/kept_weights.h"
#include "answer/personal/weights/observation_table.h"
#include "answer/personal/weights/running_loss.h"
#include "answer/personal/weights/user_weights.h"
#include "answer/personal/weights/value_range.h"

namespace foliot {

class WeightTable {
 public:
  static constexpr double kDriftMax = 1e-4;

  struct Options {
    float lambda = 1;           // where the version has none
    bool prior_is_mean = true;  // else zero
    bool learns_range = true;   // of values; else what was observed counts as it is
    size_t factors_max = 1024;
  };
  // What weights follow from beside the user's observations.
  struct Prior {
    std::vector<float> weights{};
    ValueRange range{};
    uint64_t revision = 0;
    std::optional<uint64_t> alone{};  // the only user: its prior is zero
  };
  // The weights of a user, made apart from the table.
  struct Prepared {
    uint32_t settled = 0;
    uint64_t revision = 0;
    ValueRange range{};   // to which values were clipped
    ValueRange values{};  // these, from the least to the greatest
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
  std::span<const float> settled_weights(uint64_t user);
  void record_loss(uint32_t place, double loss) { entry(place).loss.record(loss); }
  // Of the user, since this version is served.
  RunningLoss loss(uint32_t place) const { return place < entries_.size() ? entries_[place].loss : RunningLoss(); }
  size_t unsettled(uint32_t place) const;
  void settle(uint32_t place) { settle(place, false); }
  const UserWeights& factor(uint64_t user);
  bool has_factor(uint32_t place) const;

  // Sums the prior of this population, so that little is left to be done by the first prior(). Before the table is
  // used.
  void begin(const Population& population);
  Prior prior();
  // What the weights of a user with these observations are; needs no lock.
  Prepared prepare(const ObservationTable::User& user, const Prior& prior, bool needs_factor) const;
  // Of the prediction for an observation by the weights of a user with these observations; nullopt: the item is
  // unknown. Needs no lock.
  std::optional<double> error(const ObservationTable::User& user, const Prior& prior,
                              const UserObservation& observation) const;
  // REQUIRES: it was prepared from the first of the observations of the user that has this place now.
  void store(uint32_t place, Prepared prepared);
  // The place is empty from here on. After ObservationTable::remove().
  void remove(uint32_t place);

  // Of a user that leaves memory, or comes back.
  KeptWeights kept(uint32_t place) const;
  uint32_t settled(uint32_t place) const { return place < entries_.size() ? entries_[place].settled : 0; }
  void release(uint32_t place);
  // REQUIRES: the weights are of this table, and the place was empty.
  void resume(uint32_t place, KeptWeights kept);

  const RunningLoss& held_out() const { return held_out_; }
  uint64_t corrections() const { return corrections_; }
  uint64_t builds() const { return builds_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    uint32_t factor = kNone;  // index in factors_
    uint32_t settled = 0;     // so many observations are in the weights, and in the factor if there is one
    uint64_t revision = 0;    // of what the weights follow from beside them
    std::vector<float> weights{};
    RunningLoss loss{};
  };
  struct Factor {
    uint32_t place = kNone;
    bool was_read = false;  // since the last look
    ValueRange range{};     // to which its values were clipped
    ValueRange values{};    // these, from the least to the greatest
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
  // The trainer of the version has not seen it.
  bool was_hidden(const UserObservation& one) const {
    return version_.withholds ? one.is_withheld() : one.is_of_pool();
  }
  // Observation `index` of the user.
  void gather(const ObservationTable::User& user, size_t index, std::span<const float> trained, size_t trained_count,
              const ValueRange& range, Gathered& gathered) const;
  void gather_all(const ObservationTable::User& user, const ValueRange& range, Gathered& gathered) const;
  ValueRange range() const { return options_.learns_range ? users_.population().range() : ValueRange::all(); }
  // Of what weights follow from beside the user's observations.
  uint64_t revision() const;
  std::optional<uint64_t> alone() const;
  std::span<const float> pooled();
  // Brings the weights, or weights and factor, up to date.
  void settle(uint32_t place, bool needs_factor);
  // False: a pivot is not positive.
  bool add_new(const ObservationTable::User& user, Entry& entry, UserWeights& weights);
  void build(const ObservationTable::User& user, Factor& factor);
  void solve(const ObservationTable::User& user, Entry& entry, const UserWeights& weights);
  uint32_t free_factor();

  const ObservationTable& users_;
  const PersonalVersion version_;
  const Options options_;
  const float lambda_;
  PooledPrior pooled_;
  uint64_t pooled_revision_ = 0;
  std::vector<Entry> entries_;  // by the user's place
  std::vector<Factor> factors_;
  uint32_t next_look_ = 0;
  const UserWeights no_observations_;
  const std::vector<float> zero_;
  RunningLoss held_out_;
  uint64_t corrections_ = 0;
  uint64_t builds_ = 0;
  // Used again by each call.
  Gathered gathered_;
  Gathered held_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_WEIGHT_TABLE_H_
