// GatherElements, ScatterElements, TopK and Cumulative: operators that work along
// one dimension, each line of elements by itself.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/index_check.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/strided_loop.h"
#include "engine/device/cpu/typed.h"

namespace foliot {
namespace {

// A dense tensor as lines along one dimension.
struct Lines {
  int64_t outer = 1, extent = 1, inner = 1;

  Lines(const Shape& shape, int64_t axis) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto position = static_cast<int64_t>(d);
      (position < axis ? outer : position == axis ? extent : inner) *= shape[d];
    }
  }
  int64_t count() const { return outer * inner; }
  // Where line i begins; its elements are `inner` apart.
  int64_t start(int64_t i) const { return i / inner * extent * inner + i % inner; }
};

// For each element of a tensor of indices, in order, where it stands in another
// tensor but for dimension `axis`: the same index under that one's strides.
Shape strides_but(const Shape& shape, int64_t axis) {
  Shape strides = dense_strides(shape);
  strides[static_cast<size_t>(axis)] = 0;
  return strides;
}

// Calls body(i, base) for element i of the indices, base being where its line
// begins in the other tensor.
template <typename Body>
void for_each_index(const StridedLoop<2>& loop, const Body& body) {
  const int64_t stride = loop.inner_strides()[1];
  loop.run_serially([&](const auto& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) body(offsets[0] + i, offsets[1] + i * stride);
  });
}

// Indices come from clients: one that is out of range reads as zero, and its row is refused.
template <typename T>
class GatherElementsKernel : public Kernel {
 public:
  explicit GatherElementsKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        indices_(view.input_index(1)),
        to_(view.output_index()),
        lines_(view.input(0).shape, view.attributes().integer("axis")),
        loop_(view.output().shape, {dense_strides(view.output().shape),
                                    strides_but(view.input(0).shape, view.attributes().integer("axis"))}),
        check_(view, lines_.extent) {}

