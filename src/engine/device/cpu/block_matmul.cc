// Products with weights of 4 or 8 bits in blocks: shares of a few panels of columns, spread over the device's threads.
#include <omp.h>

#include <algorithm>

#include "engine/device/cpu/block_product_rows.h"
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"

namespace foliot {
namespace {

struct BlockGeometry {
  BlockWeights weights;
  int64_t rows, shares;
  bool rounds;

  BlockGeometry(const Attributes& attributes, const Shape& x, const Shape& result)
      : weights{.depth = x.back(),
                .columns = result.back(),
                .block = attributes.integer("block"),
                .bits = attributes.integer("bits")},
        rows(static_cast<int64_t>(element_count(result)) / std::max<int64_t>(result.back(), 1)),
        shares((weights.panels() + kPanelsPerShare - 1) / kPanelsPerShare),
        rounds(attributes.integer("rounds") != 0) {}

  // Bytes of what rounded rows take.
  int64_t codes_bytes() const { return (rows * weights.padded_depth() + 63) / 64 * 64; }
  int64_t rounded_bytes() const {
    const int64_t by_block = rows * weights.blocks() * int64_t{sizeof(float) + sizeof(int32_t)};
    return codes_bytes() + by_block;
  }
  // Bytes of what each thread takes.
  int64_t thread_bytes() const {
    return rounds || rows <= kUnpackedRows ? 0 : kUnpackedFloats * int64_t{sizeof(float)};
  }
  uint64_t scratch_bytes(int64_t threads) const {
    return static_cast<uint64_t>(rounds ? rounded_bytes() : threads * thread_bytes());
  }
};

class BlockMatMulKernel : public Kernel {
 public:
  BlockMatMulKernel(const OperatorView& view, const BlockGeometry& geometry, int64_t threads)
      : x_(view.input_index(0)),
        codes_(view.input_index(1)),
        scales_(view.input_index(2)),
        zero_points_(view.has_input(3) ? view.input_index(3) : kNoTensor),
        bias_(view.has_input(4) ? view.input_index(4) : kNoTensor),
        result_(view.output_index()),
        scratch_(view.operation().scratchpad),
        geometry_(geometry),
        threads_(std::min(threads, geometry.shares)),
        functions_(find_block_product_rows()) {}

  Status run(Addresses addresses) override {
    const auto at = [&](TensorIndex tensor) { return tensor == kNoTensor ? nullptr : addresses[tensor]; };
    BlockProduct product{.weights = geometry_.weights,
                         .rows = geometry_.rows,
                         .codes = reinterpret_cast<const uint32_t*>(at(codes_)),
                         .scales = reinterpret_cast<const float*>(at(scales_)),
                         .zero_points = reinterpret_cast<const uint8_t*>(at(zero_points_)),
                         .bias = reinterpret_cast<const float*>(at(bias_)),
                         .x = reinterpret_cast<const float*>(at(x_)),
                         .to = reinterpret_cast<float*>(at(result_))};
    const BlockWeights& weights = geometry_.weights;
    const int64_t work = geometry_.rows * weights.depth * weights.columns;
    if (geometry_.rounds) {
      std::byte* scratch = addresses[scratch_];
      product.rounded = reinterpret_cast<int8_t*>(scratch);
      product.rounded_scales = reinterpret_cast<float*>(scratch + geometry_.codes_bytes());
      product.rounded_sums = reinterpret_cast<int32_t*>(product.rounded_scales + geometry_.rows * weights.blocks());
      parallel_for(geometry_.rows, geometry_.rows * weights.depth,
                   [&](int64_t row) { functions_.round_row(product, row); });
      parallel_for(geometry_.shares, work, [&](int64_t share) { functions_.multiply_rounded(product, share); });
      return Status();
    }
    parallel_for(threads_, work, [&](int64_t thread) {
      float* unpacked = geometry_.thread_bytes() == 0
                            ? nullptr
                            : reinterpret_cast<float*>(addresses[scratch_] + thread * geometry_.thread_bytes());
      for (int64_t share = geometry_.shares * thread / threads_; share < geometry_.shares * (thread + 1) / threads_;
           ++share)
        functions_.multiply(product, share, unpacked);
    });
    return Status();
  }

 private:
  const TensorIndex x_, codes_, scales_, zero_points_, bias_, result_, scratch_;
  const BlockGeometry geometry_;
  const int64_t threads_;
  const BlockProductRows functions_;
};

}  // namespace

Result<bool> lower_block_matmul(const Node& node, GraphLowering& lowering) {
  if (!node.post_operations.empty()) return false;
  const BlockGeometry geometry(node.attributes, lowering.shape(node.inputs[0]), lowering.shape(node.outputs[0]));
  FOLIOT_RETURN_IF_ERROR(
      lowering.emit_dense(node, "foliot:block_matmul", geometry.scratch_bytes(omp_get_max_threads())));
  return true;
}

Result<std::unique_ptr<Kernel>> make_block_matmul(const OperatorView& view) {
  const BlockGeometry geometry(view.attributes(), view.input(0).shape, view.output().shape);
  const TensorIndex scratch = view.operation().scratchpad;
  const uint64_t given = scratch == kNoTensor ? 0 : view.tensor(scratch).bytes;
  if (given < geometry.scratch_bytes(1))
    return Status::invalid_argument("its scratchpad is too small; compile the model anew");
  int64_t threads = omp_get_max_threads();
  // As many threads as it was compiled for.
  if (geometry.thread_bytes() != 0) threads = std::min(threads, static_cast<int64_t>(given) / geometry.thread_bytes());
  return std::unique_ptr<Kernel>(std::make_unique<BlockMatMulKernel>(view, geometry, threads));
}

}  // namespace foliot
