// RefusedAnswer: the answer of a layer to a call that began and has no outputs.
#ifndef FOLIOT_ANSWER_INFERENCE_REFUSED_ANSWER_H_
#define FOLIOT_ANSWER_INFERENCE_REFUSED_ANSWER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "answer/inference/answer.h"
#include "foundation/base/check.h"
#include "foundation/core/model_info.h"
#include "foundation/core/version_table.h"

namespace foliot {

class RefusedAnswer final : public Answer {
 public:
  RefusedAnswer(std::shared_ptr<const ModelInfo> model, std::string_view id, CallError error)
      : model_(std::move(model)), id_(id), error_(std::move(error)) {}

  bool served() const override { return false; }
  CallError error() const override { return error_; }
  std::string_view name() const override { return client_name(model_->name); }
  std::string_view version() const override { return model_->version; }
  std::string_view id() const override { return id_; }
  Quality quality() const override { FOLIOT_CHECK(false); }
  RequestId number() const override { return error_.request; }
  uint32_t output_count() const override { return 0; }
  const TensorSpec& output_spec(uint32_t) const override { FOLIOT_CHECK(false); }
  Shape output_shape(uint32_t) const override { FOLIOT_CHECK(false); }
  bool output_is_padded(uint32_t) const override { FOLIOT_CHECK(false); }
  std::string take_output(uint32_t) override { FOLIOT_CHECK(false); }
  void settle() override {}

 private:
  const std::shared_ptr<const ModelInfo> model_;
  const std::string id_;
  const CallError error_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_REFUSED_ANSWER_H_
