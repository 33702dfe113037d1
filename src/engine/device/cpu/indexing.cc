// Gather, Where and Pad: operators that choose elements.
#include <algorithm>
#include <cstring>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/index_check.h"
#include "engine/device/cpu/strided_loop.h"
#include "engine/device/cpu/typed.h"

namespace foliot {
namespace {

// Copies rows of X by index. Indices come from clients: one that is out of range
// reads as zeros, and the row of the batch that brought it is refused.
template <typename Index>
class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        indices_(view.input_index(1)),
        to_(view.output_index()),
        count_(static_cast<int64_t>(element_count(view.input(1).shape))),
        check_(view, view.input(0).shape.at(static_cast<size_t>(view.attributes().integer("axis")))) {
    const Shape& shape = view.input(0).shape;
    const auto axis = static_cast<std::ptrdiff_t>(view.attributes().integer("axis"));
    outer_ = static_cast<int64_t>(element_count(Shape(shape.begin(), shape.begin() + axis)));
    extent_ = shape[static_cast<size_t>(axis)];
    row_bytes_ = byte_size(view.input(0).type, Shape(shape.begin() + axis + 1, shape.end()));
  }

  Status run(Addresses addresses) override {
    const Index* indices = reinterpret_cast<const Index*>(addresses[indices_]);
    const std::byte* from = addresses[from_];
    std::byte* to = addresses[to_];
    check_.run(indices);
    parallel_for(outer_ * count_, outer_ * count_ * static_cast<int64_t>(row_bytes_), [&](int64_t i) {
      const auto index = static_cast<int64_t>(indices[i % count_]);
      const int64_t row = index < 0 ? index + extent_ : index;
      std::byte* target = to + static_cast<uint64_t>(i) * row_bytes_;
      if (row < 0 || row >= extent_)
        std::memset(target, 0, row_bytes_);
      else
        std::memcpy(target, from + static_cast<uint64_t>(i / count_ * extent_ + row) * row_bytes_, row_bytes_);
    });
    return Status();
  }

  const RowSet* failed_rows() const override { return check_.failed_rows(); }

 private:
  TensorIndex from_, indices_, to_;
  int64_t count_, outer_ = 1, extent_ = 1;
  uint64_t row_bytes_ = 1;
  IndexCheck check_;
};

template <typename T>
class WhereKernel : public Kernel {
 public:
  explicit WhereKernel(const OperatorView& view)
      : condition_(view.input_index(0)),
        a_(view.input_index(1)),
        b_(view.input_index(2)),
        to_(view.output_index()),
        loop_(view.output().shape,
              {broadcast_strides(view.input(0).shape, view.output().shape),
               broadcast_strides(view.input(1).shape, view.output().shape),
               broadcast_strides(view.input(2).shape, view.output().shape), dense_strides(view.output().shape)}) {}

  Status run(Addresses addresses) override {
    const auto* condition = reinterpret_cast<const uint8_t*>(addresses[condition_]);
    const T* a = reinterpret_cast<const T*>(addresses[a_]);
    const T* b = reinterpret_cast<const T*>(addresses[b_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    const auto& strides = loop_.inner_strides();
    // The common strides are written out, so that the compiler can vectorise them.
    const bool plain = strides[0] == 1 && strides[1] <= 1 && strides[2] <= 1;
    loop_.run([&](const auto& offsets, int64_t count) {
      const uint8_t* chosen = condition + offsets[0];
      const T* left = a + offsets[1];
      const T* right = b + offsets[2];
      T* target = to + offsets[3];
      if (!plain) {
        for (int64_t i = 0; i < count; ++i)
          target[i] = chosen[i * strides[0]] != 0 ? left[i * strides[1]] : right[i * strides[2]];
      } else if (strides[1] == 1) {
        strides[2] == 1 ? select<1, 1>(chosen, left, right, target, count)
                        : select<1, 0>(chosen, left, right, target, count);
      } else {
        strides[2] == 1 ? select<0, 1>(chosen, left, right, target, count)
                        : select<0, 0>(chosen, left, right, target, count);
      }
    });
    return Status();
  }

 private:
  // Both are read before one is chosen: a branch could not be foreseen.
  template <int64_t kLeftStride, int64_t kRightStride>
  static void select(const uint8_t* chosen, const T* a, const T* b, T* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const T left = a[i * kLeftStride];
      const T right = b[i * kRightStride];
      to[i] = chosen[i] != 0 ? left : right;
    }
  }

  TensorIndex condition_, a_, b_, to_;
  StridedLoop<4> loop_;
};

// Where along one dimension each padded position reads from; kOutside: the value.
constexpr int64_t kOutside = -1;

std::vector<int64_t> pad_sources(int64_t extent, int64_t begin, int64_t padded, const std::string& mode) {
  std::vector<int64_t> sources(static_cast<size_t>(padded));
  for (int64_t i = 0; i < padded; ++i) {
    int64_t at = i - begin;
    if (at < 0 || at >= extent) {
      if (mode == "constant" || extent == 0)
        at = kOutside;
      else if (mode == "edge")
        at = std::clamp<int64_t>(at, 0, extent - 1);
      else if (extent == 1)
        at = 0;
      else {
        const int64_t period = 2 * (extent - 1);
        at = (at % period + period) % period;
        at = std::min(at, period - at);
      }
    }
    sources[static_cast<size_t>(i)] = at;
  }
  return sources;
}

template <typename T>
class PadKernel : public Kernel {
 public:
  PadKernel(const OperatorView& view, T value)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        value_(value),
        strides_(dense_strides(view.input(0).shape)) {
    const Shape& shape = view.output().shape;
    for (size_t d = 0; d < shape.size(); ++d)
      sources_.push_back(pad_sources(view.input(0).shape[d], view.attributes().integers("pads").at(d), shape[d],
                                     view.attributes().text("mode")));
  }

