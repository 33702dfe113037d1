// Reduce and ArgReduce over dense tensors.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "engine/device/cpu/arg_reduce_rows.h"
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/strided_loop.h"
#include "engine/device/cpu/typed.h"

namespace foliot {
namespace {

// Sums of integers are exact, those of floating point wide enough for long rows.
template <typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

// Of so few elements that rounding does no harm, in which a register holds twice as many.
template <typename T>
using ShortAccumulator = std::conditional_t<std::is_same_v<T, float>, float, Accumulator<T>>;

bool is_reduction(Function function) {
  return (function >= Function::kMean && function <= Function::kLogSumExp) || function == Function::kMin ||
         function == Function::kMax;
}

// Several results at a time: of neighbours that lie together, else the partial results of
// one, so that the processor need not wait for each addition before the next.
template <typename T>
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(const OperatorView& view, Function function)
      : function_(function), from_(view.input_index(0)), to_(view.output_index()), kept_({}, {}), reduced_({}, {}) {
    const Shape& shape = view.input(0).shape;
    const Shape strides = dense_strides(shape);
    Shape kept, kept_strides, reduced, reduced_strides;
    const std::vector<int64_t>& axes = view.attributes().integers("axes");
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool reduces = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
      (reduces ? reduced : kept).push_back(shape[d]);
      (reduces ? reduced_strides : kept_strides).push_back(strides[d]);
    }
    count_ = static_cast<int64_t>(element_count(reduced));
    kept_ = StridedLoop<2>(kept, {kept_strides, dense_strides(kept)});
    reduced_ = StridedLoop<1>(reduced, {reduced_strides});
  }

