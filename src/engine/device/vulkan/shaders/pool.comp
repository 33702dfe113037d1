#version 460
#include "common.glsl"

layout(constant_id = 16) const bool kAverage = false;
layout(constant_id = 17) const bool kCountPadding = false;
layout(constant_id = 18) const uint kDepth = 1;  // of the window
layout(constant_id = 19) const uint kHeight = 1;
layout(constant_id = 20) const uint kWidth = 1;

// words: 5 extents of X (3), 8 of Y (3), 11 strides (3), 14 pads at the begin (3), 17 dilations (3), 20 where padding
// that counts ends (3), 23 results.
void main() {
  const uint i = linear_index();
  if (i >= words[23]) return;
  const int ow = int(i % words[10]), oh = int(i / words[10] % words[9]), od = int(i / words[10] / words[9] % words[8]);
  const uint image = i / (words[8] * words[9] * words[10]) * (words[5] * words[6] * words[7]);
  float value = kAverage ? 0 : uintBitsToFloat(0xff800000u);
  uint seen = 0, counted = 0;
  for (uint kd = 0; kd < kDepth; ++kd) {
    const int d = od * int(words[11]) - int(words[14]) + int(kd * words[17]);
    for (uint kh = 0; kh < kHeight; ++kh) {
      const int h = oh * int(words[12]) - int(words[15]) + int(kh * words[18]);
      for (uint kw = 0; kw < kWidth; ++kw) {
        const int w = ow * int(words[13]) - int(words[16]) + int(kw * words[19]);
        if (d < int(words[20]) && h < int(words[21]) && w < int(words[22])) ++counted;
        if (d < 0 || h < 0 || w < 0 || d >= int(words[5]) || h >= int(words[6]) || w >= int(words[7])) continue;
        const float x = load0(image + (uint(d) * words[6] + uint(h)) * words[7] + uint(w));
        value = kAverage ? value + x : is_nan(x) ? x : at_least(value, x);
        ++seen;
      }
    }
  }
  const uint of = kCountPadding ? counted : seen;
  if (kAverage) value = of == 0 ? 0 : value / float(of);
  store4(i, value);
}
