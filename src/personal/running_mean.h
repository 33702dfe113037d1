// RunningMean: the mean of all users' weights, each user counted once whatever number of
// observations it has. It is the prior of every user (the mean of all others), and all that is known of
// a new one.
//
// Threading: not thread-safe.
#ifndef FOLIOT_PERSONAL_RUNNING_MEAN_H_
#define FOLIOT_PERSONAL_RUNNING_MEAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace foliot {

class RunningMean {
 public:
  explicit RunningMean(size_t width) : sums_(width) {}
  // As one that has these.
  RunningMean(std::vector<double> sums, uint64_t users) : sums_(std::move(sums)), users_(users) {}

  // A user's weights: empty spans where it had none before, or has none any more.
  void replace(std::span<const float> before, std::span<const float> after) {
    for (size_t i = 0; i < before.size(); ++i) sums_[i] -= before[i];
    for (size_t i = 0; i < after.size(); ++i) sums_[i] += after[i];
    users_ += (after.empty() ? 0 : 1);
    users_ -= (before.empty() ? 0 : 1);
  }

  // The mean of all but the user with these weights; empty: of all. Zero if there is no user.
  void without(std::span<const float> own, std::span<float> mean) const {
    const uint64_t users = users_ - (own.empty() ? 0 : 1);
    for (size_t i = 0; i < mean.size(); ++i) {
      const double sum = sums_[i] - (own.empty() ? 0 : own[i]);
      mean[i] = users == 0 ? 0 : static_cast<float>(sum / static_cast<double>(users));
    }
  }
  uint64_t users() const { return users_; }
  std::span<const double> sums() const { return sums_; }

 private:
  std::vector<double> sums_;
  uint64_t users_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_RUNNING_MEAN_H_
