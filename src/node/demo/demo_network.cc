#include "node/demo/demo_network.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/core/tensor.h"
#include "models/steps/onnx_writer.h"

namespace foliot {
namespace {

constexpr int64_t kPixels = 32;  // in each direction
constexpr int64_t kChannels = 64;
constexpr int64_t kScores = 10;
constexpr int kLayers = 8;  // they share their weights: much to compute, little to write

// So spread that values neither vanish nor grow from layer to layer.
std::string draw_weights(OnnxWriter& writer, Random& random, const Shape& shape, int64_t inputs) {
  const double scale = std::sqrt(2.0 / static_cast<double>(inputs));
  std::vector<float> values(element_count(shape));
  for (float& value : values) value = static_cast<float>(scale * random.normal());
  return writer.weights(values, shape);
}

}  // namespace

std::string demo_network() {
  constexpr int64_t kColours = 3, kKernel = 3;
  constexpr int64_t kTaps = kKernel * kKernel;
  Random random(1);
  OnnxWriter writer;
  writer.input("image", DataType::kFloat32, {kColours, kPixels, kPixels});
  writer.output("scores", DataType::kFloat32, {kScores});
  const OnnxWriter::Attributes same_size{{"kernel_shape", std::vector<int64_t>{kKernel, kKernel}},
                                         {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  const std::string first = draw_weights(writer, random, {kChannels, kColours, kKernel, kKernel}, kColours * kTaps);
  const std::string further = draw_weights(writer, random, {kChannels, kChannels, kKernel, kKernel}, kChannels * kTaps);
  std::string value = writer.value("Relu", {writer.value("Conv", {"image", first}, same_size)});
  for (int i = 0; i < kLayers; ++i) value = writer.value("Relu", {writer.value("Conv", {value, further}, same_size)});
  value = writer.value("Flatten", {writer.value("GlobalAveragePool", {value})}, {{"axis", int64_t{1}}});
  writer.node("MatMul", {value, draw_weights(writer, random, {kChannels, kScores}, kChannels)}, {"scores"});
  return writer.content();
}

}  // namespace foliot
