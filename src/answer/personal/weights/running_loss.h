// RunningLoss: the mean squared error of predictions that were made before their values were learned: of
// all, and of the last ones (with weights that fall by 1 / kRecent).
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_RUNNING_LOSS_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_RUNNING_LOSS_H_

#include <algorithm>
#include <cstdint>

namespace foliot {

class RunningLoss {
 public:
  static constexpr uint64_t kRecent = 1000;

  RunningLoss() = default;
  // As one that has these.
  RunningLoss(uint64_t count, double mean, double recent) : count_(count), mean_(mean), recent_(recent) {}

  void record(double loss) {
    ++count_;
    mean_ += (loss - mean_) / static_cast<double>(count_);
    recent_ += (loss - recent_) / static_cast<double>(std::min(count_, kRecent));
  }
  uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double recent() const { return recent_; }

 private:
  uint64_t count_ = 0;
  double mean_ = 0;
  double recent_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_RUNNING_LOSS_H_
