#include "engine/device/cpu/thread_limit.h"

#include <omp.h>

#include <algorithm>
#include <set>

#include "foundation/core/lanes.h"

namespace foliot {
namespace {

// What one thread does in 4 to 8 us.
constexpr double kMultiplicationsMax = 1 << 19;
constexpr uint64_t kElementsMax = 1 << 14;

}  // namespace

bool is_short(OperatorKind kind, const Shape& left, const Shape& right, const Shape& result) {
  const auto count = [](const Shape& shape) { return static_cast<double>(element_count(shape)); };
  switch (kind) {
    case OperatorKind::kConvolution:  // each result reads the weights of its channel
      return count(result) * count(right) <= kMultiplicationsMax * static_cast<double>(right.at(0));
    case OperatorKind::kConvolutionTranspose:  // each operand is read with the weights of its channel
      return count(left) * count(right) <= kMultiplicationsMax * static_cast<double>(right.at(0));
    case OperatorKind::kBlockMatMul: return count(left) * static_cast<double>(result.back()) <= kMultiplicationsMax;
    case OperatorKind::kMatMul: {
      // Either operand may be one matrix for many of the other.
      const auto rows = static_cast<double>(result.at(result.size() - 2)), columns = static_cast<double>(result.back());
      return std::max(count(left) * columns, count(right) * rows) <= kMultiplicationsMax;
    }
    default: return std::max(element_count(left), element_count(result)) <= kElementsMax;
  }
}

bool is_short(const OperatorView& view) {
  return is_short(view.operation().kind, view.input(0).shape, view.has_input(1) ? view.input(1).shape : Shape(),
                  view.output().shape);
}

std::vector<uint32_t> threads_of_fewer_lanes(uint32_t threads) {
  std::set<uint32_t> counts;
  for (uint32_t lanes = 2; lanes <= std::min(threads, kLanesMax); ++lanes) {
    if (threads % lanes != 0) continue;
    for (const uint32_t width : lane_widths(lanes)) counts.insert(threads / lanes * width);
  }
  counts.erase(threads);
  return {counts.begin(), counts.end()};
}

ThreadLimit::ThreadLimit(int threads_max) : before_(omp_get_max_threads()) {
  if (before_ > threads_max) omp_set_num_threads(threads_max);
}

ThreadLimit::~ThreadLimit() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

}  // namespace foliot