  Status run(Addresses addresses) override {
    const T* from = reinterpret_cast<const T*>(addresses[from_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    using A = Accumulator<T>;
    using S = ShortAccumulator<T>;
    const auto sum = [](auto a, auto x) { return a + x; };
    const auto product = [](auto a, auto x) { return a * x; };
    const auto squares = [](auto a, auto x) { return a + x * x; };
    const auto magnitudes = [](auto a, auto x) { return a + (x < 0 ? -x : x); };
    // Either operand's NaN is the result.
    const auto larger = [](auto a, auto x) { return (a < x) | (x != x) ? x : a; };
    const auto smaller = [](auto a, auto x) { return (x < a) | (x != x) ? x : a; };
    const auto itself = [](A a) { return static_cast<T>(a); };
    switch (function_) {
      case Function::kMean:
        reduce<S>(from, to, A(0), sum, sum, [this](A a) { return static_cast<T>(a / std::max<A>(A(count_), A(1))); });
        break;
      case Function::kSum: reduce<S>(from, to, A(0), sum, sum, itself); break;
      case Function::kMax: reduce<S, S>(from, to, lowest(), larger, larger, itself); break;
      case Function::kMin: reduce<S, S>(from, to, highest(), smaller, smaller, itself); break;
      case Function::kProd: reduce<A>(from, to, A(1), product, product, itself); break;
      case Function::kL1: reduce<S>(from, to, A(0), magnitudes, sum, itself); break;
      case Function::kL2:
        reduce<A>(from, to, A(0), squares, sum, [](A a) { return static_cast<T>(std::sqrt(static_cast<double>(a))); });
        break;
      case Function::kSumSquare: reduce<A>(from, to, A(0), squares, sum, itself); break;
      case Function::kLogSumExp: reduce_log_sum_exp(from, to); break;
      default: break;
    }
    return Status();
  }

 private:
  static constexpr int64_t kTogether = 16;
  static constexpr int64_t kShort = 64 * kTogether;
  static constexpr int64_t kRows = 4;
  static constexpr size_t kRegisters = 128;  // bytes: half of the vector registers of any x86-64

  // What is beyond all elements, and what the reduction of none gives.
  static constexpr Accumulator<T> lowest() {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<Accumulator<T>>::infinity();
    return static_cast<Accumulator<T>>(std::numeric_limits<T>::lowest());
  }
  static constexpr Accumulator<T> highest() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<Accumulator<T>>::infinity();
    return static_cast<Accumulator<T>>(std::numeric_limits<T>::max());
  }

  // `fold` takes an element into an accumulator, `join` another accumulator. S: the type of
  // an accumulator of up to 1024 elements: 64 in a row, then halves of what comes out. W: that of an
  // accumulator of any number.
  template <typename S, typename W = Accumulator<T>, typename Fold, typename Join, typename Finish>
  void reduce(const T* from, T* to, Accumulator<T> start, const Fold& fold, const Join& join,
              const Finish& finish) const {
    const int64_t stride = kept_.inner_strides()[0];
    kept_.run([&](const auto& offsets, int64_t count) {
      const T* first = from + offsets[0];
      T* target = to + offsets[1];
      constexpr int64_t kAcross = kRegisters / sizeof(W);
      int64_t i = 0;
      for (; stride == 1 && count >= kAcross && i < count; i += kAcross) {
        const int64_t begin = std::min(i, count - kAcross);  // the last ones overlap those before
        const auto results = folded_across<W>(first + begin, start, fold);
        for (int64_t j = 0; j < kAcross; ++j) target[begin + j] = finish(results[static_cast<size_t>(j)]);
      }
      const int64_t run = reduced_.only_run();
      for (; run > 0 && run < kTogether && i + kRows <= count; i += kRows) {
        const auto results = folded_rows(first + i * stride, run, start, fold);
        for (int64_t j = 0; j < kRows; ++j) target[i + j] = finish(results[static_cast<size_t>(j)]);
      }
      for (; i < count; ++i) target[i] = finish(folded<S>(first + i * stride, start, fold, join));
    });
  }

  // Of kRows short runs at a time, whose sums do not wait for each other. As folded() has them.
  template <typename Fold>
  std::array<Accumulator<T>, kRows> folded_rows(const T* from, int64_t run, Accumulator<T> start,
                                                const Fold& fold) const {
    const int64_t row = kept_.inner_strides()[0], step = reduced_.inner_strides()[0];
    std::array<Accumulator<T>, kRows> results;
    results.fill(start);
    for (int64_t i = 0; i < run; ++i)
      for (size_t j = 0; j < kRows; ++j)
        results[j] = fold(results[j], static_cast<Accumulator<T>>(from[static_cast<int64_t>(j) * row + i * step]));
    return results;
  }

  // Vectors, for a compiler does not make them of comparisons.
  using Quad = float __attribute__((vector_size(4 * sizeof(float))));
  template <typename S>
  using Lane = std::conditional_t<std::is_same_v<S, float>, Quad, S>;

  // Of as many results as the registers hold, whose elements are neighbours.
  template <typename W, typename Fold>
  std::array<W, kRegisters / sizeof(W)> folded_across(const T* from, Accumulator<T> start, const Fold& fold) const {
    using V = Lane<W>;
    constexpr size_t kParts = kRegisters / sizeof(V);
    std::array<V, kParts> parts;
    parts.fill(V{} + static_cast<W>(start));
    const int64_t stride = reduced_.inner_strides()[0];
    reduced_.run_serially([&](const auto& offsets, int64_t count) {
      for (int64_t i = 0; i < count; ++i) fold_each<W>(from + offsets[0] + i * stride, parts, fold);
    });
    std::array<W, kRegisters / sizeof(W)> results;
    std::memcpy(&results, &parts, sizeof(results));
    return results;
  }

  // Each of as many neighbours into an accumulator of its own.
  template <typename S, size_t kParts, typename Fold>
  static void fold_each(const T* run, std::array<Lane<S>, kParts>& parts, const Fold& fold) {
    using V = Lane<S>;
    constexpr size_t kLanes = sizeof(V) / sizeof(S);
    for (size_t j = 0; j < kParts; ++j) {
      if constexpr (kLanes > 1) {
        V x;
        std::memcpy(&x, run + j * kLanes, sizeof(x));
        parts[j] = fold(parts[j], x);
      } else {
        parts[j] = fold(parts[j], static_cast<S>(run[j]));
      }
    }
  }

  template <typename V, size_t kCount, typename Join>
  static V joined(const std::array<V, kCount>& parts, const Join& join) {
    if constexpr (kCount == 1) {
      return parts[0];
    } else {
      std::array<V, kCount / 2> halves;
      for (size_t j = 0; j < kCount / 2; ++j) halves[j] = join(parts[j], parts[j + kCount / 2]);
      return joined(halves, join);
    }
  }

  // Of `count` neighbours, a multiple of kTogether.
  template <typename S, typename Fold, typename Join>
  static Accumulator<T> folded_neighbours(const T* run, int64_t count, Accumulator<T> start, const Fold& fold,
                                          const Join& join) {
    using V = Lane<S>;
    constexpr size_t kLanes = sizeof(V) / sizeof(S), kParts = kTogether / kLanes;
    std::array<V, kParts> parts;
    parts.fill(V{} + static_cast<S>(start));
    for (int64_t i = 0; i < count; i += kTogether) fold_each<S>(run + i, parts, fold);
    const V all = joined(parts, join);
    if constexpr (kLanes > 1) {
      std::array<S, kLanes> last;
      std::memcpy(&last, &all, sizeof(last));
      return static_cast<Accumulator<T>>(joined(last, join));
    } else {
      return static_cast<Accumulator<T>>(all);
    }
  }

  template <typename S, typename Fold, typename Join>
  Accumulator<T> folded(const T* from, Accumulator<T> start, const Fold& fold, const Join& join) const {
    Accumulator<T> result = start;
    const int64_t stride = reduced_.inner_strides()[0];
    reduced_.run_serially([&](const auto& offsets, int64_t count) {
      const T* run = from + offsets[0];
      int64_t i = 0;
      while (stride == 1 && i + kTogether <= count) {
        const int64_t neighbours = std::min(kShort, (count - i) / kTogether * kTogether);
        result = join(result, folded_neighbours<S>(run + i, neighbours, start, fold, join));
        i += neighbours;
      }
      for (; i < count; ++i) result = fold(result, static_cast<Accumulator<T>>(run[i * stride]));
    });
    return result;
  }

  // Shifted by the maximum, so that it does not overflow.
  void reduce_log_sum_exp(const T* from, T* to) const {
    const int64_t stride = kept_.inner_strides()[0];
    const auto larger = [](auto a, auto x) { return a < x ? x : a; };
    kept_.run([&](const auto& offsets, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const T* first = from + offsets[0] + i * stride;
        const auto maximum = static_cast<double>(folded<ShortAccumulator<T>>(first, lowest(), larger, larger));
        const double shift = std::isfinite(maximum) ? maximum : 0.0;
        double total = 0;
        reduced_.run_serially([&](const auto& reduced, int64_t elements) {
          const T* run = first + reduced[0];
          for (int64_t e = 0; e < elements; ++e)
            total += std::exp(static_cast<double>(run[e * reduced_.inner_strides()[0]]) - shift);
        });
        to[offsets[1] + i] = static_cast<T>(std::log(total) + shift);
      }
    });
  }

