// CombinedAnswer: an application's answer, made of those of its models.
#ifndef FOLIOT_ANSWER_SELECTION_COMBINED_ANSWER_H_
#define FOLIOT_ANSWER_SELECTION_COMBINED_ANSWER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/inference/answer.h"
#include "answer/inference/prediction.h"
#include "answer/inference/statistics.h"
#include "answer/selection/call_timer.h"
#include "foundation/core/model_info.h"

namespace foliot {

// Leaves in time or is refused (kLate).
class CombinedAnswer final : public Answer {
 public:
  struct Parts {
    std::shared_ptr<const ModelInfo> info;
    std::string id;
    TimePoint arrival;
    TimePoint deadline;
    uint32_t rows = 1;
    Prediction prediction;
    std::vector<uint32_t> outputs;  // those asked for, as positions in the prediction
    Quality quality = Quality::kComplete;
    std::vector<AnswerParameter> parameters;
    // Of the models: what they occupy is free when this has left.
    std::vector<std::unique_ptr<Answer>> answers;
    std::shared_ptr<ModelCounters> counters;
    CallTimer* timer = nullptr;  // by which it was due; null: by none
    TimePoint due;
  };
  // `now` and the timer outlive it.
  CombinedAnswer(Parts parts, const std::function<TimePoint()>& now) : parts_(std::move(parts)), now_(now) {}

  bool served() const override { return !late_; }
  CallError error() const override {
    CallError error =
        call_error(Refusal::kLate, parts_.info->name, "", parts_.arrival, settled_, settled_, {.at = parts_.deadline});
    error.request = number();
    return error;
  }
  std::string_view name() const override { return parts_.info->name; }
  std::string_view version() const override { return parts_.info->version; }
  std::string_view id() const override { return parts_.id; }
  Quality quality() const override { return parts_.quality; }
  // That of the first model that answered.
  RequestId number() const override {
    for (const auto& answer : parts_.answers) {
      if (answer != nullptr && answer->number() != RequestId()) return answer->number();
    }
    return RequestId();
  }
  std::vector<AnswerParameter> parameters() const override { return parts_.parameters; }
  uint32_t output_count() const override { return static_cast<uint32_t>(parts_.outputs.size()); }
  const TensorSpec& output_spec(uint32_t i) const override { return output(i).spec; }
  Shape output_shape(uint32_t i) const override { return output(i).shape; }
  bool output_is_padded(uint32_t i) const override { return output(i).padded; }
  std::string take_output(uint32_t i) override { return output(i).bytes; }
  void settle() override;

 private:
  const Prediction::Output& output(uint32_t i) const { return parts_.prediction.outputs[parts_.outputs[i]]; }

  const Parts parts_;
  const std::function<TimePoint()>& now_;
  TimePoint settled_;
  bool late_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_COMBINED_ANSWER_H_
