// Mlp: a multilayer perceptron with one output: hidden layers of rectified linear units, a
// linear last one (Abacus, section 5.5: three of 32). Single precision; the loops are such
// that the compiler vectorises them over a layer's units.
//
// Threading: predict() from any thread; no allocation.
#ifndef FOLIOT_CONTROL_CONTROLLER_MLP_H_
#define FOLIOT_CONTROL_CONTROLLER_MLP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {

// One sample: what goes in, and the positive value that should come out.
struct MlpSample {
  std::vector<float> inputs;
  float wanted = 1;
};

struct MlpTraining {
  uint32_t epochs = 40;
  uint32_t batch = 64;
  float rate = 2e-3F;  // of Adam, in the first epoch; falls to 0 by a cosine
};

class Mlp {
 public:
  static constexpr uint32_t kUnits = 32;  // of a hidden layer
  static constexpr uint32_t kHidden = 3;  // layers

  // With weights drawn from `random`.
  Mlp(uint32_t inputs, Random& random);

  // With the weights of another of as many inputs; nullopt if they are not as many, or not finite.
  static std::optional<Mlp> with_weights(uint32_t inputs, std::vector<float> weights);

  uint32_t inputs() const { return inputs_; }
  const std::vector<float>& weights() const { return weights_; }
  // REQUIRES: as many as inputs().
  float predict(std::span<const float> inputs) const;
  // Minimises the squared relative error by Adam. Not while others predict.
  void train(std::span<const MlpSample> samples, const MlpTraining& training, Random& random);
  // Mean absolute relative error (Abacus, equation 1).
  double error(std::span<const MlpSample> samples) const;

 private:
  using Units = float[kUnits];
  explicit Mlp(uint32_t inputs);
  // Of a layer with kUnits outputs: [input][output], then the biases.
  struct Layer {
    uint32_t first;  // position in weights_
    uint32_t inputs;
  };
  static void forward(const float* weights, uint32_t inputs, const float* in, Units& out);

  uint32_t inputs_;
  std::vector<Layer> layers_;
  uint32_t last_;  // position of the last layer in weights_: kUnits weights and a bias
  std::vector<float> weights_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_MLP_H_
