// AnswerBudget: the bytes of answers that clients wait for or have not taken yet, by source and in all. A source, which
// is a key or an address, has one answer or at most a quarter of all, so that one that reads nothing leaves room to the
// others.
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_REQUESTS_ANSWER_BUDGET_H_
#define FOLIOT_EDGE_REQUESTS_ANSWER_BUDGET_H_

#include <cstdint>
#include <map>
#include <string>

#include "foundation/base/mutex.h"

namespace foliot {

// An answer so small is written, and not counted, whatever others wait: errors and most predictions are.
inline constexpr uint64_t kSmallAnswerBytes = 16 << 10;

class AnswerBudget {
 public:
  explicit AnswerBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // False: there is no room for so much, and nothing was taken.
  bool hold(const std::string& source, uint64_t bytes);
  // Even where there is no room.
  void add(const std::string& source, uint64_t bytes);
  // Of what was held or added.
  void release(const std::string& source, uint64_t bytes);
  // Whether the source has more than it may, or all together have.
  bool is_exceeded_by(const std::string& source) const;
  // Why an answer was not held.
  std::string refusal(const std::string& source) const;

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t source_bytes_max() const { return bytes_max_ / 4; }
  uint64_t bytes() const;

 private:
  uint64_t bytes_of(const std::string& source) const REQUIRES(mutex_);

  const uint64_t bytes_max_;
  mutable Mutex mutex_;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t> sources_ GUARDED_BY(mutex_);  // of those that have some
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_ANSWER_BUDGET_H_
