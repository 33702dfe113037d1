#include "answer/versions/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

namespace foliot {
namespace {

constexpr double kRelativeDifference = 0.01;

template <typename T>
std::vector<T> values_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

bool is_near(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= kRelativeDifference * std::max(std::abs(a), std::abs(b));
}

template <typename T>
bool rows_agree(const Prediction::Output& one, const Prediction::Output& other) {
  const std::vector<T> a = values_of<T>(one.bytes);
  const std::vector<T> b = values_of<T>(other.bytes);
  const size_t width = one.shape.empty() ? 1 : static_cast<size_t>(std::max<int64_t>(one.shape.back(), 1));
  if (one.shape.size() < 2 || width == 1) return std::ranges::equal(a, b, is_near);
  for (size_t row = 0; row + width <= a.size(); row += width) {
    const std::span<const T> left(a.data() + row, width);
    const std::span<const T> right(b.data() + row, width);
    if (std::ranges::max_element(left) - left.begin() != std::ranges::max_element(right) - right.begin()) return false;
  }
  return true;
}

bool outputs_agree(const Prediction::Output& one, const Prediction::Output& other) {
  if (one.spec.name != other.spec.name || one.spec.type != other.spec.type || one.shape != other.shape ||
      one.bytes.size() != other.bytes.size()) {
    return false;
  }
  if (one.spec.type == DataType::kFloat32) return rows_agree<float>(one, other);
  if (one.spec.type == DataType::kFloat64) return rows_agree<double>(one, other);
  return one.bytes == other.bytes;
}

}  // namespace

bool agree(const Prediction& one, const Prediction& other) {
  return std::ranges::equal(one.outputs, other.outputs, outputs_agree);
}

}  // namespace foliot
