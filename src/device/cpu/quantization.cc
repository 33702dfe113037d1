// Quantize and Dequantize: oneDNN's reorder, with a scale and a zero point. The
// result keeps the operand's layout.
#include <fmt/format.h>

#include <cmath>

#include "device/cpu/families.h"

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

}  // namespace

Result<bool> lower_quantization(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_types(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  Operator operation = GraphLowering::begin(node);
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

}  // namespace foliot
