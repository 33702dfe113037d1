// TestModel: ONNX models for tests, built node by node.
#ifndef FOLIOT_ENGINE_COMPILER_TEST_MODEL_H_
#define FOLIOT_ENGINE_COMPILER_TEST_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/onnx_model.h"
#include "foundation/base/random.h"

namespace foliot {

class TestModel {
 public:
  explicit TestModel(int64_t opset = 17) { model_.opset = opset; }

  // Extents are numbers, or -1 with a name for the symbol.
  TestModel& input(std::string name, std::vector<OnnxDimension> dimensions, DataType type = DataType::kFloat32) {
    model_.inputs.push_back({.name = std::move(name), .type = type, .dimensions = std::move(dimensions)});
    return *this;
  }
  TestModel& output(std::string name, DataType type = DataType::kFloat32) {
    model_.outputs.push_back({.name = std::move(name), .type = type, .dimensions = std::nullopt});
    return *this;
  }
  TestModel& constant(std::string name, Constant value) {
    model_.constants.insert_or_assign(std::move(name), std::move(value));
    return *this;
  }
  TestModel& integers(std::string name, std::vector<int64_t> values) {
    return constant(std::move(name), make_constant({static_cast<int64_t>(values.size())}, values));
  }
  TestModel& scalar(std::string name, float value) {
    return constant(std::move(name), make_scalar(DataType::kFloat32, value));
  }
  // Normal values, the same for the same name and shape.
  TestModel& weights(const std::string& name, const Shape& shape, double deviation = 0.3, double mean = 0) {
    Random random(std::hash<std::string>()(name));
    std::vector<float> values(element_count(shape));
    for (float& value : values) value = static_cast<float>(mean + deviation * random.normal());
    return constant(name, make_constant(shape, values));
  }
  // The node's name is "node_" and its output's.
  TestModel& node(std::string type, std::vector<std::string> inputs, std::string output,
                  std::map<std::string, OnnxAttribute, std::less<>> attributes = {}) {
    OnnxNode node;
    node.name = "node_" + output;
    node.type = std::move(type);
    node.inputs = std::move(inputs);
    node.outputs = {std::move(output)};
    node.attributes = std::move(attributes);
    model_.nodes.push_back(std::move(node));
    return *this;
  }

  OnnxModel& model() { return model_; }
  const OnnxModel& model() const { return model_; }

 private:
  OnnxModel model_;
};

// A dimension of fixed size, and one with a name.
inline OnnxDimension fixed(int64_t value) { return {.value = value, .symbol = {}}; }
inline OnnxDimension open(std::string symbol) { return {.value = -1, .symbol = std::move(symbol)}; }

// As a file of ONNX.
std::string serialize(const TestModel& model);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_TEST_MODEL_H_
