#include "engine/device/operator.h"

#include <array>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr std::array<std::pair<OperatorKind, std::string_view>, 38> kNames{{
    {OperatorKind::kConvolution, "Convolution"},
    {OperatorKind::kConvolutionTranspose, "ConvolutionTranspose"},
    {OperatorKind::kMatMul, "MatMul"},
    {OperatorKind::kBlockMatMul, "BlockMatMul"},
    {OperatorKind::kMaxPool, "MaxPool"},
    {OperatorKind::kAveragePool, "AveragePool"},
    {OperatorKind::kUnary, "Unary"},
    {OperatorKind::kBinary, "Binary"},
    {OperatorKind::kAffine, "Affine"},
    {OperatorKind::kSoftmax, "Softmax"},
    {OperatorKind::kAttention, "Attention"},
    {OperatorKind::kLayerNorm, "LayerNorm"},
    {OperatorKind::kLrn, "Lrn"},
    {OperatorKind::kReduce, "Reduce"},
    {OperatorKind::kConcat, "Concat"},
    {OperatorKind::kSlice, "Slice"},
    {OperatorKind::kTranspose, "Transpose"},
    {OperatorKind::kReshape, "Reshape"},
    {OperatorKind::kGather, "Gather"},
    {OperatorKind::kGatherElements, "GatherElements"},
    {OperatorKind::kScatterElements, "ScatterElements"},
    {OperatorKind::kCast, "Cast"},
    {OperatorKind::kQuantize, "Quantize"},
    {OperatorKind::kDequantize, "Dequantize"},
    {OperatorKind::kWhere, "Where"},
    {OperatorKind::kExpand, "Expand"},
    {OperatorKind::kPad, "Pad"},
    {OperatorKind::kArgReduce, "ArgReduce"},
    {OperatorKind::kTopK, "TopK"},
    {OperatorKind::kCumulative, "Cumulative"},
    {OperatorKind::kRecurrent, "Recurrent"},
    {OperatorKind::kTreeEnsemble, "TreeEnsemble"},
    {OperatorKind::kPairCoupling, "PairCoupling"},
    {OperatorKind::kDecodeJpeg, "DecodeJpeg"},
    {OperatorKind::kWordPiece, "WordPiece"},
    {OperatorKind::kResize, "Resize"},
    {OperatorKind::kDepthToSpace, "DepthToSpace"},
    {OperatorKind::kReorder, "Reorder"},
}};

template <typename T>
const T& get(const std::map<std::string, Attribute, std::less<>>& values, std::string_view name) {
  const auto found = values.find(name);
  FOLIOT_CHECK(found != values.end());
  const T* value = std::get_if<T>(&found->second);
  FOLIOT_CHECK(value != nullptr);
  return *value;
}

}  // namespace

std::string_view to_string(OperatorKind kind) {
  for (const auto& [candidate, name] : kNames)
    if (candidate == kind) return name;
  FOLIOT_CHECK(false);
}

std::optional<OperatorKind> parse_operator_kind(std::string_view name) {
  for (const auto& [kind, candidate] : kNames)
    if (candidate == name) return kind;
  return std::nullopt;
}

int64_t Attributes::integer(std::string_view name) const { return get<int64_t>(values_, name); }
double Attributes::real(std::string_view name) const { return get<double>(values_, name); }
const std::string& Attributes::text(std::string_view name) const { return get<std::string>(values_, name); }
Function Attributes::function(std::string_view name) const { return get<Function>(values_, name); }
const std::vector<int64_t>& Attributes::integers(std::string_view name) const {
  return get<std::vector<int64_t>>(values_, name);
}
const std::vector<double>& Attributes::reals(std::string_view name) const {
  return get<std::vector<double>>(values_, name);
}

}  // namespace foliot
