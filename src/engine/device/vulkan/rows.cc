// Operators that work on rows: reductions, softmax, normalisation.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/device/vulkan/operator_dispatches.h"

namespace foliot {
namespace {

// Ids of constants, as in shaders/rows.comp.
constexpr size_t kWork = 16, kRowFunction = 17, kWide = 18, kEpsilon = 19, kScaled = 20, kLast = 21;
constexpr uint32_t kReduction = 0, kSoftmax = 1, kLogSoftmax = 2, kNormalisation = 3, kBest = 4;
// Rows that are as long are worked on by a workgroup.
constexpr uint64_t kWideFrom = 256;

// X[outer, extent, inner], reduced over the one in the middle.
struct Rows {
  uint64_t outer = 1, extent = 1, inner = 1;
  uint64_t count() const { return outer * inner; }
};

Rows rows_along(const Shape& shape, size_t first, size_t last) {
  Rows rows;
  for (size_t d = 0; d < shape.size(); ++d) {
    uint64_t& of = d < first ? rows.outer : d < last ? rows.extent : rows.inner;
    of *= static_cast<uint64_t>(shape[d]);
  }
  return rows;
}

// nullopt: they are not neighbours.
std::optional<Rows> rows_over(const Shape& shape, const std::vector<int64_t>& axes) {
  Rows rows;
  int part = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const bool reduced = std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end();
    if (reduced && part == 2) return std::nullopt;
    if (reduced) part = 1;
    if (!reduced && part == 1) part = 2;
    uint64_t& of = part == 0 ? rows.outer : part == 1 ? rows.extent : rows.inner;
    of *= static_cast<uint64_t>(shape[d]);
  }
  return rows;
}

// `passes`: how often each element is looked at.
Result<Dispatch> over_rows(DispatchBuilder& builder, const Rows& rows, uint64_t passes, bool may_be_wide = true) {
  const bool wide = may_be_wide && rows.extent >= kWideFrom;
  const uint64_t rounds = passes * (wide ? rows.extent / kInvocationsPerGroup + 8 : rows.extent);
  if (rounds > kLoopRoundsMax) {
    return Status::unimplemented(fmt::format("rows of {} elements are too long", rows.extent));
  }
  builder.constant(kWide, wide);
  builder.words(5, {rows.count(), rows.extent, rows.inner});
  return wide ? builder.over_groups(rows.count()) : builder.over(rows.count());
}

// How scale and bias lie beside the rows [axis, rank) of X: `rows` of them, `entries` in each, for `shared` elements.
struct Parameters {
  uint64_t rows = 1, entries = 1, shared = 1;
};

std::optional<Parameters> parameters_of(const Shape& scale, const Shape& x, size_t axis) {
  Parameters result;
  Shape full = scale;
  full.insert(full.begin(), x.size() - std::min(x.size(), scale.size()), 1);
  size_t d = x.size();
  for (; d > axis && full[d - 1] == 1; --d) result.shared *= static_cast<uint64_t>(x[d - 1]);
  for (; d > axis; --d) {
    if (full[d - 1] != x[d - 1]) return std::nullopt;
    result.entries *= static_cast<uint64_t>(x[d - 1]);
  }
  for (; d > 0 && full[d - 1] == x[d - 1]; --d) result.rows *= static_cast<uint64_t>(x[d - 1]);
  for (; d > 0; --d)
    if (full[d - 1] != 1) return std::nullopt;
  return result;
}

bool is_reduction(Function function) {
  return function == Function::kMin || function == Function::kMax ||
         (function >= Function::kMean && function <= Function::kLogSumExp);
}

Result<Dispatch> normalisation(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const Shape& x = of.input(0).shape;
  const auto axis = static_cast<size_t>(of.attributes().integer("axis"));
  DispatchBuilder builder(Shader::kRows);
  builder.constant(kWork, kNormalisation);
  builder.real(kEpsilon, of.attributes().real("epsilon"));
  if (of.has(1)) {
    const std::optional<Parameters> parameters = parameters_of(of.input(1).shape, x, axis);
    if (!parameters) return Status::unimplemented("scale and bias vary along another dimension than the result");
    builder.constant(kScaled, 1);
    builder.words(8, {parameters->rows, parameters->entries, parameters->shared});
    builder.read(1, of.input(1));
    builder.read(2, of.input(2));
  }
  builder.read(0, of.input(0));
  builder.write(of.output());
  return over_rows(builder, rows_along(x, axis, x.size()), 3);
}

Result<Dispatch> reduction(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const Function function = of.attributes().function();
  if (!is_reduction(function)) {
    return Status::unimplemented(fmt::format("'{}' is no reduction", to_string(function)));
  }
  const std::optional<Rows> rows = rows_over(of.input(0).shape, of.attributes().integers("axes"));
  if (!rows) return Status::unimplemented("the dimensions that it reduces are not neighbours");
  DispatchBuilder builder(Shader::kRows);
  builder.constant(kWork, kReduction);
  builder.constant(kRowFunction, static_cast<uint32_t>(function));
  builder.read(0, of.input(0));
  builder.write(of.output());
  return over_rows(builder, *rows, function == Function::kLogSumExp ? 2 : 1);
}

Result<Dispatch> softmax(const Tensor& x, const Tensor& y, size_t axis, bool log) {
  DispatchBuilder builder(Shader::kRows);
  builder.constant(kWork, log ? kLogSoftmax : kSoftmax);
  builder.read(0, x);
  builder.write(y);
  return over_rows(builder, rows_along(x.shape, axis, axis + 1), 3);
}

Result<Dispatch> best(const OperatorTensors& of) {
  if (of.input(0).type != DataType::kFloat32 || of.output().type != DataType::kInt64) {
    return Status::unimplemented(fmt::format("the best of {}", to_string(of.input(0).type)));
  }
  const auto axis = static_cast<size_t>(of.attributes().integer("axis"));
  DispatchBuilder builder(Shader::kRows);
  builder.constant(kWork, kBest);
  const Function function = of.attributes().integer("largest") != 0 ? Function::kMax : Function::kMin;
  builder.constant(kRowFunction, static_cast<uint32_t>(function));
  builder.constant(kLast, of.attributes().integer("select_last") != 0);
  builder.read(0, of.input(0));
  builder.write(of.output());
  return over_rows(builder, rows_along(of.input(0).shape, axis, axis + 1), 1, false);
}

Result<Dispatch> row_dispatch(const OperatorTensors& of) {
  switch (of.operation.kind) {
    case OperatorKind::kLayerNorm: return normalisation(of);
    case OperatorKind::kReduce: return reduction(of);
    case OperatorKind::kArgReduce: return best(of);
    default: break;
  }
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  return softmax(of.input(0), of.output(), static_cast<size_t>(of.attributes().integer("axis")),
                 of.attributes().integer("log") != 0);
}

}  // namespace

Result<Dispatch> softmax_over_last(const Tensor& scores) {
  return softmax(scores, scores, scores.shape.size() - 1, false);
}

Result<std::vector<Dispatch>> row_dispatches(const OperatorTensors& of) {
  if (element_count(of.input(0).shape) == 0) return Status::unimplemented("rows without elements");
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, row_dispatch(of));
  std::vector<Dispatch> dispatches;
  dispatches.push_back(std::move(dispatch));
  FOLIOT_RETURN_IF_ERROR(append_post_operations(of, 0, dispatches));
  return dispatches;
}

}  // namespace foliot
