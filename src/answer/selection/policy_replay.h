// Policy replay: what another policy would have lost on the calls of a log, by inverse propensity
// (Horvitz and Thompson, 1952; Clipper leaves it open how policies are compared).
//
// A log has what the models that were asked lost, and with which probability they were asked.
// With p_i that of model i and q_i that of the judged policy, the loss L_i counts q_i / p_i times:
// the mean of that over the calls is an unbiased estimate of the judged policy's mean loss, if
// each model that it may ask was asked with some probability.
//
// The judged policy learns from the feedback of the log, as it came: it is judged by what it would
// choose with that knowledge. A call has its choice by the state at its answer.
//
// Not judged: policies that ask several models, since the log has no loss of a combination.
// Feedback that is missing is not made up for: the estimate is of calls that had feedback.
//
// Pure functions; one seed gives the same estimate.
#ifndef FOLIOT_ANSWER_SELECTION_POLICY_REPLAY_H_
#define FOLIOT_ANSWER_SELECTION_POLICY_REPLAY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "answer/selection/application.h"
#include "answer/selection/selection_policy.h"
#include "foundation/base/status.h"
#include "foundation/core/feedback_record.h"

namespace foliot {

// A mean over calls, and half the width of its 95 % confidence interval (normal approximation).
struct MeanEstimate {
  double mean = 0;
  double half_width = 0;
};

struct PolicyEstimate {
  uint64_t calls = 0;     // that had feedback, and count
  uint64_t left_out = 0;  // of those that had: without the loss of a model that is needed
  MeanEstimate loss;      // of the judged policy
  MeanEstimate logged;    // of what was chosen
  MeanEstimate gain;      // logged - loss, call by call
  // Of the weights q / p of the models that were asked: their mean, which is near 1 if the
  // log's probabilities are right, and how many calls of weight 1 they are worth.
  MeanEstimate weight;
  double effective_calls = 0;
};

struct ReplayOptions {
  uint64_t contexts_max = 10'000;  // with a state of their own
  uint64_t seed = 1;
};

// The models of an application's feedback, in the order in which they appear.
std::vector<std::string> models_of(std::span<const FeedbackRecord> feedback);

// `text`: a name, or its name and options as application.toml has them: "exp3",
// "{ name = 'split', weights = { a = 9, b = 1 } }"; a file in Python by its path. Errors: kInvalidArgument naming what
// is wrong with it; or that it combines answers, so that it cannot be judged.
Result<NamedPolicy> read_judged_policy(const std::string& text, const std::vector<std::string>& models);

// `policy` of models_of(feedback), which are of one application. Errors: kInvalidArgument naming the model that it may
// ask and that was asked with probability 0, in how many calls, and the first; or if no call counts.
Result<PolicyEstimate> replay_policy(const SelectionPolicy& policy, std::span<const FeedbackRecord> feedback,
                                     const ReplayOptions& options = {});
// The same of one that is compiled in. Errors: also read_judged_policy()'s.
Result<PolicyEstimate> replay_policy(const std::string& policy, std::span<const FeedbackRecord> feedback,
                                     const ReplayOptions& options = {});

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_POLICY_REPLAY_H_
