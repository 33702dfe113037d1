// InferenceCall: one client's call in flight. Its n rows become n Requests; the
// call is done when the last of them is completed.
//
// Knows nothing of HTTP or gRPC: a Query is what either decodes a call into.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_INFERENCE_CALL_H_
#define FOLIOT_ANSWER_MODEL_CALLS_INFERENCE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/query.h"
#include "answer/model_calls/bounded_tensor.h"
#include "answer/model_calls/stage_tensors.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "foundation/core/request.h"
#include "foundation/core/task_info.h"

namespace foliot {

// What one call may ask for. A model's largest batch is always allowed.
struct CallLimits {
  uint32_t rows_max = 8192;
  uint64_t output_bytes_max = uint64_t{64} << 20;  // of one output, all rows together
};

// Threading: made, settled and read by one I/O thread; in between, inputs and outputs
// are touched by executors and complete() is called by the controller's loop.
class InferenceCall {
 public:
  // Checks the query against the model, chooses the bucket and pads. Where no
  // padding is needed the inputs stay where they are: without a deadline their bytes must
  // outlive the call, with one they are copied if the query has no owner of them. Errors: kInvalidArgument naming the
  // tensor, what was expected and what came.
  static Result<std::unique_ptr<InferenceCall>> make(std::shared_ptr<const ModelInfo> model, const Query& query,
                                                     const CallLimits& limits = {});

  const ModelInfo& model() const { return *model_; }
  const std::shared_ptr<const ModelInfo>& shared_model() const { return model_; }
  const std::string& id() const { return id_; }
  uint32_t rows() const { return rows_; }
  BucketId bucket() const { return bucket_; }
  TimePoint arrival() const { return arrival_; }
  TimePoint deadline() const { return deadline_.at; }
  // From its arrival to its deadline; Duration::max() without one.
  Duration time() const { return deadline_.at - arrival_; }
  const AppliedDeadline& applied_deadline() const { return deadline_; }
  bool offline() const { return offline_; }
  bool optional() const { return optional_; }
  // Of a task.
  const TaskRequirements& requirements() const { return requirements_; }
  uint64_t body_bytes() const { return body_bytes_; }

  // One row of an input, and where one row of an output belongs.
  std::span<const std::byte> input(uint32_t row, uint32_t index) const;
  std::span<std::byte> output(uint32_t row, uint32_t index);

  // Of a pipeline: an input of one visit for one row, by its slot, where one of its outputs belongs,
  // and that these are all there: what is read of them.
  std::span<const std::byte> input_of(uint32_t slot, uint32_t row, uint32_t index);
  std::span<std::byte> output_of(uint32_t slot, uint32_t row, uint32_t index);
  VisitReading finish(uint32_t slot, uint32_t row);
  // PayloadStore::finish_empty().
  void finish_empty(uint32_t stage, uint32_t row);

  // True when this was the last row. The first refusal refuses the whole call.
  bool complete(const Completion& completion);
  // Of a call that was served, makes what the client gets before it is taken: of the outputs of
  // a pipeline's stages, and of rows that vary in size. REQUIRES: done.
  void collect();
  // Why the model's own code failed on one of its rows: the first reason counts. Any thread.
  void fail(std::string_view reason);
  // Empty: none is known. REQUIRES: done.
  const std::string& failure() const { return failure_; }
  // Its answer leaves now: rows that were cancelled since another was refused have its
  // reason; rows that were served, and had to be by an earlier instant,
  // become refusals (kLate). REQUIRES: done.
  void settle(TimePoint now);
  bool served() const { return refused() == completions_.end(); }
  // The refusal; REQUIRES: !served().
  const Completion& refusal() const { return *refused(); }
  // Of a task: the one that was chosen for the call. nullptr: of anything else. REQUIRES: served().
  const TaskVariant* variant() const;
  // The number under which a log shows the row that was refused first or, of a call that
  // was served, answered last; 0: no log does. REQUIRES: done.
  RequestId number() const { return served() ? completions_.back().id : refusal().id; }
  // One for each row that is completed, the last one at the end: its times are the call's.
  std::span<const Completion> completions() const { return completions_; }

