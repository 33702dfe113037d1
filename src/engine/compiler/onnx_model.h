// OnnxModel: the content of an ONNX file, in plain structures, so that only the reader
// knows protobuf. Only its form has been checked: names, counts and shapes may still be
// wrong.
//
// Tensors hold numbers only. A list of class names, and an output that is one of them,
// stand as the names' positions, and a ZipMap before an output as an Identity.
#ifndef FOLIOT_ENGINE_COMPILER_ONNX_MODEL_H_
#define FOLIOT_ENGINE_COMPILER_ONNX_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "engine/compiler/constant.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct OnnxGraph;

// In a function: the attribute of this name of the node that calls the function.
struct OnnxAttributeReference {
  std::string name;
};

// Present in the file and of no use to us (a sparse tensor).
struct OnnxUnsupportedAttribute {};

using OnnxAttribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                 Constant, std::shared_ptr<const OnnxGraph>, OnnxAttributeReference, OnnxUnsupportedAttribute>;
using OnnxAttributes = std::map<std::string, OnnxAttribute, std::less<>>;

struct OnnxNode {
  std::string name;                 // may be empty
  std::string type;                 // "Conv"
  std::string domain;               // "" for ONNX's own
  std::string overload;             // of a function; mostly empty
  std::vector<std::string> inputs;  // "" where left out
  std::vector<std::string> outputs;
  OnnxAttributes attributes;
};

// The body of an If, Loop or Scan, whose nodes may use the names of the graphs around it,
// or of a function, whose nodes may not.
struct OnnxGraph {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, Constant> constants;  // initializers
  std::vector<OnnxNode> nodes;
};

// A function that the file defines, and its nodes call like an operator.
struct OnnxFunction {
  OnnxGraph body;
  int64_t opset = 0;        // of ONNX's own domain, in the body
  OnnxAttributes defaults;  // of attributes that a call may leave out
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
  // By domain, name and overload, as nodes call them.
  std::map<std::tuple<std::string, std::string, std::string>, OnnxFunction> functions;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_ONNX_MODEL_H_
