// Answer: the one answer to a call: outputs, or the reason why there are none.
//
// An answer is written in two steps. Its receiver first encodes what it needs, which may
// take long, and then, with nothing left to do but to send it, calls settle(): the last
// check of the deadline, after which a late answer is an error. What the call occupies
// (its rows in flight, its tenant's share) is free when the answer is destroyed: keep it
// until it was sent.
//
// Threading: the thread of its caller, or one that it hands the answer to for a while; settle() on its own.
#ifndef FOLIOT_ANSWER_INFERENCE_ANSWER_H_
#define FOLIOT_ANSWER_INFERENCE_ANSWER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "answer/inference/call_error.h"
#include "foundation/core/ids.h"
#include "foundation/core/tensor.h"

namespace foliot {

// What the outputs were computed from.
enum class Quality : uint8_t {
  kComplete,  // everything that was asked
  kPartial,   // some of it: the rest was not ready in time
  kDefault,   // nothing: a value that was set for this case
};
// "complete", "partial", "default".
std::string_view to_string(Quality quality);

// A parameter of a response, in addition to those of its protocol.
struct AnswerParameter {
  std::string_view name;  // of static duration
  std::variant<bool, int64_t, double, std::string> value;
};
// The parameter `cached`, true: the prediction of another call with equal inputs.
inline constexpr std::string_view kCachedParameter = "cached";
// The parameter `variant` of a task's answer: the model that was chosen.
inline constexpr std::string_view kVariantParameter = "variant";

class Answer {
 public:
  virtual ~Answer() = default;

  // Whether it has outputs; settle() may change it to false.
  virtual bool served() const = 0;
  // REQUIRES: !served().
  virtual CallError error() const = 0;

  // The served name and version that answered, and the client's id for its call.
  virtual std::string_view name() const = 0;
  virtual std::string_view version() const = 0;
  virtual std::string_view id() const = 0;
  // REQUIRES: served().
  virtual Quality quality() const = 0;
  // The number under which a log shows it; 0: no log does.
  virtual RequestId number() const = 0;
  // What else the client is to know, such as that it is the prediction of another call.
  virtual std::vector<AnswerParameter> parameters() const { return {}; }

  // The outputs that the client asked for, in its order. The specification's shape is one
  // row's; output_shape() has the batch dimension. REQUIRES: served().
  virtual uint32_t output_count() const = 0;
  virtual const TensorSpec& output_spec(uint32_t i) const = 0;
  virtual Shape output_shape(uint32_t i) const = 0;
  // Whether it is longer than its inputs make it, since these were padded and it is not
  // known how it follows from them.
  virtual bool output_is_padded(uint32_t i) const = 0;
  // Its bytes, little-endian and row-major; once per output.
  virtual std::string take_output(uint32_t i) = 0;

  // The answer leaves now. Once.
  virtual void settle() = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_ANSWER_H_
