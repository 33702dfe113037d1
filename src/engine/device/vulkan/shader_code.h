// Shader code: the shaders as SPIR-V, made when the project was built.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_SHADER_CODE_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_SHADER_CODE_H_

#include <cstdint>
#include <span>

#include "engine/device/vulkan/dispatch.h"

namespace foliot {

std::span<const uint32_t> shader_code(Shader shader);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_SHADER_CODE_H_
