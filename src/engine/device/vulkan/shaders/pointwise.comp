#version 460
#include "common.glsl"

// y[i] = second(combine(first(f(a, b, c)), r)), every operand broadcast by strides. Integers are computed in 64 bits.
layout(constant_id = 16) const uint kForm = 0;  // 0: of one operand, 1: of two, 2: a choice, 3: a cast
layout(constant_id = 17) const uint kFunction = 255;
layout(constant_id = 18) const float kAlpha = 0;
layout(constant_id = 19) const float kBeta = 0;
layout(constant_id = 20) const uint kRank = 1;
// Of operands 0, 1, 2 and the result: kFloat32 ...
layout(constant_id = 21) const uint kType0 = 0;
layout(constant_id = 22) const uint kType1 = 0;
layout(constant_id = 23) const uint kType2 = 0;
layout(constant_id = 24) const uint kType4 = 0;

const uint kFloat32 = 0, kInt32 = 1, kInt64 = 2, kUint8 = 3, kInt8 = 4, kBool = 5;
// words: 5 count, 6 extents, 12 strides of operand 0, 18 of operand 1, 24 of operand 2 (of the epilogue's: 3).

int64_t load_integer(uint type, uint place, uint offset, uint i) {
  if (type == kInt32) return widened(Int(address_of(place, offset, 4 * i)).value);
  if (type == kInt64) return Long(address_of(place, offset, 8 * i)).value;
  if (type == kInt8) return widened(int(int8_t(Byte(address_of(place, offset, i)).value)));
  if (type == kFloat32) return 0;
  return int64_t(Byte(address_of(place, offset, i)).value);
}

void store_integer(uint i, int64_t value) {
  if (kType4 == kInt32) Int(address_of(kPlace4, words[4], 4 * i)).value = int(value);
  if (kType4 == kInt64) Long(address_of(kPlace4, words[4], 8 * i)).value = value;
  if (kType4 == kUint8 || kType4 == kInt8) Byte(address_of(kPlace4, words[4], i)).value = uint8_t(value);
  if (kType4 == kBool) Byte(address_of(kPlace4, words[4], i)).value = uint8_t(value != 0 ? 1 : 0);
  if (kType4 == kFloat32) store4(i, float(value));
}

int64_t whole_unary(int64_t x) {
  if (kFunction == kRelu) return x > 0 ? x : 0;
  if (kFunction == kNeg) return -x;
  if (kFunction == kAbs) return x < 0 ? -x : x;
  if (kFunction == kSign) return x > 0 ? 1 : x < 0 ? -1 : 0;
  if (kFunction == kNot) return x == 0 ? 1 : 0;
  return x;
}

int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }

int64_t whole_binary(int64_t a, int64_t b) {
  if (kFunction == kAdd) return a + b;
  if (kFunction == kSub) return a - b;
  if (kFunction == kMul) return a * b;
  if (kFunction == kDiv) return quotient(a, b);
  if (kFunction == kMin) return a < b ? a : b;
  if (kFunction == kMax) return a > b ? a : b;
  if (kFunction == kFmod || kFunction == kMod) {
    const int64_t rest = b == 0 ? 0 : a - quotient(a, b) * b;
    return kFunction == kMod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (kFunction == kEqual) return a == b ? 1 : 0;
  if (kFunction == kLess) return a < b ? 1 : 0;
  if (kFunction == kLessOrEqual) return a <= b ? 1 : 0;
  if (kFunction == kGreater) return a > b ? 1 : 0;
  if (kFunction == kGreaterOrEqual) return a >= b ? 1 : 0;
  if (kFunction == kAnd) return a != 0 && b != 0 ? 1 : 0;
  if (kFunction == kOr) return a != 0 || b != 0 ? 1 : 0;
  return (a != 0) != (b != 0) ? 1 : 0;  // kXor
}

// Toward zero, and what a 64-bit integer cannot hold becomes its least, as on the CPU.
int64_t whole_of(float x) {
  return is_nan(x) || x >= 9.2233720e18 || x < -9.2233720e18 ? int64_t(1) << 63 : int64_t(x);
}

void main() {
  const uint i = linear_index();
  if (i >= words[5]) return;
  uint at0 = 0, at1 = 0, at2 = 0, rest = i;
  for (int d = int(kRank) - 1; d >= 0; --d) {
    const uint extent = words[6 + d], position = d == 0 ? rest : rest % extent;
    rest /= extent;
    at0 += position * words[12 + d];
    if (kForm == 1 || kForm == 2) at1 += position * words[18 + d];
    if (kForm == 2 || kCombine != kNoFunction) at2 += position * words[24 + d];
  }
  if (kForm == 2) {
    const bool chosen = load_integer(kType0, kPlace0, words[0], at0) != 0;
    if (kType4 == kFloat32) {
      const float a = load1(at1), b = load2(at2);
      store4(i, chosen ? a : b);
      return;
    }
    const int64_t a = load_integer(kType1, kPlace1, words[1], at1), b = load_integer(kType2, kPlace2, words[2], at2);
    store_integer(i, chosen ? a : b);
    return;
  }
  if (kForm == 3) {
    if (kType0 != kFloat32) {
      store_integer(i, load_integer(kType0, kPlace0, words[0], at0));
      return;
    }
    const float x = load0(at0);
    if (kType4 == kFloat32) {
      store4(i, x);
      return;
    }
    store_integer(i, kType4 == kBool ? (x != 0 ? int64_t(1) : int64_t(0)) : whole_of(x));
    return;
  }
  if (kType0 != kFloat32) {
    const int64_t a = load_integer(kType0, kPlace0, words[0], at0);
    store_integer(
        i, kForm == 0 ? whole_unary(a) : whole_binary(a, load_integer(kType1, kPlace1, words[1], at1)));
    return;
  }
  float y = load0(at0);
  y = kForm == 0 ? unary(kFunction, y, kAlpha, kBeta) : binary(kFunction, y, load1(at1));
  if (kType4 != kFloat32) {
    store_integer(i, y != 0 ? int64_t(1) : int64_t(0));
    return;
  }
  y = unary(kFirst, y, kFirstAlpha, kFirstBeta);
  if (kCombine != kNoFunction) y = binary(kCombine, y, load3(at2));
  store4(i, unary(kSecond, y, kSecondAlpha, kSecondBeta));
}
