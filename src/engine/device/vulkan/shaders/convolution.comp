#version 460
#include "common.glsl"

// Convolution as a product whose left side is never stored. An invocation makes kChannels neighbouring channels of
// kPixels pixels; pixels of neighbouring invocations are neighbours.
layout(constant_id = 16) const uint kChannels = 4;
layout(constant_id = 17) const uint kPixels = 4;
layout(constant_id = 18) const uint kDepth = 1;  // of the window
layout(constant_id = 19) const uint kHeight = 1;
layout(constant_id = 20) const uint kWidth = 1;
layout(constant_id = 21) const bool kHasBias = false;
layout(constant_id = 22) const bool kPacked = false;      // W as [M / 4, taps, C, 4]: PackedTaps
layout(constant_id = 23) const bool kTransposed = false;  // W[C, M / groups, k..]

// words: 5 extents of X (3), 8 of Y (3), 11 strides (3), 14 pads at the begin (3), 17 dilations (3), 20 channels of a
// group: in, 21 out, 22 groups, 23 images.

uint tap_weight(uint group, uint channel, uint tap, uint in_channel) {
  const uint taps = kDepth * kHeight * kWidth, ins = words[20], outs = words[21];
  if (kTransposed) return ((group * ins + in_channel) * outs + channel) * taps + tap;
  return ((group * outs + channel) * ins + in_channel) * taps + tap;
}

// Where tap (k) of result (o) lies in X along dimension d; -1: outside.
int position(uint d, uint o, uint k) {
  const int step = int(words[11 + d]), pad = int(words[14 + d]), reach = int(k * words[17 + d]);
  int at = int(o) * step - pad + reach;
  if (kTransposed) {
    at = int(o) + pad - reach;
    if (at < 0 || at % step != 0) return -1;
    at /= step;
  }
  return at >= 0 && at < int(words[5 + d]) ? at : -1;
}

void main() {
  const uint x_image = words[5] * words[6] * words[7], y_image = words[8] * words[9] * words[10];
  const uint ins = words[20], outs = words[21], groups = words[22];
  const uint pixel_tiles = (y_image + kPixels - 1) / kPixels, channel_tiles = (outs + kChannels - 1) / kChannels;
  uint tile = linear_index();
  const uint first = tile % pixel_tiles;
  tile /= pixel_tiles;
  const uint channel0 = tile % channel_tiles * kChannels;
  tile /= channel_tiles;
  const uint group = tile % groups, image = tile / groups;
  if (image >= words[23]) return;
  const uint x_group = (image * groups + group) * ins * x_image;
  vec4 sums[8];
  uint od[8], oh[8], ow[8];
  for (uint p = 0; p < kPixels; ++p) {
    sums[p] = vec4(0);
    const uint pixel = min(first + p * pixel_tiles, y_image - 1);
    ow[p] = pixel % words[10];
    oh[p] = pixel / words[10] % words[9];
    od[p] = pixel / words[10] / words[9];
  }
  uint tap = 0;
  for (uint kd = 0; kd < kDepth; ++kd) {
    for (uint kh = 0; kh < kHeight; ++kh) {
      for (uint kw = 0; kw < kWidth; ++kw, ++tap) {
        uint at[8];
        bool inside[8];
        for (uint p = 0; p < kPixels; ++p) {
          const int d = position(0, od[p], kd), h = position(1, oh[p], kh), w = position(2, ow[p], kw);
          inside[p] = d >= 0 && h >= 0 && w >= 0;
          at[p] = x_group + (inside[p] ? (uint(d) * words[6] + uint(h)) * words[7] + uint(w) : 0);
        }
        for (uint c = 0; c < ins; ++c) {
          vec4 w = vec4(0);
          if (kPacked) {
            const uint block = (group * outs + channel0) * ins * (kDepth * kHeight * kWidth);
            w = Float4(address_of(kPlace1, words[1], 4 * (block + 4 * (tap * ins + c)))).value;
          } else {
            for (uint m = 0; m < kChannels; ++m) w[m] = load1(tap_weight(group, min(channel0 + m, outs - 1), tap, c));
          }
          for (uint p = 0; p < kPixels; ++p) {
            const float x = load0(at[p] + c * x_image);
            sums[p] += (inside[p] ? x : 0) * w;
          }
        }
      }
    }
  }
  for (uint p = 0; p < kPixels; ++p) {
    const uint pixel = first + p * pixel_tiles;
    if (pixel >= y_image) break;
    for (uint m = 0; m < kChannels && channel0 + m < outs; ++m) {
      const uint channel = group * outs + channel0 + m;
      const uint index = (image * groups * outs + channel) * y_image + pixel;
      float y = sums[p][m];
      if (kHasBias) y += load2(channel);
      store4(index, finish(y, index, channel));
    }
  }
}
