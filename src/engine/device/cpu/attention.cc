// Attention in blocks: the scores of a block of queries for a block of keys stay in the cache.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/device/cpu/attention_rows.h"
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/strided_loop.h"

namespace foliot {
namespace {

// Queries for which keys and values are packed once.
constexpr int64_t kQueriesMax = 960;
static_assert(kQueriesMax % kQueryBlock == 0);

int64_t blocks_of(int64_t count, int64_t block) { return (count + block - 1) / block; }

struct AttentionGeometry {
  int64_t queries, keys, depth, columns;
  int64_t key_stride, key_step;  // from key to key, and from one of a key's elements to the next
  int64_t mask_stride = 0;       // from query to query
  // Floats of what one thread keeps.
  int64_t packed_keys, packed_values, scores, products, rows;

  AttentionGeometry(const Attributes& attributes, const Shape& query, const Shape& value) {
    const bool transposed = attributes.integer("transpose_k") != 0;
    queries = query[query.size() - 2];
    depth = query.back();
    keys = value[value.size() - 2];
    columns = value.back();
    key_stride = transposed ? 1 : depth;
    key_step = transposed ? keys : 1;
    rows = std::min(kQueriesMax, blocks_of(queries, kQueryBlock) * kQueryBlock);
    const int64_t block = std::min(keys, kKeyBlock);
    packed_keys = panelled(block) * depth;
    packed_values = block * panelled(columns);
    scores = kQueryBlock * kKeyBlock;
    products = rows * panelled(columns);
  }

