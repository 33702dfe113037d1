#include <fmt/format.h>

#include <limits>

#include "engine/program/metadata.h"

namespace foliot {
namespace {

// Far above anything real, far below where sums of sizes would overflow.
constexpr uint64_t kBlockBytesMax = uint64_t{1} << 46;
constexpr uint64_t kDirectAlignment = 4096;
constexpr size_t kNotesMax = 16, kNoteBytesMax = 1024;

template <typename... Arguments>
Status wrong(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Status::invalid_argument(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The bytes that a dense tensor takes; nullopt if the shape is negative or huge.
std::optional<uint64_t> dense_bytes(DataType type, const Shape& shape) {
  uint64_t bytes = size_of(type);
  for (int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) return std::nullopt;
  }
  if (bytes > kBlockBytesMax) return std::nullopt;
  return bytes;
}

Status check_spec(const TensorSpec& spec) {
  if (spec.shape.size() != spec.dimension_names.size()) {
    return wrong("'{}' has {} dimensions and {} names", spec.name, spec.shape.size(), spec.dimension_names.size());
  }
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    if (spec.shape[i] < -1) return wrong("'{}' has a negative extent", spec.name);
    if (spec.shape[i] == -1 && spec.dimension_names[i].empty()) {
      return wrong("'{}' has a variable dimension without a name", spec.name);
    }
  }
  return check_labels(spec.labels);
}

// The shape that a plan's input or output must have.
Result<Shape> planned_shape(const Program& program, const TensorSpec& spec, const Plan& plan) {
  Shape shape;
  if (program.batching) shape.push_back(plan.batch_size);
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    int64_t extent = spec.shape[i];
    if (extent == -1) {
      const auto& dimensions = program.buckets[plan.bucket].dimensions;
      const auto found = dimensions.find(spec.dimension_names[i]);
      if (found == dimensions.end()) return wrong("no bucket says what '{}' is", spec.dimension_names[i]);
      extent = found->second;
    }
    shape.push_back(extent);
  }
  return shape;
}

uint64_t block_bytes(const Program& program, const Plan& plan, Place place) {
  switch (place) {
    case Place::kWeights: return program.weights_bytes;
    case Place::kWorkspace: return plan.workspace_bytes;
    case Place::kInput: return plan.input_bytes;
    case Place::kOutput: return plan.output_bytes;
  }
  FOLIOT_CHECK(false);
}

Status check_tensor(const Program& program, const Plan& plan, const Tensor& tensor) {
  const auto dense = dense_bytes(tensor.type, tensor.shape);
  if (!dense) return wrong("tensor '{}' has an impossible shape", tensor.name);
  if (tensor.layout.empty() && tensor.bytes < *dense)
    return wrong("tensor '{}' is smaller than its shape", tensor.name);
  const uint64_t block = block_bytes(program, plan, tensor.place);
  if (tensor.bytes > block || tensor.offset > block - tensor.bytes) {
    return wrong("tensor '{}' lies outside its block", tensor.name);
  }
  if (tensor.alias_of == kNoTensor) {
    if (tensor.offset % kTensorAlignment != 0) return wrong("tensor '{}' is not aligned", tensor.name);
    return {};
  }
  if (tensor.alias_of >= plan.tensors.size()) return wrong("tensor '{}' aliases nothing", tensor.name);
  const Tensor& other = plan.tensors[tensor.alias_of];
  if (other.place != tensor.place || tensor.alias_offset > kBlockBytesMax ||
      other.offset + tensor.alias_offset != tensor.offset) {
    return wrong("tensor '{}' does not lie where its alias does", tensor.name);
  }
  return {};
}

// Following aliases from any tensor ends: no tensor is visited more often than
// there are tensors, and what is known to end is not followed again.
Status check_alias_cycles(const Plan& plan) {
  std::vector<uint32_t> visited_from(plan.tensors.size(), 0);
  for (uint32_t start = 0; start < plan.tensors.size(); ++start) {
    const uint32_t mark = start + 1;
    for (TensorIndex at = start; at != kNoTensor && visited_from[at] == 0; at = plan.tensors[at].alias_of) {
      visited_from[at] = mark;
      const TensorIndex next = plan.tensors[at].alias_of;
      if (next != kNoTensor && visited_from[next] == mark) {
        return wrong("tensor '{}' aliases itself", plan.tensors[start].name);
      }
    }
  }
  return {};
}

Status check_operator(const Plan& plan, const Operator& step) {
  const auto valid = [&](TensorIndex index) { return index == kNoTensor || index < plan.tensors.size(); };
  for (TensorIndex input : step.inputs) {
    if (!valid(input)) return wrong("operator '{}' reads a tensor that is not there", step.name);
  }
  for (TensorIndex output : step.outputs) {
    if (!valid(output)) return wrong("operator '{}' writes a tensor that is not there", step.name);
    if (output != kNoTensor && plan.tensors[output].place == Place::kWeights) {
      return wrong("operator '{}' writes into weights", step.name);
    }
  }
  if (!valid(step.scratchpad)) return wrong("operator '{}' has a scratchpad that is not there", step.name);
  if (step.scratchpad != kNoTensor && plan.tensors[step.scratchpad].place == Place::kWeights) {
    return wrong("operator '{}' has its scratchpad in weights", step.name);
  }
  for (const PostOperation& operation : step.post_operations) {
    if (operation.kind == PostOperation::Kind::kBinary &&
        (operation.input >= step.inputs.size() || step.inputs[operation.input] == kNoTensor)) {
      return wrong("operator '{}' has a post-operation on an input that is not there", step.name);
    }
  }
  return {};
}

Status check_ends(const Program& program, const Plan& plan, const std::vector<TensorIndex>& indices,
                  const std::vector<TensorSpec>& specs, Place place) {
  if (indices.size() != specs.size()) return wrong("the plan has {} ends for {} tensors", indices.size(), specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (indices[i] >= plan.tensors.size()) return wrong("'{}' has no tensor", specs[i].name);
    const Tensor& tensor = plan.tensors[indices[i]];
    FOLIOT_ASSIGN_OR_RETURN(const Shape shape, planned_shape(program, specs[i], plan));
    if (tensor.place != place || !tensor.layout.empty() || tensor.type != specs[i].type || tensor.shape != shape ||
        tensor.offset % kTensorAlignment != 0) {
      return wrong("the tensor of '{}' does not match it", specs[i].name);
    }
  }
  return {};
}

Status check_plan(const Program& program, const Plan& plan) {
  for (uint64_t bytes : {plan.workspace_bytes, plan.input_bytes, plan.output_bytes}) {
    if (bytes > kBlockBytesMax) return wrong("a block of {} bytes is too large", bytes);
  }
  if (plan.tensors.size() >= std::numeric_limits<int32_t>::max()) return wrong("too many tensors");
  for (const Tensor& tensor : plan.tensors) FOLIOT_RETURN_IF_ERROR(check_tensor(program, plan, tensor));
  FOLIOT_RETURN_IF_ERROR(check_alias_cycles(plan));
  for (const Operator& step : plan.operators) FOLIOT_RETURN_IF_ERROR(check_operator(plan, step));
  FOLIOT_RETURN_IF_ERROR(check_ends(program, plan, plan.inputs, program.inputs, Place::kInput));
  return check_ends(program, plan, plan.outputs, program.outputs, Place::kOutput);
}

Status check_sizes(const Program& program) {
  if (program.batch_sizes.empty() || program.batch_sizes.front() == 0) return wrong("there are no batch sizes");
  for (size_t i = 1; i < program.batch_sizes.size(); ++i) {
    if (program.batch_sizes[i] <= program.batch_sizes[i - 1]) return wrong("batch sizes are not ascending");
  }
  if (program.buckets.empty() || program.buckets.size() > std::numeric_limits<uint16_t>::max()) {
    return wrong("{} buckets are not possible", program.buckets.size());
  }
  for (const ProgramBucket& bucket : program.buckets) {
    if (bucket.seed_exec.size() != program.batch_sizes.size()) return wrong("a bucket lacks seed durations");
    for (Duration duration : bucket.seed_exec) {
      if (duration < Duration()) return wrong("a seed duration is negative");
    }
    for (const auto& [name, value] : bucket.dimensions) {
      if (value < 0) return wrong("bucket dimension '{}' is negative", name);
    }
  }
  if (program.seed_load < Duration()) return wrong("the seed duration of LOAD is negative");
  if (program.page_bytes == 0 || program.page_bytes % kDirectAlignment != 0)
    return wrong("the page size is impossible");
  if (program.weights_bytes > kBlockBytesMax || program.weights_bytes % kDirectAlignment != 0) {
    return wrong("{} bytes of weights are not possible", program.weights_bytes);
  }
  if (program.plans.size() != program.batch_sizes.size() * program.buckets.size()) {
    return wrong("{} plans for {} batch sizes and {} buckets", program.plans.size(), program.batch_sizes.size(),
                 program.buckets.size());
  }
  return {};
}

Status check_notes(const std::vector<std::string>& notes) {
  if (notes.size() > kNotesMax) return wrong("{} notes, more than {}", notes.size(), kNotesMax);
  for (const std::string& note : notes)
    if (note.size() > kNoteBytesMax) return wrong("a note of {} bytes, more than {}", note.size(), kNoteBytesMax);
  return {};
}

// Shares that ascend to 1, one for each operator of every plan.
Status check_operator_ends(const Program& program) {
  const std::vector<double>& ends = program.operator_ends;
  if (ends.empty()) return {};
  double before = 0;
  for (const double end : ends) {
    if (!(end >= before)) return wrong("an operator ends before the one before it");
    before = end;
  }
  if (before != 1) return wrong("the last operator does not end with the EXEC");
  for (const Plan& plan : program.plans) {
    if (plan.operators.size() != ends.size()) {
      return wrong("{} operator ends for a plan of {} operators", ends.size(), plan.operators.size());
    }
  }
  return {};
}

}  // namespace

Status check_program(const Program& program) {
  FOLIOT_RETURN_IF_ERROR(check_sizes(program));
  FOLIOT_RETURN_IF_ERROR(check_operator_ends(program));
  FOLIOT_RETURN_IF_ERROR(check_notes(program.notes));
  for (const TensorSpec& spec : program.inputs) FOLIOT_RETURN_IF_ERROR(check_spec(spec));
  for (const TensorSpec& spec : program.outputs) FOLIOT_RETURN_IF_ERROR(check_spec(spec));
  for (size_t i = 0; i < program.plans.size(); ++i) {
    const Plan& plan = program.plans[i];
    const size_t bucket = i / program.batch_sizes.size();
    if (plan.bucket != bucket || plan.batch_size != program.batch_sizes[i % program.batch_sizes.size()]) {
      return wrong("plan {} stands in another's place", i);
    }
    FOLIOT_RETURN_IF_ERROR(check_plan(program, plan));
  }
  return {};
}

}  // namespace foliot
