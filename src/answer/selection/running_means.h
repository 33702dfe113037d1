// RunningMeans: the mean of a model's answers so far, of each number of a row: what stands for
// an answer that is missing (Clipper, section 3.5.2).
//
// Bounded: rows of more than kRowMax numbers have no mean.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_RUNNING_MEANS_H_
#define FOLIOT_ANSWER_SELECTION_RUNNING_MEANS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/prediction.h"

namespace foliot {

class RunningMeans {
 public:
  static constexpr size_t kRowMax = 4096;

  // `rows`: of the prediction. Rows with numbers that are not finite do not count.
  void add(const Prediction& prediction, uint64_t rows);
  // Of an output's row of so many numbers; null: unknown.
  const std::vector<double>* find(std::string_view output, size_t row) const;

 private:
  struct Mean {
    std::vector<double> values;
    double rows = 0;
  };
  std::map<std::string, Mean, std::less<>> outputs_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_RUNNING_MEANS_H_