  int64_t scratch() const { return packed_keys + packed_values + scores + products + 2 * rows; }
};

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const OperatorView& view, int64_t shares)
      : query_(view.input_index(0)),
        key_(view.input_index(1)),
        value_(view.input_index(2)),
        mask_(view.has_input(3) ? view.input_index(3) : kNoTensor),
        result_(view.output_index()),
        scratch_(view.operation().scratchpad),
        take_(find_attention_rows()),
        alpha_(static_cast<float>(view.attributes().real("alpha"))),
        geometry_(view.attributes(), view.input(0).shape, view.input(2).shape) {
    const Shape& shape = view.output().shape;
    const Shape batch(shape.begin(), shape.end() - 2);
    const auto strides = [&](size_t input) {
      Shape result(batch.size(), 0);
      if (!view.has_input(input)) return result;
      Shape given = view.input(input).shape;
      if (given.size() < 2) given = padded_shape(given, 2);
      const int64_t matrix = given[given.size() - 2] * given.back();
      result = broadcast_strides(Shape(given.begin(), given.end() - 2), batch);
      for (int64_t& stride : result) stride *= matrix;
      return result;
    };
    const StridedLoop<4> loop(batch, {strides(0), strides(1), strides(2), strides(3)});
    const auto& steps = loop.inner_strides();
    loop.run_serially([&](auto offsets, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        heads_.push_back(offsets);
        for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += steps[k];
      }
    });
    if (mask_ != kNoTensor) {
      const Shape& mask = view.input(3).shape;
      if (mask.size() >= 2 && mask[mask.size() - 2] != 1) geometry_.mask_stride = geometry_.keys;
    }
    // Pieces of a head, so that all shares take alike many.
    const auto heads = static_cast<int64_t>(heads_.size());
    shares_ = std::min<int64_t>(shares, omp_get_max_threads());
    const int64_t pieces = std::max(blocks_of(geometry_.queries, kQueriesMax), shares_ / std::gcd(heads, shares_));
    piece_ = blocks_of(blocks_of(geometry_.queries, pieces), kQueryBlock) * kQueryBlock;
    pieces_ = blocks_of(geometry_.queries, piece_);
  }

  Status run(Addresses addresses) override {
    const auto tasks = static_cast<int64_t>(heads_.size()) * pieces_;
    const int64_t work = tasks * piece_ * geometry_.keys * geometry_.depth;
    parallel_for(shares_, work, [&](int64_t share) {
      float* scratch = reinterpret_cast<float*>(addresses[scratch_]) + share * geometry_.scratch();
      for (int64_t task = tasks * share / shares_; task < tasks * (share + 1) / shares_; ++task)
        attend(addresses, heads_[static_cast<size_t>(task / pieces_)], task / pieces_, task % pieces_ * piece_,
               scratch);
    });
    return Status();
  }

 private:
  using Offsets = StridedLoop<4>::Offsets;

  static const float* floats(Addresses addresses, TensorIndex tensor, int64_t offset) {
    return tensor == kNoTensor ? nullptr : reinterpret_cast<const float*>(addresses[tensor]) + offset;
  }

  // Some queries of one head, from `first` on.
  void attend(Addresses addresses, const Offsets& head, int64_t number, int64_t first, float* scratch) const {
    const AttentionGeometry& g = geometry_;
    const int64_t queries = std::min(piece_, g.queries - first), stride = panelled(g.columns);
    const float* query = floats(addresses, query_, head[0] + first * g.depth);
    const float* key = floats(addresses, key_, head[1]);
    const float* value = floats(addresses, value_, head[2]);
    const float* mask = floats(addresses, mask_, head[3] + first * g.mask_stride);
    float* packed_keys = scratch;
    float* packed_values = packed_keys + g.packed_keys;
    float* products = packed_values + g.packed_values;
    float* sums = products + g.products;
    float* largest = sums + g.rows;
    AttentionRows rows{.depth = g.depth,
                       .columns = g.columns,
                       .alpha = alpha_,
                       .key = packed_keys,
                       .mask_stride = g.mask_stride,
                       .scores = largest + g.rows};
    for (int64_t at = 0; at < g.keys; at += kKeyBlock) {
      rows.keys = std::min(kKeyBlock, g.keys - at);
      rows.first = at == 0;
      pack(key + at * g.key_stride, rows.keys, g.depth, g.key_stride, g.key_step, packed_keys);
      rows.value = value + at * g.columns;
      if (g.columns != kPanel) {
        pack(rows.value, g.columns, rows.keys, 1, g.columns, packed_values);
        rows.value = packed_values;
      }
      for (int64_t row = 0; row < queries; row += kQueryBlock) {
        rows.queries = std::min(kQueryBlock, queries - row);
        rows.query = query + row * g.depth;
        rows.mask = mask == nullptr ? nullptr : mask + row * g.mask_stride + at;
        rows.largest = largest + row;
        rows.sums = sums + row;
        rows.products = products + row * stride;
        take_(rows);
      }
    }
    float* result = reinterpret_cast<float*>(addresses[result_]) + (number * g.queries + first) * g.columns;
    for (int64_t row = 0; row < queries; ++row) {
      const float factor = 1 / sums[row];
      for (int64_t i = 0; i < g.columns; ++i) result[row * g.columns + i] = products[row * stride + i] * factor;
    }
  }

  // Panels of [depth][columns], from a matrix with these strides from column to column and step to step.
  static void pack(const float* from, int64_t columns, int64_t depth, int64_t stride, int64_t step, float* to) {
    for (int64_t first = 0; first < columns; first += kPanel) {
      const int64_t count = std::min(kPanel, columns - first);
      for (int64_t k = 0; k < depth; ++k, to += kPanel) {
        const float* line = from + first * stride + k * step;
        if (stride == 1) {
          std::copy_n(line, count, to);
        } else {
          for (int64_t i = 0; i < count; ++i) to[i] = line[i * stride];
        }
        std::fill(to + count, to + kPanel, 0.0F);
      }
    }
  }

  const TensorIndex query_, key_, value_, mask_, result_, scratch_;
  const TakeAttentionRows take_;
  const float alpha_;
  AttentionGeometry geometry_;
  std::vector<Offsets> heads_;  // where each begins in query, key, value and mask
  int64_t shares_, piece_, pieces_;
};

}  // namespace

Result<bool> lower_attention(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const AttentionGeometry geometry(node.attributes, lowering.shape(node.inputs[0]), lowering.shape(node.inputs[2]));
  const int64_t floats = omp_get_max_threads() * geometry.scratch();
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:attention", static_cast<uint64_t>(floats) * sizeof(float)));
  return true;
}

Result<std::unique_ptr<Kernel>> make_attention(const OperatorView& view) {
  const AttentionGeometry geometry(view.attributes(), view.input(0).shape, view.input(2).shape);
  const TensorIndex scratch = view.operation().scratchpad;
  const uint64_t share = static_cast<uint64_t>(geometry.scratch()) * sizeof(float);
  if (scratch == kNoTensor || view.tensor(scratch).bytes < share)
    return Status::invalid_argument("its scratchpad is too small; compile the model anew");
  // As many threads as it was compiled for.
  const auto shares = static_cast<int64_t>(view.tensor(scratch).bytes / share);
  return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(view, shares));
}

}  // namespace foliot
