#include "selection/kept_inputs.h"

#include <algorithm>
#include <utility>

namespace foliot {

KeptInputs::Copy::Copy(Copy&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), bytes_(other.bytes_), memory_(std::move(other.memory_)) {}

KeptInputs::Copy& KeptInputs::Copy::operator=(Copy&& other) noexcept {
  Copy before(std::move(*this));
  owner_ = std::exchange(other.owner_, nullptr);
  bytes_ = other.bytes_;
  memory_ = std::move(other.memory_);
  return *this;
}

KeptInputs::Copy::~Copy() {
  if (owner_ != nullptr) owner_->bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
}

bool KeptInputs::take(uint64_t bytes) {
  uint64_t before = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > bytes_max_ || before > bytes_max_ - bytes) return false;
  } while (!bytes_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

std::optional<KeptInputs::Copy> KeptInputs::copy(Query& query) {
  uint64_t bytes = 0;
  for (const TensorView& input : query.inputs) bytes += input.bytes.size();
  if (!take(bytes)) return std::nullopt;
  Copy copy(*this, bytes);
  std::byte* to = copy.memory_.get();
  for (TensorView& input : query.inputs) {
    std::ranges::copy(input.bytes, to);
    input.bytes = {to, input.bytes.size()};
    to += input.bytes.size();
  }
  return copy;
}

}  // namespace foliot
