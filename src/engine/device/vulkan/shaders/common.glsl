// What every shader shares: where operands are, how elements are read and written, functions of one and two
// operands, and the epilogue that a product ends with. Constants 0 to 13 and the first five words mean the same
// in all shaders; engine/device/vulkan/dispatch.h has the host's side.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int32 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 64) in;

layout(constant_id = 0) const uint kPageShift = 12;
// Of operands 0 to 4: kPlace..., the order of engine/device/plan.h.
layout(constant_id = 1) const uint kPlace0 = 1;
layout(constant_id = 2) const uint kPlace1 = 1;
layout(constant_id = 3) const uint kPlace2 = 1;
layout(constant_id = 4) const uint kPlace3 = 1;
layout(constant_id = 5) const uint kPlace4 = 1;
// The epilogue: y = second(combine(first(y), operand 3)).
layout(constant_id = 6) const uint kFirst = 255;
layout(constant_id = 7) const float kFirstAlpha = 0;
layout(constant_id = 8) const float kFirstBeta = 0;
layout(constant_id = 9) const uint kCombine = 255;
layout(constant_id = 10) const uint kCombineAt = 0;
layout(constant_id = 11) const uint kSecond = 255;
layout(constant_id = 12) const float kSecondAlpha = 0;
layout(constant_id = 13) const float kSecondBeta = 0;

