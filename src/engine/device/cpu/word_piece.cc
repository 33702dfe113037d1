// WordPiece: by WordPieceTable, rows spread over the device's threads.
#include "engine/device/word_piece.h"

#include <algorithm>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/parallel.h"

namespace foliot {
namespace {

class WordPieceKernel : public Kernel {
 public:
  explicit WordPieceKernel(const OperatorView& view)
      : text_(view.input_index(0)),
        table_(view.input_index(1)),
        ids_(view.output_index()),
        rows_(view.output().shape[0]),
        text_bytes_(static_cast<size_t>(view.input(0).shape[1])),
        table_size_(static_cast<size_t>(view.input(1).shape[0])),
        length_(static_cast<size_t>(view.output().shape[1])) {}

  Status run(Addresses addresses) override {
    constexpr int64_t kWorkPerByte = 16;
    const WordPieceTable table({reinterpret_cast<const int32_t*>(addresses[table_]), table_size_});
    const bool is_valid = table.is_valid();
    const auto tokenize = [&](int64_t row) {
      const std::span<int64_t> ids{reinterpret_cast<int64_t*>(addresses[ids_]) + row * static_cast<int64_t>(length_),
                                   length_};
      if (!is_valid) return static_cast<void>(std::ranges::fill(ids, 0));
      table.tokenize({addresses[text_] + row * static_cast<int64_t>(text_bytes_), text_bytes_}, ids);
    };
    parallel_for(rows_, rows_ * static_cast<int64_t>(text_bytes_) * kWorkPerByte, tokenize);
    return Status();
  }

 private:
  const TensorIndex text_, table_, ids_;
  const int64_t rows_;
  const size_t text_bytes_, table_size_, length_;
};

}  // namespace

Result<bool> lower_word_piece(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:word_piece"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_word_piece(const OperatorView& view) {
  return std::unique_ptr<Kernel>(std::make_unique<WordPieceKernel>(view));
}

}  // namespace foliot