  // The outputs that the client asked for, in its order; if it named none, default_output_count().
  uint32_t requested_count() const { return static_cast<uint32_t>(requested_.size()); }
  const TensorSpec& requested_spec(uint32_t i) const { return model_->outputs[requested_[i]]; }
  // With the batch dimension, and without padding.
  Shape requested_shape(uint32_t i) const;
  // Whether it has a variable dimension that could not be cut back to what the inputs were
  // before they were padded, or rows of different extents.
  bool requested_is_padded(uint32_t i) const;
  // The bytes, without padding; once per output. REQUIRES: done and served.
  std::string take_requested(uint32_t i);

 private:
  // One input or output: `rows` rows of `row_bytes` each, in the bucket's shape.
  struct Input {
    std::span<const std::byte> bytes;
    size_t row_bytes = 0;
    std::string padded;  // what `bytes` shows, if padding or a copy was needed, or rows vary in size
  };
  struct Output {
    // Made by what writes to it first: making the 8 MiB of an answer takes milliseconds, for which the thread that
    // reads requests has no time, and one that is refused needs none.
    std::string bytes;
    std::once_flag is_made;
    size_t row_bytes = 0;
    // Of rows that vary in size: what the client gets of `bytes`.
    std::optional<ClientTensor> collected{};
  };
  using Dimensions = std::vector<std::pair<std::string_view, int64_t>>;

  InferenceCall(std::shared_ptr<const ModelInfo> model, const Query& query, const CallLimits& limits);
  Result<std::vector<const TensorView*>> match_inputs(const std::vector<TensorView>& sent) const;
  Status read_shapes(std::span<const TensorView* const> inputs);
  Status read_shape(const TensorSpec& spec, const TensorView& input);
  Status read_rows(const TensorSpec& spec, int64_t rows);
  Status read_dimension(const TensorSpec& spec, std::string_view dimension, int64_t extent);
  // Whether it is the first dimension of an input of a model without batching.
  bool is_leading(std::string_view dimension) const;
  Status choose_bucket();
  Status take_inputs(std::span<const TensorView* const> inputs);
  Status take_bounded_input(const TensorSpec& spec, const TensorView& sent, Input& input);
  // What the rows of a tensor take together, if the call has more of them than a batch.
  Status check_room(std::string_view kind, const TensorSpec& spec, uint64_t row_bytes) const;
  Status choose_outputs(const Query& query);
  // An output with its bytes. Any thread.
  Output& made_output(uint32_t index);
  Status take_stages();
  void collect_stages();
  // All of it. REQUIRES: a pipeline.
  std::span<const std::byte> tensor_of(const TensorSource& source, uint32_t row);
  // The extents of one row, as the client sees it and as the bucket has it.
  Shape client_shape(const TensorSpec& spec) const;
  // What the client's variable dimensions make of one with this name; nullopt: not known.
  std::optional<int64_t> client_extent(std::string_view name) const;
  bool is_padded() const;
  Shape bucket_shape(const TensorSpec& spec) const;
  std::vector<Completion>::const_iterator refused() const;

  std::shared_ptr<const ModelInfo> model_;
  std::string id_;
  TimePoint arrival_;
  AppliedDeadline deadline_;
  bool offline_;
  bool optional_;
  TaskRequirements requirements_;
  uint64_t body_bytes_;
  std::shared_ptr<const void> inputs_owner_;  // null: the inputs are copied, or their caller keeps them
  const CallLimits limits_;
  uint32_t rows_ = 0;  // 0 until the first input is read
  BucketId bucket_;
  std::vector<std::string> converted_;  // inputs whose numbers came as another type (adapted_inputs.h)
  Dimensions dimensions_;               // what the client's variable dimensions are
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<uint32_t> requested_;       // positions in outputs_
  std::unique_ptr<StageTensors> stages_;  // of a pipeline

  std::vector<Completion> completions_;
  Mutex failure_mutex_;
  std::string failure_ GUARDED_BY(failure_mutex_);  // until the call is done
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_INFERENCE_CALL_H_
