// Lowering for Vulkan: one graph becomes one plan with an operator for each node, without a driver.
//
// Reshapes are views where they can be; weights of products and convolutions are packed so that a shader reads four at
// a time; an output that is no result of its own is copied.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_LOWERING_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/graph.h"
#include "engine/device/plan.h"
#include "engine/device/plan_check.h"
#include "foundation/base/status.h"

namespace foliot {

// Constants of all graphs of a program, each in each form that is asked for once.
class PackedConstants {
 public:
  using Pack = std::vector<std::byte> (*)(std::span<const std::byte> dense, std::span<const int64_t> extents);

  // The index of `constant` in this form. `form` names it; with `pack` null it is dense.
  uint32_t index(const std::shared_ptr<const std::vector<std::byte>>& constant, const std::string& form, Pack pack,
                 std::span<const int64_t> extents);
  std::vector<std::vector<std::byte>> take() && { return std::move(constants_); }

 private:
  std::map<std::pair<const void*, std::string>, uint32_t> known_;
  std::vector<std::vector<std::byte>> constants_;
};

// Errors: kUnimplemented naming the node.
Result<Plan> lower_for_vulkan(const Graph& graph, PackedConstants& constants);

// Of the packed layouts (operator_dispatches.h). Errors: kInvalidArgument.
Result<LayoutSize> vulkan_layout_size(DataType type, const std::string& layout);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_LOWERING_H_
