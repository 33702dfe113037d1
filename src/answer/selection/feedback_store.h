// FeedbackStore: what is known of answers that may still get feedback, by ids that no client
// can guess.
//
// Bounded in number, in bytes and in time: the oldest go first. Feedback for one of these comes
// once, and from the tenant that had the answer.
//
// Threading: one at a time. Time is an argument.
#ifndef FOLIOT_ANSWER_SELECTION_FEEDBACK_STORE_H_
#define FOLIOT_ANSWER_SELECTION_FEEDBACK_STORE_H_

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answer/inference/prediction.h"
#include "answer/selection/selection_policy.h"
#include "foundation/base/hash.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

struct AnsweredCall {
  TenantId tenant;
  std::string context;
  Selection selection;
  // What labels are compared with, of each model that was asked; nullopt: missing, or too large
  // to be kept.
  std::vector<std::optional<Prediction::Output>> outputs;
  std::vector<uint32_t> failed{};  // models that were asked and whose loss is 1, since they gave no answer
  TimePoint answered{};            // set by the store
};

class FeedbackStore {
 public:
  // Larger outputs, of all models together, are not kept: only losses can be sent for them.
  static constexpr size_t kOutputBytesMax = 64 << 10;

  // `calls_max`, `bytes_max`: of what is kept.
  FeedbackStore(Duration window, uint64_t calls_max, uint64_t bytes_max = uint64_t{256} << 20)
      : window_(window), calls_max_(calls_max), bytes_max_(bytes_max) {}

  // Others from now on.
  void set_limits(Duration window, uint64_t calls_max);
  // None of them may get feedback.
  void clear();
  // Returns its id: 32 hexadecimal digits.
  std::string add(AnsweredCall call, TimePoint now);
  // Valid until the next call of another function. Errors: kNotFound if it is unknown, another
  // tenant's, or too old; kAlreadyExists after close().
  Result<const AnsweredCall*> find(std::string_view id, TenantId tenant, TimePoint now) const;
  // Its feedback has come. REQUIRES: find() found it.
  void close(std::string_view id);

  uint64_t size() const { return calls_.size(); }

 private:
  struct Kept {
    Hash128 id;
    AnsweredCall call;
    size_t bytes = 0;
    bool closed = false;
  };
  void remove_oldest();

  Duration window_;
  uint64_t calls_max_;
  const uint64_t bytes_max_;
  const HashSecret secret_;
  uint64_t added_ = 0;
  uint64_t bytes_ = 0;
  std::list<Kept> calls_;  // the oldest first
  std::unordered_map<Hash128, std::list<Kept>::iterator, Hash128Hash> by_id_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_FEEDBACK_STORE_H_
