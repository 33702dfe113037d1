// Recurrent networks: a whole sequence in one kernel, since a step is too short
// to be an operator of its own. Directions and rows of a batch do not depend on
// each other, so each thread takes its share through all steps without waiting
// for the others; only where there are too few of them, units are shared.
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/recurrent_steps.h"

namespace foliot {
namespace {

// Multiplications in one step of a row from which threads share its units.
constexpr int64_t kSharedStepWork = int64_t{1} << 19;

RecurrentCell cell_of(const Attributes& attributes) {
  const std::string& cell = attributes.text("cell");
  return cell == "lstm" ? RecurrentCell::kLstm : cell == "gru" ? RecurrentCell::kGru : RecurrentCell::kRnn;
}

// R[directions, gates, hidden, hidden] as RecurrentStep wants it.
Descriptor packed_weights(const Shape& shape) {
  const int64_t gates = shape[1], hidden = shape[2];
  const int64_t blocks = (hidden + kUnitBlock - 1) / kUnitBlock;
  const int64_t column = gates * kUnitBlock, block = hidden * column;
  Descriptor descriptor = dense_descriptor(DataType::kFloat32, shape);
  dnnl_memory_desc_t& data = descriptor.data;
  data.padded_dims[2] = blocks * kUnitBlock;
  dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  blocking.inner_nblks = 1;
  blocking.inner_blks[0] = kUnitBlock;
  blocking.inner_idxs[0] = 2;
  const int64_t strides[] = {blocks * block, kUnitBlock, block, column};
  std::ranges::copy(strides, blocking.strides);
  return descriptor;
}

class RecurrentKernel : public Kernel {
 public:
  explicit RecurrentKernel(const OperatorView& view)
      : cell_(cell_of(view.attributes())),
        reverse_(view.attributes().text("direction") == "reverse"),
        take_(find_recurrent_step(cell_)),
        input_(view.input_index(0)),
        weights_(view.input_index(1)),
        bias_(optional(view, 2)),
        first_states_(optional(view, 3)),
        first_memory_(optional(view, 4)),
        result_(view.output_index()) {
    const Shape& shape = view.input(1).shape;
    directions_ = shape[0];
    hidden_ = shape[2];
    length_ = view.input(0).shape[0];
    batch_ = view.input(0).shape[1];
    weights_stride_ = static_cast<int64_t>(view.input(1).bytes / sizeof(float)) / directions_;
    const int64_t threads = omp_get_max_threads();
    const int64_t work = gates_of(cell_) * hidden_ * hidden_;
    shares_units_ = threads > directions_ * batch_ && work >= kSharedStepWork;
    rows_ = std::clamp<int64_t>((directions_ * batch_ + threads - 1) / threads, 1, kRecurrentRowsMax);
    rows_ = std::min(rows_, batch_);
  }

  Status run(Addresses addresses) override {
    const int64_t pieces = (batch_ + rows_ - 1) / rows_;
    const auto take_piece = [&](int64_t piece) {
      take_all(addresses, piece / pieces, piece % pieces * rows_, std::min(rows_, batch_ - piece % pieces * rows_));
    };
    if (shares_units_) {
      for (int64_t piece = 0; piece < directions_ * pieces; ++piece) take_piece(piece);
    } else {
      const int64_t work = length_ * directions_ * batch_ * gates_of(cell_) * hidden_ * hidden_;
      parallel_for(directions_ * pieces, work, take_piece);
    }
    return Status();
  }

 private:
  static TensorIndex optional(const OperatorView& view, size_t i) {
    return view.has_input(i) ? view.input_index(i) : kNoTensor;
  }

  static const float* floats(Addresses addresses, TensorIndex tensor, int64_t offset) {
    return tensor == kNoTensor ? nullptr : reinterpret_cast<const float*>(addresses[tensor]) + offset;
  }

  // All steps of `rows` rows from `row` on, in one direction.
  void take_all(Addresses addresses, int64_t direction, int64_t row, int64_t rows) const {
    const int64_t width = gates_of(cell_) * hidden_;
    const int64_t state = (direction * batch_ + row) * hidden_, states = directions_ * batch_ * hidden_;
    float* result = reinterpret_cast<float*>(addresses[result_]) + state;
    RecurrentStep step{.hidden = hidden_,
                       .rows = rows,
                       .weights = floats(addresses, weights_, direction * weights_stride_),
                       .bias = floats(addresses, bias_, direction * hidden_),
                       .input_stride = directions_ * width,
                       .previous = floats(addresses, first_states_, state)};
    if (cell_ == RecurrentCell::kLstm) {
      step.memory = result + length_ * states;
      const size_t bytes = static_cast<size_t>(rows * hidden_) * sizeof(float);
      if (const float* first = floats(addresses, first_memory_, state); first != nullptr)
        std::memcpy(step.memory, first, bytes);
      else
        std::memset(step.memory, 0, bytes);
    }
    const bool backwards = reverse_ || direction == 1;
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t t = backwards ? length_ - 1 - i : i;
      step.input = floats(addresses, input_, ((t * batch_ + row) * directions_ + direction) * width);
      step.next = result + t * states;
      take(step);
      step.previous = step.next;
    }
  }

  void take(const RecurrentStep& step) const {
    if (!shares_units_) return take_(step, 0, hidden_);
    const int64_t threads = omp_get_max_threads(), blocks = (hidden_ + kUnitBlock - 1) / kUnitBlock;
    const int64_t share = (blocks + threads - 1) / threads * kUnitBlock;
    parallel_for(threads, kSharedStepWork,
                 [&](int64_t i) { take_(step, std::min(hidden_, i * share), std::min(hidden_, (i + 1) * share)); });
  }

  const RecurrentCell cell_;
  const bool reverse_;
  const TakeRecurrentStep take_;
  const TensorIndex input_, weights_, bias_, first_states_, first_memory_, result_;
  int64_t directions_, hidden_, length_, batch_;
  int64_t weights_stride_;  // from direction to direction, in floats
  int64_t rows_;            // taken together
  bool shares_units_;
};

}  // namespace

Result<bool> lower_recurrent(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  Operator operation = GraphLowering::begin(node, "foliot:recurrent");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueIndex input = node.inputs[i];
    operation.inputs.push_back(!GraphLowering::has(node, i) ? kNoTensor
                               : i == 1 ? lowering.in_layout(input, packed_weights(lowering.shape(input)))
                                        : lowering.dense(input));
  }
  operation.outputs = {lowering.dense_result(node.outputs[0])};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<std::unique_ptr<Kernel>> make_recurrent(const OperatorView& view) {
  if (view.input_descriptor(1) != packed_weights(view.input(1).shape))
    return Status::invalid_argument("its weights are packed for another kernel");
  return std::unique_ptr<Kernel>(std::make_unique<RecurrentKernel>(view));
}

}  // namespace foliot
