// Plan check: validates a plan from outside before it is used, on every kind of device.
#ifndef FOLIOT_ENGINE_DEVICE_PLAN_CHECK_H_
#define FOLIOT_ENGINE_DEVICE_PLAN_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "engine/device/plan.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// The most dimensions that a tensor may have.
inline constexpr size_t kPlanRankMax = 12;
// The largest width and height that kDecodeJpeg makes, and the most pixels of a JPEG.
inline constexpr int64_t kImageExtentMax = 4096;
inline constexpr int64_t kImagePixelsMax = int64_t{1} << 28;
// The most classes that kPairCoupling takes.
inline constexpr int64_t kCoupledClassesMax = 1000;

// What a layout (Tensor::layout) says of a tensor of this type. Errors: kInvalidArgument for
// bytes that are no layout of this device.
struct LayoutSize {
  uint64_t elements = 0;
  uint64_t bytes = 0;
};
using ReadLayout = std::function<Result<LayoutSize>(DataType type, const std::string& layout)>;

// Whether all indices are in range, every tensor lies within its place and is as
// large as its layout says, and every operator has the inputs, outputs and
// attributes that its kind demands. Errors: kInvalidArgument.
Status check_plan(const Plan& plan, uint64_t weights_bytes, const ReadLayout& read_layout);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_PLAN_CHECK_H_
