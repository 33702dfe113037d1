#version 460
#include "common.glsl"

layout(constant_id = 16) const bool kIsLinear = false;
layout(constant_id = 17) const uint kCoordinates = 0;  // 0 half_pixel, 1 align_corners, 2 asymmetric, 3 pytorch_half_pixel
layout(constant_id = 18) const uint kNearest = 0;  // 0 round_prefer_floor, 1 floor, 2 ceil, 3 round_prefer_ceil

// words: 5 extents of X (3), 8 of Y (3), 11 scales as floats (3), 14 results.
float source(uint d, uint position) {
  const float scale = uintBitsToFloat(words[11 + d]), x = float(position), extent = float(words[5 + d]);
  float at = (x + 0.5) / scale - 0.5;
  if (kCoordinates == 3 && words[8 + d] == 1) at = 0;
  if (kCoordinates == 2) at = x / scale;
  if (kCoordinates == 1) {
    const float resized = extent * scale;
    at = resized == 1 ? 0 : x * (extent - 1) / (resized - 1);
  }
  if (!kIsLinear) {
    if (kNearest == 0) at = ceil(at - 0.5);
    if (kNearest == 1) at = floor(at);
    if (kNearest == 2) at = ceil(at);
    if (kNearest == 3) at = floor(at + 0.5);
  }
  return clamp(at, 0, extent - 1);
}

void main() {
  const uint i = linear_index();
  if (i >= words[14]) return;
  const uvec3 to = uvec3(i / words[10] / words[9] % words[8], i / words[10] % words[9], i % words[10]);
  const uint image = i / (words[8] * words[9] * words[10]) * (words[5] * words[6] * words[7]);
  vec3 at;
  for (uint d = 0; d < 3; ++d) at[d] = source(d, to[d]);
  const uvec3 low = uvec3(at);
  if (!kIsLinear) {
    store4(i, load0(image + (low.x * words[6] + low.y) * words[7] + low.z));
    return;
  }
  float y = 0;
  for (uint corner = 0; corner < 8; ++corner) {
    float weight = 1;
    uvec3 from;
    for (uint d = 0; d < 3; ++d) {
      const uint up = corner >> d & 1;
      const float above = at[d] - float(low[d]);
      weight *= up == 1 ? above : 1 - above;
      from[d] = min(low[d] + up, words[5 + d] - 1);
    }
    // What does not count may be NaN.
    if (weight > 0) y += weight * load0(image + (from.x * words[6] + from.y) * words[7] + from.z);
  }
  store4(i, y);
}
