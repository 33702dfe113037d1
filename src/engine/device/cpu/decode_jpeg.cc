// DecodeJpeg: by JpegDecoder, rows spread over the device's threads.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/jpeg_decoder.h"
#include "engine/device/cpu/parallel.h"

namespace foliot {
namespace {

JpegTarget target_of(const Shape& result, const Attributes& attributes) {
  return {.width = static_cast<uint32_t>(result.at(2)),
          .height = static_cast<uint32_t>(result.at(1)),
          .fit = *parse_jpeg_fit(attributes.text("fit")),
          .pad_value = static_cast<uint8_t>(attributes.integer("pad_value")),
          .pixels_max = static_cast<uint64_t>(attributes.integer("pixels_max"))};
}

// Of each thread.
uint64_t memory_bytes(const JpegTarget& target) {
  return (JpegDecoder::memory_bytes(target) + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

// A thread has a decoder and a part of the scratchpad, and decodes every n-th row.
class DecodeJpegKernel : public Kernel {
 public:
  explicit DecodeJpegKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        scratch_(view.operation().scratchpad),
        target_(target_of(view.output().shape, view.attributes())),
        memory_bytes_(memory_bytes(target_)),
        rows_(static_cast<size_t>(view.input(0).shape[0])),
        row_bytes_(static_cast<size_t>(view.input(0).shape[1])) {
    const auto threads = static_cast<size_t>(std::max(omp_get_max_threads(), 1));
    const size_t parts = std::min({view.tensor(scratch_).bytes / memory_bytes_, threads, std::max<size_t>(rows_, 1)});
    parts_ = std::vector<Part>(parts);
  }

  Status run(Addresses addresses) override {
    const auto count = static_cast<int64_t>(parts_.size());
    parallel_for(count, count * kParallelWork, [&](int64_t part) { decode(static_cast<size_t>(part), addresses); });
    failed_rows_.reset();
    for (const Part& part : parts_) failed_rows_ |= part.failed_rows;
    return Status();
  }

  const RowSet* failed_rows() const override { return &failed_rows_; }

 private:
  struct Part {
    JpegDecoder decoder;
    RowSet failed_rows;
  };

  void decode(size_t index, Addresses addresses) {
    Part& part = parts_[index];
    part.failed_rows.reset();
    const std::span<std::byte> memory{addresses[scratch_] + index * memory_bytes_, memory_bytes_};
    for (size_t row = index; row < rows_; row += parts_.size()) {
      const std::span<std::byte> image{addresses[to_] + row * target_.bytes(), target_.bytes()};
      const std::span<const std::byte> jpeg{addresses[from_] + row * row_bytes_, row_bytes_};
      if (part.decoder.decode(jpeg, target_, memory, image) == JpegError::kNone) continue;
      std::memset(image.data(), 0, image.size());
      part.failed_rows.set(row);
    }
  }

  const TensorIndex from_, to_, scratch_;
  const JpegTarget target_;
  const uint64_t memory_bytes_;
  const size_t rows_, row_bytes_;
  std::vector<Part> parts_;
  RowSet failed_rows_;
};

}  // namespace

Result<bool> lower_decode_jpeg(const Node& node, GraphLowering& lowering) {
  const Shape& result = lowering.shape(node.outputs.at(0));
  const auto rows = static_cast<uint64_t>(result.at(0));
  const auto threads = static_cast<uint64_t>(std::max(omp_get_max_threads(), 1));
  const uint64_t parts = std::max<uint64_t>(std::min(rows, threads), 1);
  FOLIOT_RETURN_IF_ERROR(
      lowering.emit_dense(node, "foliot:decode_jpeg", parts * memory_bytes(target_of(result, node.attributes))));
  return true;
}

Result<std::unique_ptr<Kernel>> make_decode_jpeg(const OperatorView& view) {
  const TensorIndex scratch = view.operation().scratchpad;
  const uint64_t needed = memory_bytes(target_of(view.output().shape, view.attributes()));
  if (scratch == kNoTensor || view.tensor(scratch).bytes < needed)
    return Status::invalid_argument("its scratchpad is too small; compile the model anew");
  if (view.input(0).shape[0] > int64_t{kBatchSizeMax}) return Status::invalid_argument("its batch is too large");
  return std::unique_ptr<Kernel>(std::make_unique<DecodeJpegKernel>(view));
}

}  // namespace foliot