  Status run(Addresses addresses) override {
    T* to = reinterpret_cast<T*>(addresses[to_]);
    pad(0, reinterpret_cast<const T*>(addresses[from_]), true, to);
    return Status();
  }

 private:
  void pad(size_t d, const T* from, bool inside, T*& to) const {
    if (sources_.empty()) {  // a scalar
      *to = *from;
      return;
    }
    if (d + 1 == sources_.size() && !inside) {
      to = std::fill_n(to, sources_[d].size(), value_);
      return;
    }
    if (d + 1 == sources_.size()) {
      for (int64_t source : sources_[d]) *to++ = source == kOutside ? value_ : from[source];
      return;
    }
    for (int64_t source : sources_[d])
      pad(d + 1, source == kOutside ? from : from + source * strides_[d], inside && source != kOutside, to);
  }

  TensorIndex from_, to_;
  T value_;
  Shape strides_;
  std::vector<std::vector<int64_t>> sources_;  // by dimension, by position in the result
};

// The padding value in the tensor's type. Kinds of 16-bit floats are moved as
// integers, and can only be padded with zero.
template <typename T>
T pad_value(double value) {
  return static_cast<T>(value);
}

Status only_zero(DataType type) {
  return Status::unimplemented(fmt::format("pads {} with zero only; cast it before", to_string(type)));
}

bool is_computed(DataType type) {
  return visit_type(type, [](auto) { return Status(); }).ok();
}

}  // namespace

Result<bool> lower_gather(const Node& node, GraphLowering& lowering) {
  const DataType type = lowering.value(node.inputs.at(1)).type;
  if (type != DataType::kInt32 && type != DataType::kInt64)
    return Status::unimplemented("indices must be INT32 or INT64");
  FOLIOT_RETURN_IF_ERROR(lowering.emit_indexing(node, "foliot:gather"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_gather(const OperatorView& view) {
  if (view.input(1).type == DataType::kInt32)
    return std::unique_ptr<Kernel>(std::make_unique<GatherKernel<int32_t>>(view));
  return std::unique_ptr<Kernel>(std::make_unique<GatherKernel<int64_t>>(view));
}

Result<bool> lower_where(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:where"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_where(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_size(size_of(view.output().type), [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<WhereKernel<T>>(view);
    return Status();
  }));
  return kernel;
}

Result<bool> lower_pad(const Node& node, GraphLowering& lowering) {
  const DataType type = lowering.value(node.outputs[0]).type;
  if (!is_computed(type) && node.attributes.real("value") != 0) return only_zero(type);
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:pad"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_pad(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  const auto make = [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<PadKernel<T>>(view, pad_value<T>(view.attributes().real("value")));
    return Status();
  };
  const DataType type = view.output().type;
  FOLIOT_RETURN_IF_ERROR(is_computed(type) ? visit_type(type, make) : visit_size(size_of(type), make));
  return kernel;
}

}  // namespace foliot
