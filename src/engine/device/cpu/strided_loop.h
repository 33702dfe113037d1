// StridedLoop: walks several tensors of one shape at a time, each with strides of
// its own (0 where it broadcasts). Dimensions are merged where all operands allow
// it, so that the innermost run is as long as it can be.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_STRIDED_LOOP_H_
#define FOLIOT_ENGINE_DEVICE_CPU_STRIDED_LOOP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/cpu/layout.h"
#include "engine/device/cpu/parallel.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Strides in elements of a dense tensor of shape `operand`, walked as `shape`,
// to which it broadcasts.
inline Shape broadcast_strides(const Shape& operand, const Shape& shape) {
  const Shape padded = padded_shape(operand, shape.size());
  Shape strides = dense_strides(padded);
  for (size_t d = 0; d < shape.size(); ++d)
    if (padded[d] == 1) strides[d] = 0;
  return strides;
}

template <size_t kOperands>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, kOperands>;

  StridedLoop(const Shape& shape, const std::array<Shape, kOperands>& strides) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      Dimension next{.extent = shape[d], .strides = {}};
      for (size_t i = 0; i < kOperands; ++i) next.strides[i] = strides[i][d];
      if (!dimensions_.empty() && merges(dimensions_.back(), next)) {
        next.extent *= dimensions_.back().extent;
        dimensions_.back() = next;
      } else {
        dimensions_.push_back(next);
      }
    }
    if (dimensions_.empty()) dimensions_.push_back({.extent = 1, .strides = {}});
    inner_ = dimensions_.back();
    dimensions_.pop_back();
    for (const Dimension& dimension : dimensions_) runs_ *= dimension.extent;
  }

  // Strides of the innermost run.
  const Offsets& inner_strides() const { return inner_.strides; }
  // The elements of the innermost run, if it is the only one; else 0.
  int64_t only_run() const { return runs_ == 1 ? inner_.extent : 0; }

  // Calls body(offsets, count) for runs of `count` elements that begin at these
  // offsets, in elements.
  template <typename Body>
  void run(const Body& body) const {
    const int64_t work = runs_ * inner_.extent * 4;
    if (work == 0) return;
    if (dimensions_.empty()) {
      const int64_t pieces = (inner_.extent + kPiece - 1) / kPiece;
      parallel_for(pieces, work, [&](int64_t piece) {
        Offsets offsets;
        for (size_t i = 0; i < kOperands; ++i) offsets[i] = piece * kPiece * inner_.strides[i];
        body(offsets, std::min(kPiece, inner_.extent - piece * kPiece));
      });
      return;
    }
    parallel_for(dimensions_[0].extent, work, [&](int64_t first) {
      Offsets offsets;
      for (size_t i = 0; i < kOperands; ++i) offsets[i] = first * dimensions_[0].strides[i];
      walk(1, offsets, body);
    });
  }

  // The same on the calling thread alone, in order.
  template <typename Body>
  void run_serially(const Body& body) const {
    if (runs_ * inner_.extent > 0) walk(0, Offsets{}, body);
  }

 private:
  static constexpr int64_t kPiece = 8192;

  struct Dimension {
    int64_t extent = 1;
    Offsets strides{};
  };

  static bool merges(const Dimension& outer, const Dimension& inner) {
    for (size_t i = 0; i < kOperands; ++i)
      if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
    return true;
  }

  template <typename Body>
  void walk(size_t d, Offsets offsets, const Body& body) const {
    if (d == dimensions_.size()) return body(offsets, inner_.extent);
    for (int64_t position = 0; position < dimensions_[d].extent; ++position) {
      walk(d + 1, offsets, body);
      for (size_t i = 0; i < kOperands; ++i) offsets[i] += dimensions_[d].strides[i];
    }
  }

  std::vector<Dimension> dimensions_;  // all but the innermost, outermost first
  Dimension inner_;
  int64_t runs_ = 1;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_STRIDED_LOOP_H_