  Function function_;
  TensorIndex from_, to_;
  int64_t count_ = 1;
  StridedLoop<2> kept_;
  StridedLoop<1> reduced_;
};

template <typename T>
class ArgReduceKernel : public Kernel {
 public:
  explicit ArgReduceKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        largest_(view.attributes().integer("largest") != 0),
        last_(view.attributes().integer("select_last") != 0),
        rows_(find_arg_reduce_rows(largest_, last_)) {
    const Shape& shape = view.input(0).shape;
    const auto axis = static_cast<std::ptrdiff_t>(view.attributes().integer("axis"));
    outer_ = static_cast<int64_t>(element_count(Shape(shape.begin(), shape.begin() + axis)));
    extent_ = shape[static_cast<size_t>(axis)];
    inner_ = static_cast<int64_t>(element_count(Shape(shape.begin() + axis + 1, shape.end())));
  }

  Status run(Addresses addresses) override {
    const T* from = reinterpret_cast<const T*>(addresses[from_]);
    int64_t* to = reinterpret_cast<int64_t*>(addresses[to_]);
    if (largest_ && last_) find(from, to, std::greater_equal<>());
    if (largest_ && !last_) find(from, to, std::greater<>());
    if (!largest_ && last_) find(from, to, std::less_equal<>());
    if (!largest_ && !last_) find(from, to, std::less<>());
    return Status();
  }

 private:
  static constexpr int64_t kTogether = 128;
  // As wide as an element, so that vectors hold as many of both.
  using Position = std::conditional_t<sizeof(T) <= 4, int32_t, int64_t>;

