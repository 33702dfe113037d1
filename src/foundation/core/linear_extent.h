// LinearExtent: the extent of an output's dimension as it follows from that of a variable
// dimension of the inputs: (multiplier * dimension + offset) / divisor, rounded down.
//
// As text it is the name of the output's dimension: "sequence / 2", "(frames - 80) / 160",
// "256 * frames". Buckets hold the dimension's extent under that name.
#ifndef FOLIOT_FOUNDATION_CORE_LINEAR_EXTENT_H_
#define FOLIOT_FOUNDATION_CORE_LINEAR_EXTENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foliot {

struct LinearExtent {
  std::string dimension;
  int64_t multiplier = 1;  // >= 1
  int64_t offset = 0;
  int64_t divisor = 1;  // >= 1

  // At least 0. `extent`: of the dimension, >= 0.
  int64_t of(int64_t extent) const;
  bool operator==(const LinearExtent&) const = default;
};

std::string to_string(const LinearExtent& extent);
// What to_string() writes; nullopt for any other text.
std::optional<LinearExtent> parse_linear_extent(std::string_view text);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_LINEAR_EXTENT_H_
