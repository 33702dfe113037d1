// OutputExtents: finds out how the extents of outputs follow from the variable dimensions
// of the inputs, by asking what shapes the outputs have for other sizes of these.
#ifndef FOLIOT_ENGINE_COMPILER_OUTPUT_EXTENTS_H_
#define FOLIOT_ENGINE_COMPILER_OUTPUT_EXTENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foundation/core/linear_extent.h"
#include "foundation/core/tensor.h"

namespace foliot {

// How one extent of an output is found.
struct ExtentRule {
  bool is_fixed = false;
  std::optional<LinearExtent> linear{};  // nullopt, and not fixed: it is not known
};

class OutputExtents {
 public:
  using Sizes = std::map<std::string, int64_t>;  // of all variable dimensions
  // The shapes of all outputs; nullopt if the model cannot be computed for these sizes.
  using Shapes = std::function<std::optional<std::vector<Shape>>(const Sizes&)>;

  // `largest`: the sizes from which it looks downwards.
  OutputExtents(Shapes shapes, Sizes largest) : shapes_(std::move(shapes)), largest_(std::move(largest)) {}

  // Follows one dimension only where no other matters. REQUIRES: shapes(largest) has
  // this output and axis.
  ExtentRule find(size_t output, size_t axis);

 private:
  // One extent, by the size of one dimension; -1 if there is none.
  using Extent = std::function<int64_t(int64_t size)>;

  int64_t extent(const std::string& dimension, int64_t size, size_t output, size_t axis);
  static std::optional<LinearExtent> fit(int64_t largest, const Extent& extent);

  const Shapes shapes_;
  const Sizes largest_;
  std::map<std::pair<std::string, int64_t>, std::optional<std::vector<Shape>>> known_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OUTPUT_EXTENTS_H_
