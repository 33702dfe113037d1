// Fourier transforms, as products with matrices of sines, and what is used
// around them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/element_type.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// Beyond this the matrices would be larger than any model's weights.
constexpr int64_t kLengthMax = 1 << 13;

// [length, count] for each of cosine and sine of 2 pi k n / length.
struct Waves {
  ValueIndex cosine, sine;
};

Waves waves(Composer& c, DataType type, int64_t length, int64_t count) {
  std::vector<double> cosine, sine;
  for (int64_t n = 0; n < length; ++n) {
    for (int64_t k = 0; k < count; ++k) {
      // Whole turns are left out, so that large products lose nothing.
      const double angle = 2 * std::numbers::pi * static_cast<double>(n * k % length) / static_cast<double>(length);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  }
  return {c.constant(from_doubles(type, {length, count}, cosine)),
          c.constant(from_doubles(type, {length, count}, sine))};
}

// Real and imaginary parts [.., length]; the imaginary one is kNoValue where it is zero.
struct Complex {
  ValueIndex real, imaginary;
};

ValueIndex difference(Composer& c, ValueIndex a, ValueIndex b) { return b == kNoValue ? a : c.sub(a, b); }
ValueIndex total(Composer& c, ValueIndex a, ValueIndex b) { return b == kNoValue ? a : c.add(a, b); }

// The first `count` values of the transform along the last dimension.
Complex transform(Composer& c, Complex x, int64_t count, bool inverse) {
  const int64_t length = c.shape(x.real).back();
  const Waves by = waves(c, c.type(x.real), length, count);
  const auto times = [&](ValueIndex a, ValueIndex b) { return a == kNoValue ? kNoValue : c.matmul(a, b); };
  // (a + bi)(cos -+ i sin)
  const ValueIndex real_sine = times(x.real, by.sine), imaginary_sine = times(x.imaginary, by.sine);
  const ValueIndex real_cosine = times(x.real, by.cosine), imaginary_cosine = times(x.imaginary, by.cosine);
  if (!inverse) {
    return {total(c, real_cosine, imaginary_sine),
            imaginary_cosine == kNoValue ? c.unary(Function::kNeg, real_sine) : c.sub(imaginary_cosine, real_sine)};
  }
  const double scale = 1 / static_cast<double>(length);
  return {c.linear(difference(c, real_cosine, imaginary_sine), scale),
          c.linear(total(c, real_sine, imaginary_cosine), scale)};
}

// x [.., n] made `length` long.
ValueIndex fitted(Composer& c, ValueIndex x, int64_t length) {
  const Shape shape = c.shape(x);
  if (shape.back() >= length) return c.slice(x, c.rank(x) - 1, 0, length);
  std::vector<int64_t> pads(2 * shape.size(), 0);
  pads.back() = length - shape.back();
  return c.pad(x, std::move(pads));
}

// The last dimension, of one or two parts, taken apart.
Complex split_parts(Composer& c, ValueIndex x) {
  Shape shape = c.shape(x);
  const int64_t last = c.rank(x) - 1, parts = shape.back();
  shape.pop_back();
  return {c.reshape(c.slice(x, last, 0, 1), shape), parts == 2 ? c.reshape(c.slice(x, last, 1, 1), shape) : kNoValue};
}

ValueIndex join_parts(Composer& c, Complex x) {
  Shape shape = c.shape(x.real);
  shape.push_back(1);
  return c.concat({c.reshape(x.real, shape), c.reshape(x.imaginary, shape)}, static_cast<int64_t>(shape.size()) - 1);
}

// Dimension `axis` and the last but one change places, the last being the parts.
ValueIndex to_the_end(Composer& c, ValueIndex x, int64_t axis, bool parts) {
  std::vector<int64_t> permutation(static_cast<size_t>(c.rank(x)));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[static_cast<size_t>(axis)], permutation[permutation.size() - (parts ? 2 : 1)]);
  return c.transpose(x, std::move(permutation));
}

