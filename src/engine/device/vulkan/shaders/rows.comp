#version 460
#include "common.glsl"

// Over rows X[outer, extent, inner] of one dimension: reductions, softmax, normalisation. A row is worked on by one
// invocation, or, with kWide, by the 64 of a workgroup.
layout(constant_id = 16) const uint kWork = 0;  // 0: a reduction, 1: softmax, 2: its logarithm, 3: normalisation, 4: where the best is
layout(constant_id = 17) const uint kFunction = 255;
layout(constant_id = 18) const bool kWide = false;
layout(constant_id = 19) const float kEpsilon = 0;
layout(constant_id = 20) const bool kScaled = false;
layout(constant_id = 21) const bool kLast = false;  // of equals, for kWork 4

// words: 5 rows, 6 extent, 7 inner, 8 rows that the scale has, 9 entries of it in a row, 10 elements that share one.

shared float parts[64];

float start_of(uint function) {
  if (function == kProd) return 1;
  if (function == kMax) return uintBitsToFloat(0xff800000u);
  if (function == kMin) return uintBitsToFloat(0x7f800000u);
  return 0;
}

float joined(uint function, float a, float b) {
  if (function == kProd) return a * b;
  if (function == kMax || function == kMin) return binary(function, a, b);
  return a + b;
}

// Of what every invocation of the row has.
float joined_row(uint function, float value) {
  if (!kWide) return value;
  const uint own = gl_LocalInvocationID.x;
  barrier();
  parts[own] = value;
  for (uint width = 32; width > 0; width /= 2) {
    barrier();
    if (own < width) parts[own] = joined(function, parts[own], parts[own + width]);
  }
  barrier();
  return parts[0];
}

float reduced(uint base, uint first, uint step, uint function, float shift) {
  float value = start_of(function);
  for (uint j = first; j < words[6]; j += step) {
    const float x = load0(base + j * words[7]);
    float term = x;
    if (function == kL1) term = abs(x);
    if (function == kL2 || function == kSumSquare) term = (x - shift) * (x - shift);
    if (function == kLogSumExp) term = exp(x - shift);
    value = joined(function, value, term);
  }
  return joined_row(function, value);
}

void find_best(uint row, uint base) {
  float best = load0(base);
  uint at = 0;
  for (uint j = 1; j < words[6]; ++j) {
    const float x = load0(base + j * words[7]);
    const bool better = kFunction == kMax ? x > best : x < best;
    if (better || (kLast && x == best) || (is_nan(x) && !is_nan(best))) {
      best = x;
      at = j;
    }
  }
  Long(address_of(kPlace4, words[4], 8 * row)).value = int64_t(at);
}

void main() {
  const uint row = kWide ? gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x : linear_index();
  if (row >= words[5]) return;
  const uint first = kWide ? gl_LocalInvocationID.x : 0, step = kWide ? 64 : 1;
  const uint base = row / words[7] * words[6] * words[7] + row % words[7];
  const float extent = float(words[6]);
  if (kWork == 4) {
    find_best(row, base);
    return;
  }
  if (kWork == 0) {
    float shift = 0;
    if (kFunction == kLogSumExp) {
      shift = reduced(base, first, step, kMax, 0);
      if (!is_nan(shift) && isinf(shift)) shift = 0;
    }
    float y = reduced(base, first, step, kFunction, shift);
    if (kFunction == kMean) y /= extent;
    if (kFunction == kL2) y = sqrt(y);
    if (kFunction == kLogSumExp) y = log(y) + shift;
    if (first == 0) store4(row, y);
    return;
  }
  if (kWork == 3) {
    const float mean = reduced(base, first, step, kSum, 0) / extent;
    const float scale = 1 / sqrt(reduced(base, first, step, kSumSquare, mean) / extent + kEpsilon);
    for (uint j = first; j < words[6]; j += step) {
      float y = (load0(base + j) - mean) * scale;
      if (kScaled) {
        const uint at = row % words[8] * words[9] + j / words[10];
        y = y * load1(at) + load2(at);
      }
      store4(base + j, y);
    }
    return;
  }
  const float most = reduced(base, first, step, kMax, 0);
  const float sum = reduced(base, first, step, kLogSumExp, most);
  const float shift = kWork == 2 ? log(sum) : 0;
  for (uint j = first; j < words[6]; j += step) {
    const uint at = base + j * words[7];
    const float x = load0(at) - most;
    store4(at, kWork == 2 ? x - shift : exp(x) / sum);
  }
}
