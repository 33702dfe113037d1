// Operator: one step of a plan, in the small vocabulary that every device must
// speak. The compiler turns the many operators of ONNX into these few.
//
// Semantics are ONNX's (current opset) on dense row-major logical shapes, unless
// said otherwise. Attribute names and types stand beside each kind; unless
// marked optional they are always present.
//
// Narrow types: some kinds take operands and give results in bfloat16, uint8 or
// int8 (their lines say which) and still compute in float32, post-operations
// included. Only the result is rounded: to the nearest bfloat16, or to the
// nearest integer within the type, of two equally near to the even one.
#ifndef FOLIOT_ENGINE_DEVICE_OPERATOR_H_
#define FOLIOT_ENGINE_DEVICE_OPERATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/device/function.h"

namespace foliot {

enum class OperatorKind : uint16_t {
  // X[N,C,d..], W[M,C/groups,k..], optional bias[M] -> Y. Spatial rank 1 to 3.
  // strides, dilations: ints; pads: ints, all begins then all ends; groups: int.
  // Post-operations allowed. Narrow: X, W bfloat16 with Y bfloat16 or float32, or X
  // uint8, W int8 with Y uint8 or float32: products summed up exactly where
  // Device::supports_products(kUint8), else in float32. The bias
  // stays float32; operands of post-operations may be of any of these types.
  kConvolution,
  // As kConvolution with W[C,M/groups,k..].
  kConvolutionTranspose,
  // A[..,M,K] x B[..,K,N], optional bias[N] -> Y[..,M,N], batch dimensions
  // broadcast as in numpy; both have rank >= 2. float32, or int32, int64 and
  // float64 without bias and with alpha 1. transpose_a, transpose_b: int 0/1
  // (of the last two dimensions); alpha: float, scales the product before the
  // bias. Post-operations allowed. Narrow: as kConvolution.
  kMatMul,
  // X[..,K], codes (uint8), scales (float32), optional zero points (uint8; left out: the middle), optional bias[N] ->
  // Y[..,N] (float32): X times weights of few bits, plus the bias. The form of codes, scales and zero points:
  // engine/device/block_weights.h. bits: int, 4 or 8; block: int. rounds: int 0/1; with 1 each block of each row of X
  // is first rounded to multiples of its largest magnitude / 127 (to the even one of two), and the products of the
  // integers are summed up exactly. A value that is not finite makes its row NaN then.
  kBlockMatMul,
  // X[N,C,d..] -> Y. kernel, strides, dilations, pads (begins then ends, may be
  // asymmetric; the compiler has resolved auto_pad and ceil_mode into them): ints.
  // Narrow: bfloat16 or uint8.
  kMaxPool,
  // As kMaxPool, and count_include_pad: int 0/1. Padding that ceil_mode added
  // beyond `pads` never counts: it stands in `extra_pads`: ints, one per spatial
  // dimension, at the end only. Narrow: bfloat16.
  kAveragePool,
  // X -> Y. function: one of one operand, kRelu to kLinear (engine/device/function.h); alpha,
  // beta: float, where has_parameters(function). Narrow: bfloat16.
  kUnary,
  // A, B -> Y with numpy broadcasting. function: one of two operands, kAdd to kShiftRight;
  // from kBitAnd on of integers.
  // Post-operations allowed for float32. Narrow: bfloat16, or A uint8 with B float32
  // and Y uint8 or float32.
  kBinary,
  // X, scale[C], shift[C] -> Y = X * scale[c] + shift[c], C being dimension 1:
  // an inference BatchNormalization that could not be folded. Post-operations allowed.
  kAffine,
  // X -> Y over one dimension. axis: int >= 0; log: int 0/1 (LogSoftmax).
  kSoftmax,
  // Q[..,M,D], K[..,N,D], V[..,N,E], optional mask -> Y[..,M,E]: softmax(alpha * Q x K^T + mask) x V,
  // the softmax over the last dimension, without the scores [..,M,N] being stored. Leading dimensions
  // and the mask, whose last dimension is N, broadcast as in numpy. alpha: float; transpose_k: int 0/1,
  // K is [..,D,N] then. float32. Queries that see nothing, where the mask is -infinity: not a number.
  kAttention,
  // X, scale, bias (optional together) -> Y, normalised over dimensions [axis, rank). axis: int >= 0; epsilon: float.
  // scale and bias: of the shape of these dimensions, or broadcast to X, and the same along its last dimension.
  kLayerNorm,
  // X[N,C,d..] -> Y across channels. size: int; alpha, beta, bias: float.
  kLrn,
  // X -> Y. function: a reduction, kMean to kLogSumExp, kMin or kMax; axes: ints >= 0,
  // ascending; keep_dims: int 0/1.
  kReduce,
  // X.. -> Y. axis: int >= 0.
  kConcat,
  // X -> Y. starts, steps: ints, one per dimension, normalised: starts in
  // [0, extent], steps may be negative; the extent of Y says how many.
  kSlice,
  // X -> Y. permutation: ints.
  kTranspose,
  // X -> Y, same elements in the same order under another shape. Their bits may
  // be read as another type of the same size.
  kReshape,
  // X, indices (int32 or int64; negative ones count from the end) -> Y.
  // axis: int >= 0.
  kGather,
  // X, indices (int64; negative ones count from the end) -> Y of their shape,
  // each element from the same place but for dimension `axis`: int >= 0.
  kGatherElements,
  // X, indices (int64), updates (of one shape) -> Y: X with each update put to,
  // or combined with what is at, the update's place but for dimension `axis`:
  // int >= 0. reduction: kNone, kAdd, kMul, kMin or kMax. In the order of the updates.
  kScatterElements,
  // X -> Y of another type.
  kCast,
  // X (float32) -> Y (uint8 or int8): X / scale + zero_point, rounded to the nearest
  // integer within the type. scale: float > 0; zero_point: int.
  kQuantize,
  // X (uint8 or int8) -> Y (float32): (X - zero_point) * scale. scale: float > 0;
  // zero_point: int. Or, of constants in the compiler alone, `scales`: floats,
  // `zero_points`: ints, one for each entry of dimension `axis`: int >= 0. Or, of matrices in the compiler alone,
  // X, scales, optional zero points, one for each block of `block` entries along dimension `axis`: ints.
  kDequantize,
  // condition (bool), A, B -> Y with numpy broadcasting.
  kWhere,
  // X -> Y, broadcast to Y's shape.
  kExpand,
  // X -> Y. pads: ints, begins then ends, >= 0; mode: "constant" "edge"
  // "reflect"; value: float (constant only).
  kPad,
  // X -> Y (int64). axis: int >= 0; keep_dims, select_last: int 0/1;
  // largest: int 1 (ArgMax) or 0 (ArgMin).
  kArgReduce,
  // X -> Y (int64): where the largest (or smallest) elements are, best first and
  // of equals the first; the extent of Y says how many. axis: int >= 0;
  // largest: int 0/1.
  kTopK,
  // X -> Y: what precedes along a dimension, added or multiplied. function: kSum or kProd;
  // axis: int >= 0; exclusive (without the element itself), reverse (from the end): int 0/1.
  kCumulative,
  // X[length, batch, directions * gates * hidden], R[directions, gates, hidden, hidden],
  // optional bias[directions, hidden] ("gru"), optional H[directions, batch, hidden],
  // optional C[directions, batch, hidden] ("lstm") -> Y[length, directions, batch, hidden],
  // with one step more for "lstm". A recurrent network with ONNX's own activations: X is
  // what its inputs times their weights give, with every bias but that of a GRU's last
  // gate, which the reset gate scales with its product (linear_before_reset); H and C
  // are the first states, zero if left out. Y are the states after each step, at the
  // place of the step's input; the last step of "lstm" is what the cells hold in the end.
  // cell: "lstm" (gates input, output, forget, cell) "gru" (update, reset, hidden) "rnn";
  // direction: "forward" "reverse" "bidirectional" (the second goes backwards).
  kRecurrent,
  // X[rows, features] (float32 or float64), nodes[count, 16] (uint8: TreeNode each,
  // engine/device/tree_node.h), values[leaves, width], optional targets[leaves] (int32) ->
  // Y[rows, all targets]: each row goes through every tree, from the roots, which are the
  // first nodes, to a leaf, whose `width` values are combined with Y from column
  // targets[leaf] on, or from the first. In float32, in the order of the trees. function:
  // kSum, kMin or kMax; trees: int, how many; depth: int, the most steps to a leaf. Nodes
  // come from outside: an index that is out of range reads as the last one, and no path is
  // longer than `depth`.
  kTreeEnsemble,
  // X[rows, k * (k - 1) / 2], the probability of class i against class j, for all i < j in
  // order -> Y[rows, k], the probability of each class, by the second method of Wu, Lin and
  // Weng (2004) as libsvm stops it: at an error of 0.005 / k, after 100 rounds at most. float32.
  kPairCoupling,
  // X -> Y[N,C,d'..]. mode: "nearest" "linear"; coordinates: "half_pixel"
  // "align_corners" "asymmetric" "pytorch_half_pixel"; nearest: "round_prefer_floor"
  // "floor" "ceil" "round_prefer_ceil"; scales: floats, one per dimension of X,
  // which times the extent need not be whole: it is then cut for Y only.
  kResize,
  // X[rows, bytes] (uint8): a JPEG in each row, followed by zeros -> Y[rows, height, width, 3]
  // (uint8): RGB as engine/device/cpu/jpeg_decoder.h defines it. fit: "stretch" "crop" "pad"; pad_value:
  // int, 0 to 255; pixels_max: int, of a JPEG. A row that cannot be decoded fails
  // (DeviceRun::failed_rows), and its result is zero.
  kDecodeJpeg,
  // X[rows, bytes] (uint8): UTF-8 text in each row, table[n] (int32: engine/device/word_piece.h) -> Y[rows, length]
  // (int64):
  // the ids of its words. All padding where the table is damaged.
  kWordPiece,
  // X[N,b*C,H,W] -> Y[N,C,H*rows,W*columns], b being rows * columns: entry (i, j) of each block of Y's image
  // comes from channel (i * columns + j) * C + c of X. rows, columns: int >= 1. float32.
  kDepthToSpace,
  // X -> Y, same logical tensor in another layout. Made by a device's lowering
  // only, never by the compiler.
  kReorder,
};

std::string_view to_string(OperatorKind kind);  // "Convolution"
std::optional<OperatorKind> parse_operator_kind(std::string_view name);

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, Function>;

// Name -> value. Reading one that is absent or of another type is a bug of the
// compiler, and CHECKed.
class Attributes {
 public:
  void set(std::string name, Attribute value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  Function function(std::string_view name = "function") const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  const std::map<std::string, Attribute, std::less<>>& values() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, Attribute, std::less<>> values_;
};

// Work on an operator's result before it is stored, in order. The compiler fuses
// these; a device that cannot do one in place lowers it to an operator of its own.
struct PostOperation {
  enum class Kind : uint8_t {
    kActivation,  // y = function(y): `function`, `alpha`, `beta` as in kUnary
    kBinary,      // y = y <function> operator input `input`, broadcast to y
  };
  Kind kind = Kind::kActivation;
  Function function = Function::kRelu;  // of one operand, or kAdd, kSub, kMul, kDiv, kMin or kMax
  double alpha = 0;
  double beta = 0;
  uint32_t input = 0;  // kBinary: position in the operator's inputs
  bool operator==(const PostOperation&) const = default;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_OPERATOR_H_
