// Element-wise operators, and the functions that other shaders end with.
#include <fmt/format.h>

#include <optional>

#include "engine/device/vulkan/operator_dispatches.h"
#include "engine/device/vulkan/walk.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr size_t kPointwiseRankMax = 6;
// Ids of constants and first words, as in shaders/common.glsl and pointwise.comp.
constexpr size_t kFirst = 6, kCombine = 9, kCombineAt = 10, kSecond = 11;
constexpr size_t kForm = 16, kFunction = 17, kAlpha = 18, kBeta = 19, kPointwiseRank = 20, kTypes = 21;
constexpr size_t kStrides = 12;
constexpr uint32_t kOfOne = 0, kOfTwo = 1, kChoice = 2, kConversion = 3;
constexpr uint32_t kAtSame = 0, kAtChannel = 1, kAtScalar = 2;

uint32_t code(Function function) { return static_cast<uint32_t>(function); }

// The number of the type in pointwise.comp.
std::optional<uint32_t> type_code(DataType type) {
  switch (type) {
    case DataType::kFloat32: return 0;
    case DataType::kInt32: return 1;
    case DataType::kInt64: return 2;
    case DataType::kUint8: return 3;
    case DataType::kInt8: return 4;
    case DataType::kBool: return 5;
    default: return std::nullopt;
  }
}

void set_activation(DispatchBuilder& builder, size_t at, const PostOperation& post) {
  builder.constant(at, code(post.function));
  builder.real(at + 1, post.alpha);
  builder.real(at + 2, post.beta);
}

bool is_activation(const PostOperation& post) { return post.kind == PostOperation::Kind::kActivation; }

// Where a broadcast operand of the epilogue is read; nullopt: by strides only.
std::optional<uint32_t> combined_at(const Shape& operand, const Shape& result, size_t channel) {
  if (element_count(operand) == 1) return kAtScalar;
  if (!broadcasts_to(operand, result)) return std::nullopt;
  if (element_count(operand) == element_count(result)) return kAtSame;
  const size_t skip = result.size() - operand.size();
  for (size_t d = 0; d < operand.size(); ++d)
    if (operand[d] != 1 && d + skip != channel) return std::nullopt;
  return kAtChannel;
}

// One run of the shader: what it computes, of which operands.
struct Pointwise {
  uint32_t form = kOfOne;
  Function function = Function::kRelu;
  double alpha = 0, beta = 0;
  std::vector<Tensor> operands{};
};

// As many of the post-operations from `first` on as fit are done with it; `first` is then behind them.
Result<Dispatch> pointwise(const Pointwise& run, const OperatorTensors& of, const Tensor& result, size_t& first) {
  DispatchBuilder builder(Shader::kPointwise);
  builder.constant(kForm, run.form);
  builder.constant(kFunction, code(run.function));
  builder.real(kAlpha, run.alpha);
  builder.real(kBeta, run.beta);
  std::vector<std::vector<int64_t>> strides(3, std::vector<int64_t>(result.shape.size(), 0));
  for (size_t i = 0; i < run.operands.size(); ++i) {
    const Tensor& operand = run.operands[i];
    const Shape& shape = operand.shape;
    // What has as many elements is the same in the same order, whatever its shape.
    strides[i] = element_count(shape) == element_count(result.shape) ? row_major_strides(result.shape)
                                                                     : broadcast_strides(shape, result.shape);
    const std::optional<uint32_t> type = type_code(operand.type);
    if (!type) return Status::unimplemented(fmt::format("it computes in {}", to_string(operand.type)));
    builder.constant(kTypes + i, *type);
    builder.read(i, operand);
  }
  const std::vector<PostOperation>& posts = of.operation.post_operations;
  if (result.type == DataType::kFloat32 && run.form <= kOfTwo) {
    if (first < posts.size() && is_activation(posts[first])) set_activation(builder, kFirst, posts[first++]);
    if (first < posts.size() && !is_activation(posts[first])) {
      const PostOperation& post = posts[first++];
      const Tensor& other = of.input(post.input);
      if (other.type != DataType::kFloat32 || !broadcasts_to(other.shape, result.shape)) {
        return Status::unimplemented("a post-operation of another type than FP32");
      }
      builder.constant(kCombine, code(post.function));
      builder.read(3, other);
      strides[2] = broadcast_strides(other.shape, result.shape);
    }
    if (first < posts.size() && is_activation(posts[first])) set_activation(builder, kSecond, posts[first++]);
  }
  const std::optional<uint32_t> type = type_code(result.type);
  if (!type) return Status::unimplemented(fmt::format("it gives {}", to_string(result.type)));
  builder.constant(kTypes + 3, *type);
  builder.write(result);
  FOLIOT_ASSIGN_OR_RETURN(const Walk walk, merged_walk(result.shape, strides, kPointwiseRankMax));
  builder.constant(kPointwiseRank, static_cast<uint32_t>(walk.extents.size()));
  const uint64_t count = element_count(result.shape);
  builder.words(5, {count});
  builder.words(6, walk.extents);
  for (size_t i = 0; i < 3; ++i) builder.words(kStrides + i * kPointwiseRankMax, walk.strides[i]);
  return builder.over(count);
}

bool computes_whole(const Pointwise& run) {
  const Function function = run.function;
  if (run.form == kOfOne) {
    return function == Function::kRelu || function == Function::kNeg || function == Function::kAbs ||
           function == Function::kSign || function == Function::kNot;
  }
  return (function >= Function::kAdd && function <= Function::kFmod && function != Function::kPow);
}

