#include "answer/selection/policy_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "answer/selection/context_states.h"
#include "foundation/config/toml_file.h"

namespace foliot {
namespace {

constexpr double kNormal95 = 1.959964;
// What errors call it.
constexpr const char* kPolicyFile = "the policy";

class MeanAndDeviation {
 public:
  void add(double value) {
    ++count_;
    const double before = value - mean_;
    mean_ += before / static_cast<double>(count_);
    squares_ += before * (value - mean_);
  }
  MeanEstimate estimate() const {
    if (count_ < 2) return {mean_, 0};
    const double variance = squares_ / static_cast<double>(count_ - 1);
    return {mean_, kNormal95 * std::sqrt(variance / static_cast<double>(count_))};
  }

 private:
  uint64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // of distances from the mean
};

// A call as the policies see it: its models by their positions in the replay's list.
struct ReplayedCall {
  SelectionPolicy::Available available;
  Selection logged;
  std::vector<std::optional<double>> losses;
};

ReplayedCall call_of(const FeedbackRecord& record, const std::vector<std::string>& models) {
  ReplayedCall call{.available = std::vector<bool>(models.size()),
                    .logged = {{}, std::vector<double>(models.size())},
                    .losses = std::vector<std::optional<double>>(models.size())};
  for (uint32_t i = 0; i < models.size(); ++i) {
    const auto model = std::ranges::find(record.models, models[i], &FeedbackRecord::Model::name);
    if (model == record.models.end()) continue;
    call.available[i] = model->probability.has_value();
    call.logged.weights[i] = model->probability.value_or(0);
    if (model->asked) call.logged.models.push_back(i);
    call.losses[i] = model->loss;
  }
  call.logged.available = call.available;
  return call;
}

class Replay {
 public:
  Replay(const SelectionPolicy& policy, const std::vector<std::string>& models,
         std::span<const FeedbackRecord> feedback, const ReplayOptions& options)
      : policy_(policy),
        models_(models),
        feedback_(feedback),
        states_(policy.init(), options.contexts_max),
        random_(options.seed) {}

  Result<PolicyEstimate> run();

 private:
  // What happens to a call, in the order of time: it is answered, then its feedback comes.
  struct Event {
    TimePoint at;
    bool learns = false;
    uint32_t call = 0;
  };

  std::vector<Event> events() const;
  void choose(const FeedbackRecord& record);
  void learn(const FeedbackRecord& record);
  void count_impossible(const FeedbackRecord& record, uint32_t model);

