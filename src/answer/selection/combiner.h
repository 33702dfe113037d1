// Combiner: makes one prediction of those of several models, and how far it can be trusted
// (Clipper, section 3.5.2): labels by weighted vote, numbers by weighted mean.
//
// A missing answer: its numbers are the model's running mean, which keep its weight; in votes
// it has none. The confidence is the share of the models asked that agree with the result, and
// one whose answer is missing does not agree.
//
// Pure functions.
#ifndef FOLIOT_ANSWER_SELECTION_COMBINER_H_
#define FOLIOT_ANSWER_SELECTION_COMBINER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "answer/inference/prediction.h"
#include "answer/selection/running_means.h"
#include "foundation/base/status.h"

namespace foliot {

// When the answers of two models agree, and how far one is from the truth.
struct AgreementRule {
  // Whose rows are compared. Empty: the first output.
  std::string output;
  // Its last dimension has one number for each class: rows agree if the largest stands at the
  // same place.
  bool classes = false;
  // Otherwise rows of numbers agree if no two at one place differ by more; rows of labels if
  // all are equal.
  double tolerance = 0.1;
  // Of numbers: a difference that is a loss of 1.
  double loss_scale = 1;
};

// One model that was asked.
struct MemberAnswer {
  double weight = 0;
  const Prediction* prediction = nullptr;  // null: missing
  const RunningMeans* means = nullptr;     // null: unknown
};

struct Combination {
  Prediction prediction;
  std::vector<double> confidence;  // of each row
};

// Whether answers of this output can be combined: not those of 16-bit floats.
bool can_combine(const TensorSpec& output);

// Predictions with other outputs or shapes than the first are as if missing. Of one model, its
// prediction. `batching`: the first dimension counts the rows; otherwise there is one row.
// REQUIRES: at least one has a prediction, all types can be combined if there are several.
Combination combine(const AgreementRule& rule, bool batching, std::span<const MemberAnswer> answers);

uint64_t row_count(const Prediction& prediction, bool batching);
// The output that the rule compares; null: the prediction does not have it.
const Prediction::Output* compared_output(const AgreementRule& rule, const Prediction& prediction);

// What a prediction of `output` lost against the truth, in [0, 1]: the share of labels, or of
// rows with `classes`, that differ; or the mean difference of numbers, each at most loss_scale.
// `label`: as many values as the output has, or with `classes` one for each row. Errors:
// kInvalidArgument for another number of values, or NaN.
Result<double> loss_of(const AgreementRule& rule, const Prediction::Output& output, std::span<const double> label);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_COMBINER_H_
