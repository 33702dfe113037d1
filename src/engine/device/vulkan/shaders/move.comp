#version 460
#include "common.glsl"

// Moves elements of any type. kWork 0: by strides on both sides; 1: padding; 2: gathering along a dimension.
layout(constant_id = 16) const uint kWork = 0;
layout(constant_id = 17) const uint kBytes = 4;  // of an element
layout(constant_id = 18) const uint kRank = 1;
layout(constant_id = 19) const uint kMode = 0;  // of padding: 0 a value, 1 the edge, 2 reflected
layout(constant_id = 20) const bool kLongIndices = false;

void copy(uint to, uint from) {
  if (kBytes == 1) Byte(address_of(kPlace4, words[4], to)).value = Byte(address_of(kPlace0, words[0], from)).value;
  if (kBytes == 2)
    Short(address_of(kPlace4, words[4], 2 * to)).value = Short(address_of(kPlace0, words[0], 2 * from)).value;
  if (kBytes == 4) Int(address_of(kPlace4, words[4], 4 * to)).value = Int(address_of(kPlace0, words[0], 4 * from)).value;
  if (kBytes == 8)
    Long(address_of(kPlace4, words[4], 8 * to)).value = Long(address_of(kPlace0, words[0], 8 * from)).value;
}

void put(uint to, uint low, uint high) {
  if (kBytes == 1) Byte(address_of(kPlace4, words[4], to)).value = uint8_t(low);
  if (kBytes == 2) Short(address_of(kPlace4, words[4], 2 * to)).value = uint16_t(low);
  if (kBytes == 4) Int(address_of(kPlace4, words[4], 4 * to)).value = int(low);
  if (kBytes == 8) Long(address_of(kPlace4, words[4], 8 * to)).value = int64_t(low) | (int64_t(high) << 32);
}

// words: 5 count, 6 extents (6), 12 steps in X (6), 18 steps in Y (6), 24 begin in X, 25 begin in Y.
void move(uint i) {
  uint from = words[24], to = words[25], rest = i;
  for (int d = int(kRank) - 1; d >= 0; --d) {
    const uint extent = words[6 + d], position = d == 0 ? rest : rest % extent;
    rest /= extent;
    from += position * words[12 + d];
    to += position * words[18 + d];
  }
  copy(to, from);
}

// words: 5 count, 6 extents of Y (6), 12 of X (6), 18 padding at the begin (6), 24 the value's low half, 25 its high.
void pad(uint i) {
  uint from = 0, rest = i, step = 1;
  bool inside = true;
  for (int d = int(kRank) - 1; d >= 0; --d) {
    const int extent = int(words[12 + d]);
    int position = int(rest % words[6 + d]) - int(words[18 + d]);
    rest /= words[6 + d];
    if (kMode == 1) position = clamp(position, 0, extent - 1);
    if (kMode == 2) {
      position = abs(position);
      if (position >= extent) position = 2 * (extent - 1) - position;
    }
    inside = inside && position >= 0 && position < extent;
    from += uint(inside ? position : 0) * step;
    step *= uint(extent);
  }
  if (inside) {
    copy(i, from);
    return;
  }
  put(i, words[24], words[25]);
}

// words: 5 count, 6 elements behind the dimension, 7 its extent, 8 indices. An index out of range reads as zero.
void gather(uint i) {
  const uint inner = i % words[6], index_at = i / words[6] % words[8], outer = i / words[6] / words[8];
  int64_t index = kLongIndices ? Long(address_of(kPlace1, words[1], 8 * index_at)).value
                               : widened(Int(address_of(kPlace1, words[1], 4 * index_at)).value);
  const int64_t extent = int64_t(words[7]);
  if (index < 0) index += extent;
  if (index < 0 || index >= extent) {
    put(i, 0, 0);
    return;
  }
  copy(i, (outer * words[7] + uint(index)) * words[6] + inner);
}

void main() {
  const uint i = linear_index();
  if (i >= words[5]) return;
  if (kWork == 0) move(i);
  if (kWork == 1) pad(i);
  if (kWork == 2) gather(i);
}
