// Population: what follows from the observations of all users of a personal model, and from nothing else: the range of
// values that several users have seen, and a sample of users, from which their common prior is learned
// (pooled_prior.h). The order in which users came, or are read, has no part in it.
//
// The range: a user has a least and a greatest value. With n users, the k-th least of the least values and the k-th
// greatest of the greatest ones, k = 1 + (n + 4) / 8 and at most kSupportMax, and half of their distance beyond both.
// So it holds values that k users went as far as, and fewer users than that cannot stretch it to where they like. Least
// and greatest values are counted in bins of 1/64 of a value.
//
// The sample: all users up to kSampledMax, or those whose hashed number begins with so many zeros that they are no
// more. Of a user it has the first observations, as many as the greatest power of two that it has, at most
// kObservationsMax: so a user changes it a few times only. Others are kept beside them, to follow where sampled ones
// leave.
//
// Bounded: kKeptMax users of kObservationsMax observations, 12 bytes each, and the bins.
//
// Threading: not thread-safe; a copy is another one.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_POPULATION_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_POPULATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "answer/personal/weights/user_observation.h"
#include "answer/personal/weights/value_range.h"

namespace foliot {

class Population {
 public:
  static constexpr size_t kSampledMax = 1024;
  static constexpr size_t kKeptMax = 3 * kSampledMax;
  static constexpr size_t kObservationsMax = 32;
  static constexpr uint64_t kSupportMax = 16;
  struct Sampled {
    uint64_t revision = 0;  // of the population, when it came to be so
    uint32_t zeros = 0;     // that its hashed number begins with
    std::vector<uint64_t> items{};
    std::vector<float> values{};
  };
  using Bins = std::map<int32_t, uint64_t>;
  // All of it, to be written and read again.
  struct State {
    uint32_t level = 0;                // zeros of the users that are kept in `sampled`
    std::array<uint64_t, 65> users{};  // by the zeros that their hashed numbers begin with
    Bins lows{};
    Bins highs{};
    std::map<uint64_t, Sampled> sampled{};
  };

  Population() = default;
  explicit Population(State state);

  // The values of the user were within `before`, empty if it had none, and are within `after` now; `observations` are
  // all that it has.
  void change(uint64_t user, const ValueRange& before, const ValueRange& after,
              std::span<const UserObservation> observations);
  // After many users have left: some that are sampled by now are not known. Then the owner calls sample() for each
  // user.
  bool is_short() const { return state_.level > level_; }
  void begin_sample();
  void sample(uint64_t user, std::span<const UserObservation> observations);

  uint64_t users() const { return count_from(0); }
  // All values, while there are no users.
  const ValueRange& range() const { return range_; }
  // By user; those that are sampled, and others.
  const std::map<uint64_t, Sampled>& kept() const { return state_.sampled; }
  bool is_sampled(const Sampled& one) const { return one.zeros >= level_; }
  // Another one after each change of the sample or the range; of the range alone.
  uint64_t revision() const { return revision_; }
  uint64_t range_revision() const { return range_revision_; }
  // Users with values outside of the range, some of a bin more or less.
  uint64_t users_outside() const;
  const State& state() const { return state_; }

 private:
  uint64_t count_from(size_t zeros) const;
  void learn_range();
  void choose_level();
  void keep_from(uint32_t level);

  State state_;
  uint32_t level_ = 0;  // zeros of the users that are sampled
  ValueRange range_ = ValueRange::all();
  uint64_t revision_ = 1;
  uint64_t range_revision_ = 1;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_POPULATION_H_
