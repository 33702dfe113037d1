// KeptInputs: copies of the inputs of calls that may be answered while a model that they asked
// still reads them. All copies together are bounded: beyond that there are no further ones.
//
// Threading: any.
#ifndef FOLIOT_SELECTION_KEPT_INPUTS_H_
#define FOLIOT_SELECTION_KEPT_INPUTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "inference/query.h"

namespace foliot {

class KeptInputs {
 public:
  explicit KeptInputs(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  KeptInputs(const KeptInputs&) = delete;
  KeptInputs& operator=(const KeptInputs&) = delete;

  // The inputs of one call, until it is destroyed. The KeptInputs outlives it.
  class Copy {
   public:
    Copy(Copy&& other) noexcept;
    Copy& operator=(Copy&& other) noexcept;
    ~Copy();

   private:
    friend class KeptInputs;
    Copy(KeptInputs& from, uint64_t bytes) : owner_(&from), bytes_(bytes), memory_(new std::byte[bytes]) {}

    KeptInputs* owner_;  // null: moved from
    uint64_t bytes_;
    std::unique_ptr<std::byte[]> memory_;
  };
  // The query's inputs lie in the copy from now on. nullopt: there is no room for it, and the query is
  // as before.
  std::optional<Copy> copy(Query& query);

  // Of all copies.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  bool take(uint64_t bytes);

  const uint64_t bytes_max_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_KEPT_INPUTS_H_
