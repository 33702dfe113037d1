#include "foundation/base/random.h"

#include <cmath>
#include <numbers>

#include "foundation/base/check.h"

namespace foliot {
namespace {

uint64_t rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

// SplitMix64, which fills the state from one number.
uint64_t split_mix(uint64_t& x) {
  uint64_t z = (x += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = split_mix(seed);
}

// xoshiro256** (Blackman and Vigna, 2018).
uint64_t Random::next() {
  const uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

uint64_t Random::below(uint64_t bound) {
  FOLIOT_CHECK(bound > 0);
  // Rejection keeps it exact: the last, incomplete run of `bound` is not used.
  const uint64_t limit = ~uint64_t{0} - (~uint64_t{0} % bound);
  uint64_t x = next();
  while (x >= limit) x = next();
  return x % bound;
}

double Random::exponential() { return -std::log1p(-uniform()); }

double Random::normal() {
  const double radius = std::sqrt(2 * exponential());
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Random::gamma_with_variation(double coefficient_of_variation) {
  FOLIOT_CHECK(coefficient_of_variation > 0);
  const double shape = 1 / (coefficient_of_variation * coefficient_of_variation);
  return gamma(shape) / shape;
}

Random Random::fork() { return Random(next()); }

// Marsaglia and Tsang (2000); shapes below one by their boost.
double Random::gamma(double shape) {
  if (shape < 1) return gamma(shape + 1) * std::pow(1 - uniform(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal();
    const double v = 1 + c * x;
    if (v <= 0) continue;
    const double v3 = v * v * v;
    const double u = 1 - uniform();
    if (std::log(u) < 0.5 * x * x + d * (1 - v3 + std::log(v3))) return d * v3;
  }
}

}  // namespace foliot
