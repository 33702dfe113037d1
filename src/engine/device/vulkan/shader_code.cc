#include "engine/device/vulkan/shader_code.h"

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr uint32_t kPointwiseCode[] = {
#include "pointwise.inc"
};
constexpr uint32_t kProductCode[] = {
#include "product.inc"
};
constexpr uint32_t kConvolutionCode[] = {
#include "convolution.inc"
};
constexpr uint32_t kPoolCode[] = {
#include "pool.inc"
};
constexpr uint32_t kRowsCode[] = {
#include "rows.inc"
};
constexpr uint32_t kMoveCode[] = {
#include "move.inc"
};
constexpr uint32_t kResizeCode[] = {
#include "resize.inc"
};

}  // namespace

std::span<const uint32_t> shader_code(Shader shader) {
  switch (shader) {
    case Shader::kPointwise: return kPointwiseCode;
    case Shader::kProduct: return kProductCode;
    case Shader::kConvolution: return kConvolutionCode;
    case Shader::kPool: return kPoolCode;
    case Shader::kRows: return kRowsCode;
    case Shader::kMove: return kMoveCode;
    case Shader::kResize: return kResizeCode;
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
