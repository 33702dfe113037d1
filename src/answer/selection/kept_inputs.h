// KeptInputs: copies of the inputs of calls that may be answered while a model that they asked
// still reads them. All copies together are bounded: beyond that there are no further ones.
//
// Threading: any.
#ifndef FOLIOT_ANSWER_SELECTION_KEPT_INPUTS_H_
#define FOLIOT_ANSWER_SELECTION_KEPT_INPUTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "answer/inference/query.h"

namespace foliot {

class KeptInputs {
 public:
  explicit KeptInputs(uint64_t bytes_max) : bytes_max_(bytes_max), bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}
  KeptInputs(const KeptInputs&) = delete;
  KeptInputs& operator=(const KeptInputs&) = delete;

  // The query's inputs lie in a copy from now on, which is its owner, and may outlive this. False: there
  // is no room for it, and the query is as before.
  bool copy(Query& query);

  // Of all copies.
  uint64_t bytes() const { return bytes_->load(std::memory_order_relaxed); }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  bool take(uint64_t bytes);

  const uint64_t bytes_max_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_KEPT_INPUTS_H_
