// PredictionAnswer and ComputedAnswer: answers with the outputs of a prediction, to those for
// whom it was not computed, and to the caller for whom it was.
#ifndef FOLIOT_ANSWER_INFERENCE_PREDICTION_ANSWER_H_
#define FOLIOT_ANSWER_INFERENCE_PREDICTION_ANSWER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/inference/answer.h"
#include "answer/inference/prediction.h"
#include "answer/inference/statistics.h"
#include "foundation/core/model_info.h"
#include "foundation/core/version_table.h"

namespace foliot {

// Leaves in time or is refused (kLate).
class PredictionAnswer final : public Answer {
 public:
  // `now` outlives it.
  PredictionAnswer(std::shared_ptr<const ModelInfo> model, std::string_view id, TimePoint arrival, TimePoint deadline,
                   std::shared_ptr<const Prediction> prediction, std::shared_ptr<ModelCounters> counters,
                   const std::function<TimePoint()>& now)
      : model_(std::move(model)),
        id_(id),
        arrival_(arrival),
        deadline_(deadline),
        prediction_(std::move(prediction)),
        counters_(std::move(counters)),
        now_(now) {}

  bool served() const override { return !late_; }
  CallError error() const override {
    return call_error(Refusal::kLate, model_->name, "", arrival_, settled_, settled_, {.at = deadline_});
  }
  std::string_view name() const override { return client_name(model_->name); }
  std::string_view version() const override { return model_->version; }
  std::string_view id() const override { return id_; }
  Quality quality() const override { return Quality::kComplete; }
  RequestId number() const override { return RequestId(); }
  std::vector<AnswerParameter> parameters() const override { return {{kCachedParameter, true}}; }
  uint32_t output_count() const override { return static_cast<uint32_t>(prediction_->outputs.size()); }
  const TensorSpec& output_spec(uint32_t i) const override { return prediction_->outputs[i].spec; }
  Shape output_shape(uint32_t i) const override { return prediction_->outputs[i].shape; }
  bool output_is_padded(uint32_t i) const override { return prediction_->outputs[i].padded; }
  std::string take_output(uint32_t i) override { return prediction_->outputs[i].bytes; }
  void settle() override {
    settled_ = now_();
    late_ = settled_ > deadline_;
    if (late_) {
      counters_->count_failed(settled_ - arrival_);
    } else {
      counters_->count_cached(settled_ - arrival_);
    }
  }

 private:
  const std::shared_ptr<const ModelInfo> model_;
  const std::string id_;
  const TimePoint arrival_;
  const TimePoint deadline_;
  const std::shared_ptr<const Prediction> prediction_;
  const std::shared_ptr<ModelCounters> counters_;
  const std::function<TimePoint()>& now_;
  TimePoint settled_;
  bool late_ = false;
};

// The answer of the layer below, whose outputs were taken for the prediction.
class ComputedAnswer final : public Answer {
 public:
  ComputedAnswer(std::unique_ptr<Answer> answer, std::shared_ptr<const Prediction> prediction)
      : answer_(std::move(answer)), prediction_(std::move(prediction)) {}

  bool served() const override { return answer_->served(); }
  CallError error() const override { return answer_->error(); }
  std::string_view name() const override { return answer_->name(); }
  std::string_view version() const override { return answer_->version(); }
  std::string_view id() const override { return answer_->id(); }
  Quality quality() const override { return answer_->quality(); }
  RequestId number() const override { return answer_->number(); }
  std::vector<AnswerParameter> parameters() const override { return answer_->parameters(); }
  uint32_t output_count() const override { return answer_->output_count(); }
  const TensorSpec& output_spec(uint32_t i) const override { return answer_->output_spec(i); }
  Shape output_shape(uint32_t i) const override { return answer_->output_shape(i); }
  bool output_is_padded(uint32_t i) const override { return answer_->output_is_padded(i); }
  std::string take_output(uint32_t i) override { return prediction_->outputs[i].bytes; }
  void settle() override { answer_->settle(); }

 private:
  const std::unique_ptr<Answer> answer_;
  const std::shared_ptr<const Prediction> prediction_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_PREDICTION_ANSWER_H_
