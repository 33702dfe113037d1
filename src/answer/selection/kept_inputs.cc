#include "answer/selection/kept_inputs.h"

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

// The inputs of one call.
class Copy {
 public:
  Copy(std::shared_ptr<std::atomic<uint64_t>> counted, uint64_t bytes)
      : counted_(std::move(counted)), bytes_(bytes), memory_(new std::byte[bytes]) {}
  ~Copy() { counted_->fetch_sub(bytes_, std::memory_order_relaxed); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  std::byte* memory() { return memory_.get(); }

 private:
  const std::shared_ptr<std::atomic<uint64_t>> counted_;
  const uint64_t bytes_;
  const std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

bool KeptInputs::take(uint64_t bytes) {
  uint64_t before = bytes_->load(std::memory_order_relaxed);
  do {
    if (bytes > bytes_max_ || before > bytes_max_ - bytes) return false;
  } while (!bytes_->compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

bool KeptInputs::copy(Query& query) {
  uint64_t bytes = 0;
  for (const TensorView& input : query.inputs) bytes += input.bytes.size();
  if (!take(bytes)) return false;
  const auto copy = std::make_shared<Copy>(bytes_, bytes);
  std::byte* to = copy->memory();
  for (TensorView& input : query.inputs) {
    std::ranges::copy(input.bytes, to);
    input.bytes = {to, input.bytes.size()};
    to += input.bytes.size();
  }
  query.owner = copy;
  return true;
}

}  // namespace foliot
