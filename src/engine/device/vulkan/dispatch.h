// Dispatch: one run of a shader over memory of a device, before it is recorded.
//
// All shaders read their operands alike (shaders/common.glsl): constants 1 to 5 say in which place operands 0 to 4
// are, 6 to 13 are the epilogue, words 0 to 4 the offsets of the operands in their places. Operand 4 is the result,
// operand 2 a bias, operand 3 what the epilogue combines the result with.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_DISPATCH_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_DISPATCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/device/plan.h"
#include "foundation/base/status.h"

namespace foliot {

enum class Shader : uint8_t { kPointwise, kProduct, kConvolution, kPool, kRows, kMove, kResize };
inline constexpr size_t kShaderCount = 7;
// "vulkan:product".
std::string_view to_string(Shader shader);

inline constexpr uint32_t kInvocationsPerGroup = 64;
inline constexpr size_t kShaderWordsMax = 30;
// Constant 0 is the size of a page, known when a plan is prepared.
inline constexpr size_t kShaderConstantsMax = 25;
// What a constant of the epilogue is where there is none.
inline constexpr uint32_t kNoFunctionCode = 255;
inline constexpr size_t kResultOperand = 4;
// Of all loops of an invocation together: lavapipe ends an invocation silently after 65,535.
inline constexpr uint64_t kLoopRoundsMax = 60'000;

// Bytes of a place, of which those of kWeights, kInput and kOutput are all of one program and run.
struct PlaceRange {
  Place place = Place::kWorkspace;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  bool overlaps(const PlaceRange& other) const {
    return place == other.place && offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

struct Dispatch {
  Shader shader = Shader::kMove;
  std::array<uint32_t, kShaderConstantsMax> constants{};
  std::array<uint32_t, kShaderWordsMax> words{};
  uint32_t groups_x = 1, groups_y = 1;
  std::vector<PlaceRange> reads;
  std::vector<PlaceRange> writes;
};

// DispatchBuilder: writes one dispatch. What a shader reads and writes is known from its operands alone.
class DispatchBuilder {
 public:
  explicit DispatchBuilder(Shader shader);

  void read(size_t operand, const Tensor& tensor);
  void write(const Tensor& tensor);
  void constant(size_t id, uint32_t value) { dispatch_.constants.at(id) = value; }
  void real(size_t id, double value);
  void words(size_t first, std::initializer_list<uint64_t> values);
  // Signed ones are as the shader's arithmetic modulo 2^32 has them.
  void words(size_t first, const std::vector<int64_t>& values);

  // Errors: kUnimplemented for more invocations, or offsets, than 32 bits count.
  Result<Dispatch> over(uint64_t invocations);
  // The same with a workgroup for each of so many.
  Result<Dispatch> over_groups(uint64_t groups);

 private:
  void operand(size_t operand, const Tensor& tensor);

  Dispatch dispatch_;
  bool fits_ = true;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_DISPATCH_H_
