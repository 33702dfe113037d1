#include "engine/device/cpu/families.h"

#include <algorithm>
#include <array>

namespace foliot {
namespace {

constexpr std::array kFamilies{
    Family{OperatorKind::kConvolution, lower_convolution, describe_convolution, nullptr, ""},
    Family{OperatorKind::kConvolutionTranspose, lower_convolution, describe_convolution, nullptr, ""},
    Family{OperatorKind::kMatMul, lower_matmul, describe_matmul, make_matmul, "foliot:matmul"},
    Family{OperatorKind::kBlockMatMul, lower_block_matmul, nullptr, make_block_matmul, "foliot:block_matmul"},
    Family{OperatorKind::kMaxPool, lower_pooling, describe_pooling, make_pooling, "foliot:pooling"},
    Family{OperatorKind::kAveragePool, lower_pooling, describe_pooling, make_pooling, "foliot:pooling"},
    Family{OperatorKind::kUnary, lower_unary, describe_unary, make_unary, "foliot:unary"},
    Family{OperatorKind::kBinary, lower_binary, describe_binary, make_binary, "foliot:binary"},
    Family{OperatorKind::kAffine, lower_affine, nullptr, nullptr, ""},
    Family{OperatorKind::kSoftmax, lower_softmax, describe_softmax, make_softmax, "foliot:softmax"},
    Family{OperatorKind::kAttention, lower_attention, nullptr, make_attention, "foliot:attention"},
    Family{OperatorKind::kLayerNorm, lower_layer_norm, describe_layer_norm, make_layer_norm, "foliot:channel_norm"},
    Family{OperatorKind::kLrn, lower_lrn, describe_lrn, make_lrn, "foliot:lrn"},
    Family{OperatorKind::kReduce, lower_reduce, nullptr, make_reduce, "foliot:reduce"},
    Family{OperatorKind::kConcat, lower_concat, nullptr, make_concat, "foliot:concat"},
    Family{OperatorKind::kSlice, lower_walking, nullptr, make_strided_copy, "foliot:strided_copy"},
    Family{OperatorKind::kTranspose, lower_transpose, describe_transpose, make_strided_copy, "foliot:strided_copy"},
    Family{OperatorKind::kReshape, lower_reshape, nullptr, make_copy, "foliot:copy"},
    Family{OperatorKind::kGather, lower_gather, nullptr, make_gather, "foliot:gather"},
    Family{OperatorKind::kGatherElements, lower_gather_elements, nullptr, make_gather_elements,
           "foliot:gather_elements"},
    Family{OperatorKind::kScatterElements, lower_scatter_elements, nullptr, make_scatter_elements,
           "foliot:scatter_elements"},
    Family{OperatorKind::kTopK, lower_top_k, nullptr, make_top_k, "foliot:top_k"},
    Family{OperatorKind::kCumulative, lower_cumulative, nullptr, make_cumulative, "foliot:cumulative"},
    Family{OperatorKind::kRecurrent, lower_recurrent, nullptr, make_recurrent, "foliot:recurrent"},
    Family{OperatorKind::kTreeEnsemble, lower_tree_ensemble, nullptr, make_tree_ensemble, "foliot:tree_ensemble"},
    Family{OperatorKind::kPairCoupling, lower_pair_coupling, nullptr, make_pair_coupling, "foliot:pair_coupling"},
    Family{OperatorKind::kDecodeJpeg, lower_decode_jpeg, nullptr, make_decode_jpeg, "foliot:decode_jpeg"},
    Family{OperatorKind::kWordPiece, lower_word_piece, nullptr, make_word_piece, "foliot:word_piece"},
    Family{OperatorKind::kCast, lower_cast, describe_reorder, make_cast, "foliot:cast"},
    Family{OperatorKind::kQuantize, lower_quantization, describe_quantization, make_quantization, "foliot:quantize"},
    Family{OperatorKind::kDequantize, lower_quantization, describe_quantization, nullptr, ""},
    Family{OperatorKind::kWhere, lower_where, nullptr, make_where, "foliot:where"},
    Family{OperatorKind::kExpand, lower_walking, nullptr, make_strided_copy, "foliot:strided_copy"},
    Family{OperatorKind::kPad, lower_pad, nullptr, make_pad, "foliot:pad"},
    Family{OperatorKind::kArgReduce, lower_arg_reduce, nullptr, make_arg_reduce, "foliot:arg_reduce"},
    Family{OperatorKind::kResize, lower_resize, nullptr, make_resize, "foliot:resize"},
    Family{OperatorKind::kDepthToSpace, lower_depth_to_space, nullptr, make_depth_to_space, "foliot:depth_to_space"},
    Family{OperatorKind::kReorder, nullptr, describe_reorder, make_copy, "foliot:copy"},
};

}  // namespace

const Family* find_family(OperatorKind kind) {
  const auto found =
      std::find_if(kFamilies.begin(), kFamilies.end(), [kind](const Family& family) { return family.kind == kind; });
  return found == kFamilies.end() ? nullptr : &*found;
}

}  // namespace foliot