const uint kPlaceWeights = 0;
const uint kNoFunction = 255;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Run {
  uint64_t bases[4];  // by place; of the weights: the table of their pages
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer PageTable { uint64_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Float { float value; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Float4 { vec4 value; };
layout(buffer_reference, std430, buffer_reference_align = 1) buffer Byte { uint8_t value; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Short { uint16_t value; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Int { int value; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Long { int64_t value; };

layout(push_constant, std430) uniform Words {
  uint64_t run;
  uint words[30];  // 0 to 4: the operands' offsets in bytes
};

uint linear_index() { return gl_WorkGroupID.y * (gl_NumWorkGroups.x * 64) + gl_GlobalInvocationID.x; }

// The address of byte `byte` of an operand.
uint64_t address_of(uint place, uint offset, uint byte) {
  const uint at = offset + byte;
  const uint64_t base = Run(run).bases[place];
  if (place == kPlaceWeights) return PageTable(base).at[at >> kPageShift] + (at & ((1u << kPageShift) - 1));
  return base + at;
}

float load0(uint i) { return Float(address_of(kPlace0, words[0], 4 * i)).value; }
float load1(uint i) { return Float(address_of(kPlace1, words[1], 4 * i)).value; }
float load2(uint i) { return Float(address_of(kPlace2, words[2], 4 * i)).value; }
float load3(uint i) { return Float(address_of(kPlace3, words[3], 4 * i)).value; }
void store4(uint i, float value) { Float(address_of(kPlace4, words[4], 4 * i)).value = value; }

// llvmpipe loses the sign of a conversion.
int64_t widened(int x) { return packInt2x32(ivec2(x, x >> 31)); }

// The numbers of engine/device/function.h.
const uint kRelu = 0, kSigmoid = 1, kTanh = 2, kErf = 3, kExp = 4, kLog = 5, kSqrt = 6, kNeg = 7, kAbs = 8,
           kReciprocal = 9, kFloor = 10, kCeil = 11, kRound = 12, kSign = 13, kNot = 14, kGelu = 15, kGeluTanh = 16,
           kSoftplus = 17, kHardSwish = 18, kSilu = 19, kSin = 20, kCos = 21, kTan = 22, kAsin = 23, kAcos = 24,
           kAtan = 25, kSinh = 26, kCosh = 27, kAsinh = 28, kAcosh = 29, kAtanh = 30, kClip = 31, kLeakyRelu = 32,
           kElu = 33, kHardSigmoid = 34, kLinear = 35, kAdd = 36, kSub = 37, kMul = 38, kDiv = 39, kPow = 40,
           kMin = 41, kMax = 42, kEqual = 43, kLess = 44, kLessOrEqual = 45, kGreater = 46, kGreaterOrEqual = 47,
           kAnd = 48, kOr = 49, kXor = 50, kMod = 51, kFmod = 52, kPrelu = 53, kMean = 59, kSum = 60, kProd = 61,
           kL1 = 62, kL2 = 63, kSumSquare = 64, kLogSumExp = 65;

// By the bits: a compiler may assume that there is no NaN, and min(), max() and clamp() may drop one.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
float at_least(float x, float least) { return is_nan(x) || x > least ? x : least; }
float at_most(float x, float most) { return is_nan(x) || x < most ? x : most; }

// Within 1.5e-7: 7.1.26 of Abramowitz and Stegun.
float error_function(float x) {
  const float t = 1 / (1 + 0.3275911 * abs(x));
  const float series =
      ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  const float y = 1 - series * exp(-x * x);
  return is_nan(x) ? x : x < 0 ? -y : y;
}

float tangent(float x) { return is_nan(x) ? x : tanh(at_most(at_least(x, -20), 20)); }
float logistic(float x) { return 1 / (1 + exp(-x)); }

float unary(uint function, float x, float alpha, float beta) {
  if (function == kNoFunction) return x;
  if (function == kRelu) return at_least(x, 0);
  if (function == kSigmoid) return logistic(x);
  if (function == kTanh) return tangent(x);
  if (function == kErf) return error_function(x);
  if (function == kExp) return exp(x);
  if (function == kLog) return log(x);
  if (function == kSqrt) return sqrt(x);
  if (function == kNeg) return -x;
  if (function == kAbs) return abs(x);
  if (function == kReciprocal) return 1 / x;
  if (function == kFloor) return floor(x);
  if (function == kCeil) return ceil(x);
  if (function == kRound) return roundEven(x);
  if (function == kSign) return is_nan(x) ? x : sign(x);
  if (function == kGelu) return 0.5 * x * (1 + error_function(x * 0.70710678));
  if (function == kGeluTanh) return 0.5 * x * (1 + tangent(0.79788456 * (x + 0.044715 * x * x * x)));
  if (function == kSoftplus) return x > 20 ? x : log(1 + exp(x));
  if (function == kHardSwish) return x * at_most(at_least(x + 3, 0), 6) / 6;
  if (function == kSilu) return x * logistic(x);
  if (function == kSin) return sin(x);
  if (function == kCos) return cos(x);
  if (function == kTan) return tan(x);
  if (function == kAsin) return asin(x);
  if (function == kAcos) return acos(x);
  if (function == kAtan) return is_nan(x) ? x : atan(x);
  if (function == kSinh) return sinh(x);
  if (function == kCosh) return cosh(x);
  if (function == kAsinh) return asinh(x);
  if (function == kAcosh) return acosh(x);
  if (function == kAtanh) return atanh(x);
  if (function == kClip) return at_most(at_least(x, alpha), beta);
  if (function == kLeakyRelu) return x < 0 ? alpha * x : x;
  if (function == kElu) return x < 0 ? alpha * (exp(x) - 1) : x;
  if (function == kHardSigmoid) return at_most(at_least(alpha * x + beta, 0), 1);
  return alpha * x + beta;  // kLinear
}

// pow() is undefined for a negative base, and pow(0, 0) may be 0.
float power(float a, float b) {
  if (b == 0 || a == 1) return 1;
  if (is_nan(a) || is_nan(b)) return a + b;
  if (b == 1) return a;
  if (b == 2) return a * a;
  if (b == 3) return a * a * a;
  if (b == 0.5) return sqrt(a);
  if (a == 0) return b > 0 ? 0 : 1 / abs(a);
  if (a > 0) return pow(a, b);
  if (floor(b) != b) return uintBitsToFloat(0x7fc00000u);
  const float magnitude = pow(-a, b);
  return mod(b, 2) == 0 ? magnitude : -magnitude;
}

float binary(uint function, float a, float b) {
  if (function == kAdd) return a + b;
  if (function == kSub) return a - b;
  if (function == kMul) return a * b;
  if (function == kDiv) return a / b;
  if (function == kPow) return power(a, b);
  if (function == kMin) return is_nan(b) ? b : at_most(a, b);
  if (function == kMax) return is_nan(b) ? b : at_least(a, b);
  if (function == kEqual) return a == b ? 1 : 0;
  if (function == kLess) return a < b ? 1 : 0;
  if (function == kLessOrEqual) return a <= b ? 1 : 0;
  if (function == kGreater) return a > b ? 1 : 0;
  if (function == kGreaterOrEqual) return a >= b ? 1 : 0;
  if (function == kMod) return a - b * floor(a / b);
  if (function == kFmod) return a - b * trunc(a / b);
  return a < 0 ? a * b : a;  // kPrelu
}

const uint kAtSame = 0, kAtChannel = 1, kAtScalar = 2;

// What becomes of result `index`, whose channel (or column) is `channel`.
float finish(float y, uint index, uint channel) {
  y = unary(kFirst, y, kFirstAlpha, kFirstBeta);
  if (kCombine != kNoFunction)
    y = binary(kCombine, y, load3(kCombineAt == kAtSame ? index : kCombineAt == kAtChannel ? channel : 0));
  return unary(kSecond, y, kSecondAlpha, kSecondBeta);
}
