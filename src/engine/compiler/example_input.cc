#include "engine/compiler/example_input.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/compiler/constant.h"
#include "engine/compiler/example_jpeg.h"

namespace foliot {
namespace {

constexpr uint64_t kNoBound = ~uint64_t{0};

bool keeps_values(OperatorKind kind) {
  return kind == OperatorKind::kCast || kind == OperatorKind::kReshape || kind == OperatorKind::kTranspose ||
         kind == OperatorKind::kSlice || kind == OperatorKind::kExpand;
}

}  // namespace

std::vector<ExampleValues> example_values(const Graph& graph) {
  // From the end, so that what is known of a result is known when its operand comes.
  std::vector<uint64_t> bounds(graph.values.size(), kNoBound), pixels(graph.values.size(), 0);
  std::vector<bool> is_text(graph.values.size());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.kind == OperatorKind::kGather) {
      const auto axis = static_cast<size_t>(node.attributes.integer("axis"));
      const int64_t extent = graph.values[node.inputs[0]].shape[axis];
      bounds[node.inputs[1]] = std::min(bounds[node.inputs[1]], static_cast<uint64_t>(std::max<int64_t>(extent, 1)));
    } else if (node.kind == OperatorKind::kDecodeJpeg) {
      pixels[node.inputs[0]] = static_cast<uint64_t>(node.attributes.integer("pixels_max"));
    } else if (node.kind == OperatorKind::kWordPiece) {
      is_text[node.inputs[0]] = true;
    } else if (keeps_values(node.kind)) {
      bounds[node.inputs[0]] = std::min(bounds[node.inputs[0]], bounds[node.outputs[0]]);
    }
  }
  std::vector<ExampleValues> result;
  for (ValueIndex input : graph.inputs) {
    result.push_back({.bound = bounds[input] == kNoBound ? 2 : bounds[input],
                      .jpeg_pixels_max = pixels[input],
                      .is_text = is_text[input]});
  }
  return result;
}

void fill_random(Random& random, DataType type, const ExampleValues& given, uint32_t rows, std::span<std::byte> bytes) {
  if (given.jpeg_pixels_max > 0) {
    const size_t row_bytes = bytes.size() / rows;
    const std::vector<std::byte> jpeg = make_example_jpeg(random, row_bytes, given.jpeg_pixels_max);
    std::ranges::fill(bytes, std::byte{0});
    for (uint32_t row = 0; row < rows; ++row) std::ranges::copy(jpeg, bytes.subspan(row * row_bytes).begin());
    return;
  }
  if (given.is_text) {
    constexpr uint64_t kLetters = 26, kLettersPerWord = 6;
    for (std::byte& byte : bytes) {
      const bool ends = random.below(kLettersPerWord) == 0;
      byte = static_cast<std::byte>(ends ? ' ' : 'a' + static_cast<char>(random.below(kLetters)));
    }
    return;
  }
  std::vector<double> values(bytes.size() / size_of(type));
  uint64_t bound = type == DataType::kBool ? 2 : given.bound;
  // Indices must also fit the type.
  bound = std::min<uint64_t>(bound, size_of(type) == 1 ? 127 : 32767);
  for (double& value : values) {
    value = is_floating(type) ? random.normal() : static_cast<double>(random.below(bound));
  }
  const Constant constant = from_doubles(type, {static_cast<int64_t>(values.size())}, values);
  std::memcpy(bytes.data(), constant.bytes->data(), bytes.size());
}

void fill_contrary(Random& random, DataType type, const ExampleValues& values, size_t row, std::span<std::byte> bytes) {
  enum Kind : size_t { kOrdinary, kSparse, kLarge, kConstant, kSmall, kCount };
  constexpr double kDecades = 100;
  constexpr uint64_t kSparsity = 8;
  fill_random(random, type, values, 1, bytes);
  const size_t kind = row % kCount;
  const bool is_numbers = values.jpeg_pixels_max == 0 && !values.is_text;
  if (kind == kOrdinary || !is_numbers) return;
  const Shape shape{static_cast<int64_t>(bytes.size() / size_of(type))};
  std::vector<double> numbers = to_doubles(make_constant(type, shape, {bytes.begin(), bytes.end()}));
  if (numbers.empty()) return;
  const double first = numbers.front();
  for (double& number : numbers) {
    if (kind == kSparse && random.below(kSparsity) != 0) number = 0;
    if (kind == kConstant)
      number = is_floating(type) ? first : std::min<double>(1, static_cast<double>(values.bound) - 1);
    if (is_floating(type) && kind == kLarge) number *= kDecades;
    if (is_floating(type) && kind == kSmall) number /= kDecades;
  }
  const Constant constant = from_doubles(type, shape, numbers);
  std::memcpy(bytes.data(), constant.bytes->data(), bytes.size());
}

}  // namespace foliot