Result<std::optional<int64_t>> read_scalar(NodeTranslation& node, size_t i, std::string_view what) {
  if (!node.has_input(i)) return std::optional<int64_t>();
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.integers_of(i, what));
  if (given.size() != 1) return Status::invalid_argument(fmt::format("{} is not a scalar", what));
  return std::optional<int64_t>(given[0]);
}

Status check_length(int64_t length) {
  if (length >= 1 && length <= kLengthMax) return {};
  return Status::unimplemented(fmt::format("transforms of 1 to {} values are supported, not {}", kLengthMax, length));
}

// Half of the spectrum of a real signal: the other half mirrors it.
Complex whole_spectrum(Composer& c, Complex half, int64_t length) {
  const int64_t last = c.rank(half.real) - 1, mirrored = length - (length / 2 + 1);
  const auto joined = [&](ValueIndex x, bool negate) {
    x = fitted(c, x, length / 2 + 1);
    if (mirrored < 1) return x;
    const ValueIndex tail = c.slice(x, last, mirrored, mirrored, -1);
    return c.concat({x, negate ? c.unary(Function::kNeg, tail) : tail}, last);
  };
  if (half.imaginary == kNoValue) half.imaginary = c.linear(half.real, 0);
  return {joined(half.real, false), joined(half.imaginary, true)};
}

Status discrete_fourier_transform(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  if (shape.size() < 2 || (shape.back() != 1 && shape.back() != 2)) {
    return Status::invalid_argument("the last dimension must be that of real and imaginary parts");
  }
  int64_t axis = node.integer("axis", node.opset() < 20 ? 1 : -2);
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<int64_t> given_axis, read_scalar(node, 2, "'axis'"));
  FOLIOT_ASSIGN_OR_RETURN(axis, node.axis(given_axis.value_or(axis), node.rank(0)));
  if (axis == node.rank(0) - 1) return Status::invalid_argument("the last dimension cannot be transformed");
  const bool inverse = node.integer("inverse", 0) != 0, half = node.integer("onesided", 0) != 0;
  const int64_t extent = shape[static_cast<size_t>(axis)];
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<int64_t> given, read_scalar(node, 1, "'dft_length'"));
  const int64_t length = given.value_or(inverse && half ? 2 * (extent - 1) : extent);
  FOLIOT_RETURN_IF_ERROR(check_length(length));
  Composer c(node.builder());
  Complex x = split_parts(c, to_the_end(c, node.input(0), axis, true));
  if (inverse && half) {
    x = whole_spectrum(c, x, length);
  } else {
    x.real = fitted(c, x.real, length);
    if (x.imaginary != kNoValue) x.imaginary = fitted(c, x.imaginary, length);
  }
  const Complex y = transform(c, x, half && !inverse ? length / 2 + 1 : length, inverse);
  if (inverse && half) {
    Shape parts = c.shape(y.real);
    parts.push_back(1);
    return c.finish(node, to_the_end(c, c.reshape(y.real, parts), axis, true));
  }
  return c.finish(node, to_the_end(c, join_parts(c, y), axis, true));
}

