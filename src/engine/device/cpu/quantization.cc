// Quantize and Dequantize. The result keeps the operand's layout. Dequantize is oneDNN's reorder, with a scale and a
// zero point; as Quantize it would add the zero point before it rounds, which gives another code for a tie if the zero
// point is odd.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/parallel.h"

namespace foliot {
namespace {

dnnl::primitive_desc_base make_descriptor(OperatorKind kind, const Attributes& attributes, Descriptor from,
                                          Descriptor to, const dnnl::engine& engine) {
  flatten_rows(&from, &to);
  const bool narrows = kind == OperatorKind::kQuantize;
  const auto scale = static_cast<float>(attributes.real("scale"));
  const auto zero_point = static_cast<int32_t>(attributes.integer("zero_point"));
  dnnl::primitive_attr attributes_of_reorder = PrimitiveAttributes().make();
  attributes_of_reorder.set_output_scales(0, {narrows ? 1 / scale : scale});
  if (zero_point != 0) attributes_of_reorder.set_zero_points(narrows ? DNNL_ARG_DST : DNNL_ARG_SRC, 0, {zero_point});
  return dnnl::reorder::primitive_desc(engine, from, engine, to, attributes_of_reorder);
}

bool is_byte(DataType type) { return type == DataType::kUint8 || type == DataType::kInt8; }

Status require_types(const Node& node, const GraphLowering& lowering) {
  const Value& from = lowering.value(node.inputs[0]);
  const Value& to = lowering.value(node.outputs[0]);
  const bool narrows = node.kind == OperatorKind::kQuantize;
  const DataType wide = narrows ? from.type : to.type, narrow = narrows ? to.type : from.type;
  if (wide == DataType::kFloat32 && is_byte(narrow)) return Status();
  return Status::unimplemented(fmt::format("quantises between FP32 and bytes only, not from {} to {}",
                                           to_string(from.type), to_string(to.type)));
}

// T: uint8_t or int8_t. What is no number becomes the least code, as in onnxruntime.
template <typename T>
class QuantizeKernel : public Kernel {
 public:
  explicit QuantizeKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        count_(static_cast<int64_t>(view.output().bytes)),
        scale_(static_cast<float>(view.attributes().real("scale"))),
        zero_point_(static_cast<int32_t>(view.attributes().integer("zero_point"))),
        low_(static_cast<float>(std::numeric_limits<T>::min() - zero_point_)),
        high_(static_cast<float>(std::numeric_limits<T>::max() - zero_point_)) {}

  Status run(Addresses addresses) override {
    constexpr int64_t kPiece = 8192;
    const float* from = reinterpret_cast<const float*>(addresses[from_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    parallel_for((count_ + kPiece - 1) / kPiece, count_ * 8, [&](int64_t piece) {
      const int64_t begin = piece * kPiece;
      quantize(from + begin, to + begin, std::min(kPiece, count_ - begin));
    });
    return Status();
  }

 private:
  void quantize(const float* from, T* to, int64_t count) const {
    constexpr float kRounding = 12582912;  // 1.5 * 2^23: what is added to it is rounded to a whole number
    for (int64_t i = 0; i < count; ++i) {
      const float steps = from[i] / scale_;
      const float raised = steps > low_ ? steps : low_;
      const float within = raised < high_ ? raised : high_;
      to[i] = static_cast<T>(static_cast<int32_t>((within + kRounding) - kRounding) + zero_point_);
    }
  }

  TensorIndex from_, to_;
  int64_t count_;
  float scale_;
  int32_t zero_point_;
  float low_, high_;  // what the least and the greatest code stand for, in steps from the zero point
};

// Whether a layout has no padding, which would have to stay zero.
bool is_full(const Descriptor& layout, const Shape& shape, DataType type) {
  return layout.get_size() == byte_size(type, shape);
}

}  // namespace

Result<bool> lower_quantization(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_types(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const bool own = node.kind == OperatorKind::kQuantize &&
                   is_full(lowering.layout(source), lowering.shape(source), DataType::kFloat32);
  Operator operation = GraphLowering::begin(node, own ? "foliot:quantize" : "");
  operation.inputs = {lowering.present(source)};
  operation.outputs = {
      lowering.result(destination, with_type(lowering.layout(source), lowering.value(destination).type))};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_quantization(const OperatorView& view) {
  const double scale = view.attributes().real("scale");
  if (!std::isfinite(scale) || scale <= 0) return Status::invalid_argument("the scale must be above zero");
  PrimitiveRecipe recipe;
  recipe.descriptor = make_descriptor(view.operation().kind, view.attributes(), view.input_descriptor(0),
                                      view.output_descriptor(), view.engine());
  recipe.inputs = {{DNNL_ARG_FROM, view.input_index(0)}};
  recipe.outputs = {{DNNL_ARG_TO, view.output_index()}};
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_quantization(const OperatorView& view) {
  const double scale = view.attributes().real("scale");
  const int64_t zero_point = view.attributes().integer("zero_point");
  if (!std::isfinite(scale) || scale <= 0 || std::abs(zero_point) > 255)
    return Status::invalid_argument("the scale must be above zero, and the zero point a code");
  const DataType type = view.output().type;
  if (view.input(0).type != DataType::kFloat32 || !is_byte(type) || view.input(0).bytes != 4 * view.output().bytes)
    return Status::invalid_argument("the kernel quantises FP32 to bytes in one layout");
  if (type == DataType::kUint8) return std::unique_ptr<Kernel>(std::make_unique<QuantizeKernel<uint8_t>>(view));
  return std::unique_ptr<Kernel>(std::make_unique<QuantizeKernel<int8_t>>(view));
}

}  // namespace foliot
