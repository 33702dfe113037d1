#include "control/controller/mlp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "foundation/base/check.h"

namespace foliot {

Mlp::Mlp(uint32_t inputs) : inputs_(inputs) {
  uint32_t position = 0;
  for (uint32_t layer = 0; layer < kHidden; ++layer) {
    layers_.push_back({position, layer == 0 ? inputs : kUnits});
    position += (layers_.back().inputs + 1) * kUnits;
  }
  last_ = position;
  weights_.resize(last_ + kUnits + 1);
}

Mlp::Mlp(uint32_t inputs, Random& random) : Mlp(inputs) {
  for (const Layer& layer : layers_) {
    const double deviation = std::sqrt(2.0 / layer.inputs);
    float* const own = weights_.data() + layer.first;
    std::generate_n(own, layer.inputs * kUnits, [&] { return static_cast<float>(random.normal() * deviation); });
  }
  std::generate_n(weights_.data() + last_, kUnits, [&] { return static_cast<float>(random.normal() * 0.1); });
  weights_.back() = 0.5F;
}

std::optional<Mlp> Mlp::with_weights(uint32_t inputs, std::vector<float> weights) {
  Mlp made(inputs);
  const bool finite = std::ranges::all_of(weights, [](float weight) { return std::isfinite(weight); });
  if (weights.size() != made.weights_.size() || !finite) return std::nullopt;
  made.weights_ = std::move(weights);
  return made;
}

void Mlp::forward(const float* weights, uint32_t inputs, const float* in, Units& out) {
  const float* const biases = weights + inputs * kUnits;
  for (uint32_t unit = 0; unit < kUnits; ++unit) out[unit] = biases[unit];
  for (uint32_t i = 0; i < inputs; ++i) {
    const float value = in[i];
    if (value == 0) continue;
    const float* const row = weights + i * kUnits;
    for (uint32_t unit = 0; unit < kUnits; ++unit) out[unit] += value * row[unit];
  }
  for (uint32_t unit = 0; unit < kUnits; ++unit) out[unit] = std::max(out[unit], 0.0F);
}

float Mlp::predict(std::span<const float> inputs) const {
  Units values[2];
  const float* in = inputs.data();
  for (uint32_t layer = 0; layer < kHidden; ++layer) {
    forward(weights_.data() + layers_[layer].first, layers_[layer].inputs, in, values[layer % 2]);
    in = values[layer % 2];
  }
  float result = weights_[last_ + kUnits];
  for (uint32_t unit = 0; unit < kUnits; ++unit) result += in[unit] * weights_[last_ + unit];
  return result;
}

void Mlp::train(std::span<const MlpSample> samples, const MlpTraining& training, Random& random) {
  constexpr float kBeta1 = 0.9F;
  constexpr float kBeta2 = 0.999F;
  std::vector<float> gradient(weights_.size());
  std::vector<float> mean(weights_.size());
  std::vector<float> square(weights_.size());
  std::vector<uint32_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0U);
  uint64_t steps = 0;
  for (uint32_t epoch = 0; epoch < training.epochs; ++epoch) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    const double done = static_cast<double>(epoch) / training.epochs;
    const float rate = training.rate * static_cast<float>(0.5 * (1 + std::cos(std::numbers::pi * done)));
    for (size_t first = 0; first < order.size(); first += training.batch) {
      const size_t end = std::min(order.size(), first + training.batch);
      std::fill(gradient.begin(), gradient.end(), 0.0F);
      for (size_t at = first; at < end; ++at) {
        const MlpSample& sample = samples[order[at]];
        Units values[kHidden];
        const float* in = sample.inputs.data();
        for (uint32_t layer = 0; layer < kHidden; ++layer) {
          forward(weights_.data() + layers_[layer].first, layers_[layer].inputs, in, values[layer]);
          in = values[layer];
        }
        float result = weights_[last_ + kUnits];
        for (uint32_t unit = 0; unit < kUnits; ++unit) result += in[unit] * weights_[last_ + unit];
        // Of ((result - wanted) / wanted)^2, halved.
        float slope = (result - sample.wanted) / (sample.wanted * sample.wanted) / static_cast<float>(end - first);
        Units below;
        for (uint32_t unit = 0; unit < kUnits; ++unit) {
          gradient[last_ + unit] += slope * in[unit];
          below[unit] = in[unit] > 0 ? slope * weights_[last_ + unit] : 0;
        }
        gradient[last_ + kUnits] += slope;
        for (uint32_t layer = kHidden; layer-- > 0;) {
          const Layer& own = layers_[layer];
          const float* const inputs = layer == 0 ? sample.inputs.data() : values[layer - 1];
          float* const rows = gradient.data() + own.first;
          const float* const weights = weights_.data() + own.first;
          Units next{};
          for (uint32_t i = 0; i < own.inputs; ++i) {
            if (inputs[i] == 0) continue;
            float sum = 0;
            for (uint32_t unit = 0; unit < kUnits; ++unit) {
              rows[i * kUnits + unit] += inputs[i] * below[unit];
              sum += weights[i * kUnits + unit] * below[unit];
            }
            if (layer > 0) next[i] = sum;
          }
          for (uint32_t unit = 0; unit < kUnits; ++unit) rows[own.inputs * kUnits + unit] += below[unit];
          std::copy(std::begin(next), std::end(next), std::begin(below));
        }
      }
      ++steps;
      const auto power = static_cast<float>(steps);
      const float step = rate * std::sqrt(1 - std::pow(kBeta2, power)) / (1 - std::pow(kBeta1, power));
      for (size_t i = 0; i < weights_.size(); ++i) {
        mean[i] += (1 - kBeta1) * (gradient[i] - mean[i]);
        square[i] += (1 - kBeta2) * (gradient[i] * gradient[i] - square[i]);
        weights_[i] -= step * mean[i] / (std::sqrt(square[i]) + 1e-8F);
      }
    }
  }
}

double Mlp::error(std::span<const MlpSample> samples) const {
  FOLIOT_CHECK(!samples.empty());
  double sum = 0;
  for (const MlpSample& sample : samples) {
    sum += std::abs(predict(sample.inputs) - sample.wanted) / static_cast<double>(sample.wanted);
  }
  return sum / static_cast<double>(samples.size());
}

}  // namespace foliot