  Status run(Addresses addresses) override {
    const T* from = reinterpret_cast<const T*>(addresses[from_]);
    const int64_t* indices = reinterpret_cast<const int64_t*>(addresses[indices_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    check_.run(indices);
    for_each_index(loop_, [&](int64_t i, int64_t base) {
      const int64_t index = indices[i] < 0 ? indices[i] + lines_.extent : indices[i];
      to[i] = index >= 0 && index < lines_.extent ? from[base + index * lines_.inner] : T(0);
    });
    return Status();
  }

  const RowSet* failed_rows() const override { return check_.failed_rows(); }

 private:
  TensorIndex from_, indices_, to_;
  Lines lines_;
  StridedLoop<2> loop_;
  IndexCheck check_;
};

template <typename T>
using Combine = T (*)(T old, T update);

template <typename T>
Combine<T> find_combination(Function function) {
  if (function == Function::kNone) return [](T, T update) { return update; };
  if constexpr (!std::is_same_v<T, bool>) {
    if (function == Function::kAdd) return [](T old, T update) { return static_cast<T>(old + update); };
    if (function == Function::kMul) return [](T old, T update) { return static_cast<T>(old * update); };
    if (function == Function::kMin) return [](T old, T update) { return std::min(old, update); };
    if (function == Function::kMax) return [](T old, T update) { return std::max(old, update); };
  }
  return nullptr;
}

// An update whose index is out of range is left out, and its row refused.
template <typename T>
class ScatterElementsKernel : public Kernel {
 public:
  ScatterElementsKernel(const OperatorView& view, Combine<T> combine)
      : from_(view.input_index(0)),
        indices_(view.input_index(1)),
        updates_(view.input_index(2)),
        to_(view.output_index()),
        bytes_(view.output().bytes),
        combine_(combine),
        lines_(view.output().shape, view.attributes().integer("axis")),
        loop_(view.input(1).shape, {dense_strides(view.input(1).shape),
                                    strides_but(view.output().shape, view.attributes().integer("axis"))}),
        check_(view, lines_.extent) {}

  Status run(Addresses addresses) override {
    const int64_t* indices = reinterpret_cast<const int64_t*>(addresses[indices_]);
    const T* updates = reinterpret_cast<const T*>(addresses[updates_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    std::memcpy(to, addresses[from_], bytes_);
    check_.run(indices);
    for_each_index(loop_, [&](int64_t i, int64_t base) {
      const int64_t index = indices[i] < 0 ? indices[i] + lines_.extent : indices[i];
      if (index < 0 || index >= lines_.extent) return;
      T& element = to[base + index * lines_.inner];
      element = combine_(element, updates[i]);
    });
    return Status();
  }

  const RowSet* failed_rows() const override { return check_.failed_rows(); }

 private:
  TensorIndex from_, indices_, updates_, to_;
  uint64_t bytes_;
  Combine<T> combine_;
  Lines lines_;
  StridedLoop<2> loop_;
  IndexCheck check_;
};

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// NaN counts as the largest.
template <typename T>
bool less(T a, T b) {
  return is_nan(b) ? !is_nan(a) : a < b;
}

template <typename T>
class TopKKernel : public Kernel {
 public:
  explicit TopKKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        largest_(view.attributes().integer("largest") != 0),
        lines_(view.input(0).shape, view.attributes().integer("axis")),
        best_(view.output().shape, view.attributes().integer("axis")),
        order_(static_cast<size_t>(lines_.extent)) {}

  Status run(Addresses addresses) override {
    const T* from = reinterpret_cast<const T*>(addresses[from_]);
    int64_t* to = reinterpret_cast<int64_t*>(addresses[to_]);
    for (int64_t i = 0; i < lines_.count(); ++i) choose(from + lines_.start(i), to + best_.start(i));
    return Status();
  }

 private:
  void choose(const T* from, int64_t* to) {
    std::iota(order_.begin(), order_.end(), 0);
    std::partial_sort(order_.begin(), order_.begin() + best_.extent, order_.end(), [&](int64_t a, int64_t b) {
      const T left = from[a * lines_.inner], right = from[b * lines_.inner];
      if (largest_ ? less(right, left) : less(left, right)) return true;
      return !(largest_ ? less(left, right) : less(right, left)) && a < b;
    });
    for (int64_t k = 0; k < best_.extent; ++k) to[k * best_.inner] = order_[static_cast<size_t>(k)];
  }

  TensorIndex from_, to_;
  bool largest_;
  Lines lines_, best_;
  std::vector<int64_t> order_;
};

template <typename T>
class CumulativeKernel : public Kernel {
 public:
  CumulativeKernel(const OperatorView& view, Combine<T> combine)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        exclusive_(view.attributes().integer("exclusive") != 0),
        reverse_(view.attributes().integer("reverse") != 0),
        // The sum of -0 alone is -0.
        neutral_(static_cast<T>(view.attributes().function() == Function::kProd ? 1.0
                                : exclusive_                                    ? 0.0
                                                                                : -0.0)),
        combine_(combine),
        lines_(view.output().shape, view.attributes().integer("axis")) {}

  Status run(Addresses addresses) override {
    const T* from = reinterpret_cast<const T*>(addresses[from_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    parallel_for(lines_.count(), lines_.count() * lines_.extent,
                 [&](int64_t i) { accumulate(from + lines_.start(i), to + lines_.start(i)); });
    return Status();
  }

 private:
  void accumulate(const T* from, T* to) const {
    T result = neutral_;
    for (int64_t i = 0; i < lines_.extent; ++i) {
      const int64_t at = (reverse_ ? lines_.extent - 1 - i : i) * lines_.inner;
      const T next = combine_(result, from[at]);
      to[at] = exclusive_ ? result : next;
      result = next;
    }
  }

  TensorIndex from_, to_;
  bool exclusive_, reverse_;
  T neutral_;
  Combine<T> combine_;
  Lines lines_;
};

Function combination_of(const Attributes& attributes) { return attributes.function("reduction"); }

Function step_of(const Attributes& attributes) {
  const Function function = attributes.function();
  return function == Function::kSum ? Function::kAdd : function == Function::kProd ? Function::kMul : function;
}

// Makes a kernel of the type's own that combines elements.
template <template <typename> class MadeKernel>
Result<std::unique_ptr<Kernel>> make_combining(const OperatorView& view, Function function) {
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_type(view.output().type, [&]<typename T>(std::type_identity<T>) {
    const Combine<T> combine = find_combination<T>(function);
    if (combine == nullptr)
      return Status::unimplemented(fmt::format("no '{}' of {}", to_string(function), to_string(view.output().type)));
    kernel = std::make_unique<MadeKernel<T>>(view, combine);
    return Status();
  }));
  return kernel;
}

Status check_combination(DataType type, Function function) {
  return visit_type(type, [&]<typename T>(std::type_identity<T>) {
    if (find_combination<T>(function) != nullptr) return Status();
    return Status::unimplemented(fmt::format("no '{}' of {}", to_string(function), to_string(type)));
  });
}

}  // namespace

Result<bool> lower_gather_elements(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(lowering.emit_indexing(node, "foliot:gather_elements"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_gather_elements(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_size(size_of(view.output().type), [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<GatherElementsKernel<T>>(view);
    return Status();
  }));
  return kernel;
}

Result<bool> lower_scatter_elements(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(check_combination(lowering.value(node.outputs[0]).type, combination_of(node.attributes)));
  FOLIOT_RETURN_IF_ERROR(lowering.emit_indexing(node, "foliot:scatter_elements"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_scatter_elements(const OperatorView& view) {
  return make_combining<ScatterElementsKernel>(view, combination_of(view.attributes()));
}

Result<bool> lower_top_k(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(visit_type(lowering.value(node.inputs[0]).type, [](auto) { return Status(); }));
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:top_k"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_top_k(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_type(view.input(0).type, [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<TopKKernel<T>>(view);
    return Status();
  }));
  return kernel;
}

Result<bool> lower_cumulative(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(check_combination(lowering.value(node.outputs[0]).type, step_of(node.attributes)));
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:cumulative"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_cumulative(const OperatorView& view) {
  return make_combining<CumulativeKernel>(view, step_of(view.attributes()));
}

}  // namespace foliot