// Drivers compute these far from what is right on ordinary numbers: remainders by a quotient that is rounded, and
// hyperbolic functions by squares and exponentials that overflow.
bool is_inexact(Function function) {
  return function == Function::kMod || function == Function::kFmod || function == Function::kSinh ||
         function == Function::kCosh || function == Function::kAsinh || function == Function::kAcosh;
}

bool is_comparison(Function function) { return function >= Function::kEqual && function <= Function::kGreaterOrEqual; }
bool is_logic(Function function) { return function >= Function::kAnd && function <= Function::kXor; }

// Whether the function is one of these types.
Status check_function(const Pointwise& run, DataType result) {
  const DataType type = run.operands[0].type;
  const bool of_one = run.function <= Function::kLinear;
  if (of_one != (run.form == kOfOne) || run.function > Function::kPrelu) {
    return Status::unimplemented(fmt::format("'{}' is no function of its operands", to_string(run.function)));
  }
  for (const Tensor& operand : run.operands)
    if (operand.type != type) return Status::unimplemented("its operands are of several types");
  const bool floating = type == DataType::kFloat32;
  const bool known = floating ? run.function != Function::kNot && !is_logic(run.function) && !is_inexact(run.function)
                              : computes_whole(run);
  const bool boolean = is_comparison(run.function) || is_logic(run.function) || run.function == Function::kNot;
  if (!known || (boolean ? result != DataType::kBool : result != type)) {
    return Status::unimplemented(
        fmt::format("'{}' of {} giving {}", to_string(run.function), to_string(type), to_string(result)));
  }
  return {};
}

}  // namespace

size_t fuse_epilogue(const OperatorTensors& of, size_t channel, DispatchBuilder& builder) {
  const std::vector<PostOperation>& posts = of.operation.post_operations;
  size_t done = 0;
  if (done < posts.size() && is_activation(posts[done])) set_activation(builder, kFirst, posts[done++]);
  if (done < posts.size() && !is_activation(posts[done])) {
    const Tensor& other = of.input(posts[done].input);
    const std::optional<uint32_t> at = combined_at(other.shape, of.output().shape, channel);
    if (!at || other.type != DataType::kFloat32) return done;
    builder.constant(kCombine, code(posts[done++].function));
    builder.constant(kCombineAt, *at);
    builder.read(3, other);
  }
  if (done < posts.size() && is_activation(posts[done])) set_activation(builder, kSecond, posts[done++]);
  return done;
}

Status append_post_operations(const OperatorTensors& of, size_t first, std::vector<Dispatch>& dispatches) {
  const std::vector<PostOperation>& posts = of.operation.post_operations;
  while (first < posts.size()) {
    const PostOperation& post = posts[first++];
    Pointwise run{.form = is_activation(post) ? kOfOne : kOfTwo,
                  .function = post.function,
                  .alpha = post.alpha,
                  .beta = post.beta,
                  .operands = {of.output()}};
    if (!is_activation(post)) {
      run.operands.push_back(of.input(post.input));
      if (!broadcasts_to(run.operands[1].shape, of.output().shape)) {
        return Status::invalid_argument("the operand of a post-operation does not broadcast to the result");
      }
    }
    FOLIOT_RETURN_IF_ERROR(check_function(run, of.output().type));
    FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, pointwise(run, of, of.output(), first));
    dispatches.push_back(std::move(dispatch));
  }
  return {};
}

Result<Dispatch> sum_of(const Tensor& a, const Tensor& b, const Tensor& y) {
  const Operator none{.kind = OperatorKind::kBinary,
                      .name = {},
                      .inputs = {},
                      .outputs = {},
                      .attributes = {},
                      .post_operations = {},
                      .kernel = {}};
  size_t first = 0;
  return pointwise({.form = kOfTwo, .function = Function::kAdd, .operands = {a, b}}, {none, {}}, y, first);
}

Result<std::vector<Dispatch>> pointwise_dispatches(const OperatorTensors& of) {
  Pointwise run;
  const OperatorKind kind = of.operation.kind;
  run.operands.push_back(of.input(0));
  if (kind == OperatorKind::kUnary || kind == OperatorKind::kBinary) {
    run.form = kind == OperatorKind::kUnary ? kOfOne : kOfTwo;
    run.function = of.attributes().function();
    if (run.form == kOfTwo) run.operands.push_back(of.input(1));
    if (run.form == kOfOne && has_parameters(run.function)) {
      run.alpha = of.attributes().has("alpha") ? of.attributes().real("alpha") : 0;
      run.beta = of.attributes().has("beta") ? of.attributes().real("beta") : 0;
    }
    FOLIOT_RETURN_IF_ERROR(check_function(run, of.output().type));
  } else if (kind == OperatorKind::kWhere) {
    run.form = kChoice;
    for (const size_t i : {size_t{1}, size_t{2}}) run.operands.push_back(of.input(i));
    if (of.input(0).type != DataType::kBool || of.input(1).type != of.output().type ||
        of.input(2).type != of.output().type) {
      return Status::unimplemented("a choice between different types");
    }
  } else {
    run.form = kConversion;
  }
  std::vector<Dispatch> dispatches;
  size_t first = 0;
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, pointwise(run, of, of.output(), first));
  dispatches.push_back(std::move(dispatch));
  FOLIOT_RETURN_IF_ERROR(append_post_operations(of, first, dispatches));
  return dispatches;
}

}  // namespace foliot