  const SelectionPolicy& policy_;
  const std::vector<std::string>& models_;
  const std::span<const FeedbackRecord> feedback_;
  ContextStates states_;
  Random random_;
  MeanAndDeviation loss_, logged_, gain_, weight_;
  double weights_ = 0, squared_weights_ = 0;
  uint64_t calls_ = 0, left_out_ = 0;
  uint64_t impossible_ = 0;  // calls of which a model that the policy may ask was never asked
  std::string first_impossible_;
};

std::vector<Replay::Event> Replay::events() const {
  std::vector<Event> events;
  for (uint32_t call = 0; call < feedback_.size(); ++call) {
    events.push_back({feedback_[call].answered, false, call});
    events.push_back({feedback_[call].observed, true, call});
  }
  std::ranges::stable_sort(
      events, [](const Event& a, const Event& b) { return std::pair(a.at, a.learns) < std::pair(b.at, b.learns); });
  return events;
}

void Replay::count_impossible(const FeedbackRecord& record, uint32_t model) {
  if (impossible_++ > 0) return;
  first_impossible_ =
      fmt::format("'{}' in the call with feedback_id {} (policy {})", models_[model], record.id, record.policy);
}

void Replay::choose(const FeedbackRecord& record) {
  const ReplayedCall call = call_of(record, models_);
  if (std::ranges::count(call.available, true) == 0 || call.logged.models.empty()) {
    ++left_out_;
    return;
  }
  const Selection judged = policy_.select(states_.find(record.context), call.available, random_);
  const bool all_asked = call.logged.models.size() > 1;
  double judged_loss = 0, weight = 0, logged_loss = 0;
  for (uint32_t model = 0; model < models_.size(); ++model) {
    const bool asked = std::ranges::binary_search(call.logged.models, model);
    if (judged.weights[model] > 0 && (all_asked ? !asked : call.logged.weights[model] <= 0)) {
      return count_impossible(record, model);
    }
    if (!asked) continue;
    // A model that was asked in any case counts as often as the judged policy asks it.
    const double factor = all_asked ? judged.weights[model] : judged.weights[model] / call.logged.weights[model];
    if (!call.losses[model] && (factor > 0 || !all_asked)) {
      ++left_out_;
      return;
    }
    weight += factor;
    judged_loss += factor * call.losses[model].value_or(0);
    logged_loss += (all_asked ? call.logged.weights[model] : 1) * call.losses[model].value_or(0);
  }
  ++calls_;
  loss_.add(judged_loss);
  logged_.add(logged_loss);
  gain_.add(logged_loss - judged_loss);
  weight_.add(weight);
  weights_ += weight;
  squared_weights_ += weight * weight;
}

void Replay::learn(const FeedbackRecord& record) {
  const ReplayedCall call = call_of(record, models_);
  if (call.logged.models.empty()) return;
  // Losses in a log are numbers.
  if (!record.context.empty()) policy_.observe(states_.make(record.context), call.logged, call.losses).ok();
  policy_.observe(states_.own(), call.logged, call.losses).ok();
}

Result<PolicyEstimate> Replay::run() {
  for (const Event& event : events()) {
    const FeedbackRecord& record = feedback_[event.call];
    event.learns ? learn(record) : choose(record);
  }
  if (impossible_ > 0) {
    return Status::invalid_argument(fmt::format(
        "in {} of {} calls the policy may ask a model that the log's policy asked with probability 0, first "
        "{}: nothing is known of what it would have lost. Log with a policy that asks each model with some "
        "probability: exp3 with a floor, epsilon_greedy, or split with weights above 0",
        impossible_, feedback_.size(), first_impossible_));
  }
  if (calls_ == 0) {
    return Status::invalid_argument(
        fmt::format("none of {} calls with feedback has the losses that are needed", feedback_.size()));
  }
  return PolicyEstimate{.calls = calls_,
                        .left_out = left_out_,
                        .loss = loss_.estimate(),
                        .logged = logged_.estimate(),
                        .gain = gain_.estimate(),
                        .weight = weight_.estimate(),
                        .effective_calls = squared_weights_ > 0 ? weights_ * weights_ / squared_weights_ : 0};
}

}  // namespace

std::vector<std::string> models_of(std::span<const FeedbackRecord> feedback) {
  std::vector<std::string> models;
  for (const FeedbackRecord& record : feedback) {
    for (const FeedbackRecord::Model& model : record.models) {
      if (std::ranges::count(models, model.name) == 0) models.push_back(model.name);
    }
  }
  return models;
}

Result<NamedPolicy> read_judged_policy(const std::string& text, const std::vector<std::string>& models) {
  const std::string line =
      text.starts_with('{') ? fmt::format("policy = {}", text) : fmt::format("policy = '{}'", text);
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, parse_toml(line, kPolicyFile));
  FOLIOT_ASSIGN_OR_RETURN(NamedPolicy named, read_policy(table, kPolicyFile, models));
  if (!named.asks_several) return named;
  return Status::invalid_argument(
      fmt::format("policy '{}' combines the answers of several models, and a log has losses of single ones: it cannot "
                  "be judged",
                  named.name));
}

Result<PolicyEstimate> replay_policy(const SelectionPolicy& policy, std::span<const FeedbackRecord> feedback,
                                     const ReplayOptions& options) {
  if (feedback.empty()) return Status::invalid_argument("there is no feedback to replay");
  const std::vector<std::string> models = models_of(feedback);
  return Replay(policy, models, feedback, options).run();
}

Result<PolicyEstimate> replay_policy(const std::string& policy, std::span<const FeedbackRecord> feedback,
                                     const ReplayOptions& options) {
  if (feedback.empty()) return Status::invalid_argument("there is no feedback to replay");
  FOLIOT_ASSIGN_OR_RETURN(const NamedPolicy named, read_judged_policy(policy, models_of(feedback)));
  return replay_policy(*named.policy, feedback, options);
}

}  // namespace foliot