  template <typename Better>
  void find(const T* from, int64_t* to, const Better& better) const {
    const int64_t pieces = (inner_ + kTogether - 1) / kTogether;
    if (extent_ == 0 || extent_ > std::numeric_limits<int32_t>::max()) return find_singly(from, to, better);
    parallel_for(outer_ * pieces, outer_ * inner_ * extent_, [&](int64_t i) {
      const int64_t first = i % pieces * kTogether, count = std::min(kTogether, inner_ - first);
      const int64_t outer = i / pieces;
      const T* row = from + outer * extent_ * inner_ + first;
      int64_t* result = to + outer * inner_ + first;
      if constexpr (std::is_same_v<T, float>) {
        if (inner_ == 1)
          *result = rows_.row(row, extent_);
        else
          rows_.columns(row, extent_, inner_, count, result);
      } else if (inner_ == 1) {
        *result = best(row, better);
      } else {
        best_together(row, result, count, better);
      }
    });
  }

  template <typename Better>
  void find_singly(const T* from, int64_t* to, const Better& better) const {
    for (int64_t i = 0; i < outer_ * inner_; ++i)
      to[i] = best(from + i / inner_ * extent_ * inner_ + i % inner_, better);
  }

  // Of neighbours, whose elements lie together.
  template <typename Better>
  void best_together(const T* from, int64_t* to, int64_t count, const Better& better) const {
    std::array<T, kTogether> holders;
    std::array<Position, kTogether> places{};
    std::copy_n(from, count, holders.begin());
    for (int64_t i = 1; i < extent_; ++i) {
      const T* row = from + i * inner_;
      for (size_t j = 0; j < static_cast<size_t>(count); ++j) {
        const bool replaces = better(row[j], holders[j]);
        holders[j] = replaces ? row[j] : holders[j];
        places[j] = replaces ? static_cast<Position>(i) : places[j];
      }
    }
    std::copy_n(places.begin(), count, to);
  }

  template <typename Better>
  int64_t best(const T* from, const Better& better) const {
    int64_t best = 0;
    for (int64_t i = 1; i < extent_; ++i)
      if (better(from[i * inner_], from[best * inner_])) best = i;
    return best;
  }

  TensorIndex from_, to_;
  bool largest_, last_;
  ArgReduceRows rows_;  // of float32
  int64_t outer_ = 1, extent_ = 1, inner_ = 1;
};

// A mean over all of the image, kept as dimensions, is a pooling: it works on
// channel blocks.
bool is_global_average(const Node& node, const Shape& shape) {
  const std::vector<int64_t>& axes = node.attributes.integers("axes");
  if (node.attributes.function() != Function::kMean || shape.size() < 3 || shape.size() > 5) return false;
  if (node.attributes.integer("keep_dims") == 0 || axes.size() != shape.size() - 2) return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i + 2)) return false;
  return true;
}

Node global_average(const Node& node, const Shape& shape) {
  Node pooling = node;
  pooling.kind = OperatorKind::kAveragePool;
  pooling.attributes = {};
  const std::vector<int64_t> ones(shape.size() - 2, 1);
  pooling.attributes.set("kernel", std::vector<int64_t>(shape.begin() + 2, shape.end()));
  pooling.attributes.set("strides", ones);
  pooling.attributes.set("dilations", ones);
  pooling.attributes.set("pads", std::vector<int64_t>(2 * ones.size(), 0));
  pooling.attributes.set("count_include_pad", int64_t{0});
  return pooling;
}

}  // namespace

Result<bool> lower_reduce(const Node& node, GraphLowering& lowering) {
  const DataType type = lowering.value(node.inputs[0]).type;
  if (!is_reduction(node.attributes.function()))
    return Status::unimplemented(fmt::format("no reduction '{}'", to_string(node.attributes.function())));
  FOLIOT_RETURN_IF_ERROR(visit_type(type, [](auto) { return Status(); }));
  const Shape& shape = lowering.shape(node.inputs[0]);
  if (type == DataType::kFloat32 && element_count(shape) > 0 && !lowering.is_dense(node.inputs[0]) &&
      is_global_average(node, shape))
    return lower_pooling(global_average(node, shape), lowering);
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:reduce"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_reduce(const OperatorView& view) {
  const Function function = view.attributes().function();
  if (!is_reduction(function)) return Status::invalid_argument("unknown reduction");
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_type(view.input(0).type, [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<ReduceKernel<T>>(view, function);
    return Status();
  }));
  return kernel;
}

Result<bool> lower_arg_reduce(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(visit_type(lowering.value(node.inputs[0]).type, [](auto) { return Status(); }));
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:arg_reduce"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_arg_reduce(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_type(view.input(0).type, [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<ArgReduceKernel<T>>(view);
    return Status();
  }));
  return kernel;
}

}  // namespace foliot
