// DriftDetector: a sequential test of whether predictions have become worse than they were: whether items have
// changed, and the version must be retrained.
//
// Losses are compared with those of users that had as many observations: users that come make the mean loss
// grow, and users that are learned make it fall, and neither is drift. The first kCalibration losses of each such
// group give its reference: their mean, one tenth and four standard errors; its first kCalibrationLeast give one in the
// meantime. Users that are known better are predicted no worse: so the reference of a group is at most that of groups
// with fewer observations, and a group that has none of its own yet has theirs. From there on each loss, as a multiple
// z of its reference and at most kMultipleMax, makes a bet: e = 1 + b (z - 1). As long as the mean of z is at most 1
// given what was before, whatever its distribution, that of e is at most 1. M <- (M + 1) e is the sum of the gains of
// bets that begin at each of the losses (Shiryaev and Roberts), and M - n a supermartingale: by Ville's inequality M
// reaches c within n losses with a probability of at most n / c. With c = kThreshold that is 0.01 for a million.
// Several b are used, each for changes of another size, and M is their mean.
//
// A mean loss that is higher by half is found after some 1,000 losses, one that is higher by a third after some 3,000.
// What is below 15 to 25 % is not found; with a reference of kCalibrationLeast losses, what is below a third.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_DRIFT_DETECTOR_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_DRIFT_DETECTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace foliot {

class DriftDetector {
 public:
  static constexpr uint64_t kCalibration = 3000;
  static constexpr uint64_t kCalibrationLeast = 400;
  static constexpr double kThreshold = 1e8;
  static constexpr double kMultipleMax = 20;

  // A loss of a user that had so many observations before.
  void record(size_t observations, double loss);
  bool is_found() const { return is_found_; }
  // False: no group has a reference, and drift cannot be found.
  bool is_calibrated() const { return is_calibrated_; }
  // Losses that were tested until drift was found, or so far.
  uint64_t tested() const { return tested_; }
  // M.
  double evidence() const;

 private:
  // Users with 0, 1, 2 to 3, 4 to 7, ... observations.
  struct Group {
    uint64_t count = 0;
    double mean = 0;
    double squares = 0;  // sum of squared deviations from the mean
    double reference = std::numeric_limits<double>::infinity();
  };
  static void calibrate(Group& group, double loss);
  double reference(size_t group) const;

  static constexpr std::array<double, 4> kBets = {0.02, 0.05, 0.1, 0.2};

  std::array<Group, 10> groups_{};
  std::array<double, kBets.size()> gains_{};
  uint64_t tested_ = 0;
  bool is_calibrated_ = false;
  bool is_found_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_DRIFT_DETECTOR_H_
