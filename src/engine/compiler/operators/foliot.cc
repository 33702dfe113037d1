// The domain foliot: what the built-in steps of pipelines need beyond ONNX (docs/STEPS.md).
#include "engine/compiler/operators/attribute_check.h"
#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/device/plan_check.h"
#include "engine/device/word_piece.h"

namespace foliot {
namespace {

// bytes[batch, bytes] (uint8) -> image[batch, height, width, 3] (uint8): OperatorKind::kDecodeJpeg,
// with its attributes.
Status decode_jpeg(NodeTranslation& node) {
  if (node.value(0).type != DataType::kUint8 || node.rank(0) != 2) {
    return invalid("its input has to be uint8[batch, bytes]");
  }
  const int64_t width = node.integer("width", 0), height = node.integer("height", 0);
  for (const auto& [name, value] : {std::pair("width", width), std::pair("height", height)}) {
    if (value < 1 || value > kImageExtentMax) {
      return invalid("attribute '{}' is {}; it must be 1 to {}", name, value, kImageExtentMax);
    }
  }
  const int64_t pixels_max = node.integer("pixels_max", int64_t{1} << 24);
  if (pixels_max < 1 || pixels_max > kImagePixelsMax) {
    return invalid("attribute 'pixels_max' is {}; it must be 1 to {}", pixels_max, kImagePixelsMax);
  }
  const std::string fit = node.text("fit", "stretch");
  if (fit != "stretch" && fit != "crop" && fit != "pad") {
    return invalid("attribute 'fit' is '{}'; it must be 'stretch', 'crop' or 'pad'", fit);
  }
  const int64_t pad_value = node.integer("pad_value", 0);
  if (pad_value < 0 || pad_value > 255) return invalid("attribute 'pad_value' is {}; it must be 0 to 255", pad_value);
  Attributes attributes;
  attributes.set("fit", fit);
  attributes.set("pad_value", pad_value);
  attributes.set("pixels_max", pixels_max);
  return node.finish(node.builder().emit(OperatorKind::kDecodeJpeg, {node.input(0)}, std::move(attributes),
                                         ValueType{DataType::kUint8, {node.shape(0)[0], height, width, 3}}));
}

// text[batch, bytes] (uint8), table (int32, a constant) -> ids[batch, length] (int64): OperatorKind::kWordPiece.
Status word_piece(NodeTranslation& node) {
  if (node.value(0).type != DataType::kUint8 || node.rank(0) != 2) {
    return invalid("its input has to be uint8[batch, bytes]");
  }
  const int64_t length = node.integer("length", 0);
  if (length < WordPieceTable::kLengthMin || length > WordPieceTable::kLengthMax) {
    return invalid("attribute 'length' is {}; it must be {} to {}", length, WordPieceTable::kLengthMin,
                   WordPieceTable::kLengthMax);
  }
  FOLIOT_ASSIGN_OR_RETURN(const Constant table, node.constant(1, "'table'"));
  const auto* numbers = reinterpret_cast<const int32_t*>(table.bytes->data());
  const bool is_table = table.type == DataType::kInt32 && table.shape.size() == 1 &&
                        WordPieceTable({numbers, table.bytes->size() / sizeof(int32_t)}).is_valid();
  if (!is_table) return invalid("its second input has to be a table of words (int32)");
  return node.finish(node.builder().emit(OperatorKind::kWordPiece, {node.input(0), node.input(1)}, Attributes(),
                                         ValueType{DataType::kInt64, {node.shape(0)[0], length}}));
}

constexpr OnnxOperator kFoliotOperators[] = {
    {"DecodeJpeg", 1, 1, decode_jpeg},
    {"WordPiece", 2, 2, word_piece},
};

}  // namespace

std::span<const OnnxOperator> foliot_operators() { return kFoliotOperators; }

}  // namespace foliot