// Frames of the signal, each weighted and transformed.
Status short_time_fourier_transform(NodeTranslation& node) {
  const Shape shape = node.shape(0);  // [batch, length, parts]
  if (shape.size() != 3 || (shape[2] != 1 && shape[2] != 2)) return Status::invalid_argument("the signal has no parts");
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<int64_t> step, read_scalar(node, 1, "'frame_step'"));
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<int64_t> given, read_scalar(node, 3, "'frame_length'"));
  const int64_t window = node.has_input(2) && node.rank(2) == 1 ? node.shape(2)[0] : shape[1];
  const int64_t length = given.value_or(window);
  FOLIOT_RETURN_IF_ERROR(check_length(length));
  if (!step || *step < 1 || length > shape[1] || (node.has_input(2) && window != length)) {
    return Status::invalid_argument("frame_step, frame_length and window do not fit the signal");
  }
  const int64_t frames = (shape[1] - length) / *step + 1;
  std::vector<int64_t> at;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t i = 0; i < length; ++i) at.push_back(frame * *step + i);
  }
  Composer c(node.builder());
  const ValueIndex indices = c.integers(at, {frames, length});
  Complex x = split_parts(c, node.input(0));
  for (ValueIndex* part : {&x.real, &x.imaginary}) {
    if (*part == kNoValue) continue;
    *part = c.gather(*part, indices, 1);
    if (node.has_input(2)) *part = c.mul(*part, node.input(2));
  }
  const int64_t count = node.integer("onesided", 1) != 0 ? length / 2 + 1 : length;
  return c.finish(node, join_parts(c, transform(c, x, count, false)));
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N)
Status window(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<int64_t> size, read_scalar(node, 0, "'size'"));
  FOLIOT_ASSIGN_OR_RETURN(const DataType type, element_type(node.integer("output_datatype", 1)));
  if (!size || *size < 0 || *size > 1 << 24) return Status::invalid_argument("'size' is impossible");
  double a0 = 0.5, a1 = 0.5, a2 = 0;
  if (node.type() == "HammingWindow") a0 = 25.0 / 46, a1 = 21.0 / 46;
  if (node.type() == "BlackmanWindow") a0 = 0.42, a1 = 0.5, a2 = 0.08;
  const int64_t last = node.integer("periodic", 1) != 0 ? *size : *size - 1;
  const auto period = static_cast<double>(std::max<int64_t>(last, 1));
  std::vector<double> values;
  for (int64_t n = 0; n < *size; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / period;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  node.set_output(0, node.builder().add_constant(from_doubles(type, {*size}, values)));
  return {};
}

// Triangles over the bins of a spectrum, evenly spread on the mel scale.
Status mel_weight_matrix(NodeTranslation& node) {
  double given[5];
  for (size_t i = 0; i < 5; ++i) {
    FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node.constant(i, "a parameter"));
    if (element_count(constant.shape) != 1) return Status::invalid_argument("a parameter is not a scalar");
    given[i] = to_doubles(constant)[0];
  }
  FOLIOT_ASSIGN_OR_RETURN(const DataType type, element_type(node.integer("output_datatype", 1)));
  const double rate = given[2];
  if (!(given[0] >= 1 && given[0] < 1 << 16 && given[1] >= 1 && given[1] < 1 << 24 && rate > 0)) {
    return Status::invalid_argument("a parameter is impossible");
  }
  const auto bands = static_cast<int64_t>(given[0]), length = static_cast<int64_t>(given[1]);
  const int64_t bins = length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(given[3]), step = (mel(given[4]) - low) / static_cast<double>(bands + 2);
  const auto edge = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    return static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
  };
  std::vector<double> weights(static_cast<size_t>(bins * bands), 0);
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t left = edge(band), top = edge(band + 1), right = edge(band + 2);
    const auto set = [&](int64_t bin, double weight) {
      if (bin >= 0 && bin < bins) weights[static_cast<size_t>(bin * bands + band)] = weight;
    };
    for (int64_t bin = left; bin <= top; ++bin) {
      set(bin, top == left ? 1 : static_cast<double>(bin - left) / static_cast<double>(top - left));
    }
    for (int64_t bin = top; bin < right && right > top; ++bin) {
      set(bin, static_cast<double>(right - bin) / static_cast<double>(right - top));
    }
  }
  node.set_output(0, node.builder().add_constant(from_doubles(type, {bins, bands}, weights)));
  return {};
}

constexpr OnnxOperator kSignalOperators[] = {
    {"DFT", 1, 3, discrete_fourier_transform},
    {"STFT", 2, 4, short_time_fourier_transform},
    {"HannWindow", 1, 1, window},
    {"HammingWindow", 1, 1, window},
    {"BlackmanWindow", 1, 1, window},
    {"MelWeightMatrix", 5, 5, mel_weight_matrix},
};

}  // namespace

std::span<const OnnxOperator> signal_operators() { return kSignalOperators; }

}  // namespace foliot
