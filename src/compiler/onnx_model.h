// OnnxModel: the content of an ONNX file, in plain structures, so that only the reader
// knows protobuf. Only its form has been checked: names, counts and shapes may still be
// wrong.
//
// Tensors hold numbers only. A list of class names, and an output that is one of them,
// stand as the names' positions, and a ZipMap before an output as an Identity.
#ifndef FOLIOT_COMPILER_ONNX_MODEL_H_
#define FOLIOT_COMPILER_ONNX_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/constant.h"
#include "core/tensor.h"

namespace foliot {

// Present in the file and of no use to us (a subgraph, a sparse tensor).
struct OnnxUnsupportedAttribute {};

using OnnxAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                                   std::vector<std::string>, Constant, OnnxUnsupportedAttribute>;

struct OnnxNode {
  std::string name;                 // may be empty
  std::string type;                 // "Conv"
  std::string domain;               // "" for ONNX's own
  std::vector<std::string> inputs;  // "" where left out
  std::vector<std::string> outputs;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
};

struct OnnxDimension {
  int64_t value = -1;  // >= 1, or -1: not fixed
  // Its name if it is not fixed: of one symbol all have the same extent. Empty, and "?" in
  // the file: it has none, and need not be like any other.
  std::string symbol;
};

struct OnnxValueInfo {
  std::string name;
  DataType type = DataType::kFloat32;
  // Nullopt: the rank is not known.
  std::optional<std::vector<OnnxDimension>> dimensions;
  // As TensorSpec::labels.
  std::vector<std::string> labels;
};

struct OnnxModel {
  int64_t opset = 0;                      // of ONNX's own domain
  std::map<std::string, int64_t> opsets;  // of the others
  std::vector<OnnxNode> nodes;
  std::map<std::string, Constant> constants;  // initializers
  std::vector<OnnxValueInfo> inputs;          // without those that are initializers
  std::vector<OnnxValueInfo> outputs;
  std::vector<std::string> notes;  // as Program::notes
};

}  // namespace foliot

#endif  // FOLIOT_COMPILER_ONNX_MODEL_H_
