// CachedInference: a layer of Inference that answers what was asked before (Clipper, section
// 3.3.2): calls of models with `cache = true` whose inputs and outputs asked for are those of
// an earlier one, byte for byte.
//
// A call whose prediction is kept is answered with it. One that asks what a call under way
// asks follows that call, if that call must end no later than this one: its deadline is no
// later, and its class no less urgent. Such a leader's prediction answers its followers, too;
// if it is refused, the most urgent of them leads. All else goes to the layer below, and what
// comes from there is kept.
//
// An answer from here has no number, since the controller never had the call, and does not count against
// the limits of the caller's key.
//
// Threading: as Inference. What is kept lies in parts, each with a lock that is held for a
// lookup or an insertion.
#ifndef FOLIOT_ANSWER_CACHE_CACHED_INFERENCE_H_
#define FOLIOT_ANSWER_CACHE_CACHED_INFERENCE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "answer/cache/prediction_key.h"
#include "answer/inference/inference.h"
#include "answer/inference/prediction.h"
#include "answer/inference/served_names.h"
#include "answer/inference/statistics.h"
#include "foundation/base/time.h"

namespace foliot {

struct CacheStatistics {
  uint64_t bytes = 0;
  uint64_t predictions = 0;
  uint64_t evictions = 0;
};

class CachedInference : public Inference {
 public:
  // `bytes_max`: of all predictions that are kept. All references outlive this, and this
  // outlives the answers that it gave.
  CachedInference(uint64_t bytes_max, Inference& below, const ServedNames& names, CallStatistics& statistics,
                  std::function<TimePoint()> now);
  ~CachedInference() override;

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override;
  Status observe(const Observation& observation) override { return below_.observe(observation); }

  CacheStatistics cache_statistics() const;

 private:
  class Call;
  struct Part;  // of what is kept and what is under way
  struct Ended;

  static constexpr size_t kParts = 16;

  Part& part_of(const PredictionKey& key) const;
  Part& part_of(CallId call) const;
  // The call is one of those that the layer below answers. Its error, if that is the answer.
  std::optional<CallError> compute(Call& call);
  void on_answer(Call& call, std::unique_ptr<Answer> answer);
  // The call has led: takes it out of its part, and its followers, if these have their answer
  // with it. Otherwise one of them leads.
  Ended end(Call& call, const std::shared_ptr<const Prediction>& prediction);
  // Another call is to lead the flight of `key`, or there is no flight any more. Holds the
  // part's lock.
  void replace_leader(Part& part, const PredictionKey& key);
  // A follower has become a leader; on the thread of its mailbox.
  void go_on(CallId id);
  // Sends an answer through the mailbox of the call.
  void post_answer(std::unique_ptr<Call> call, std::unique_ptr<Answer> answer);
  std::unique_ptr<Answer> answer_of(const Call& call, std::shared_ptr<const Prediction> prediction);

  Inference& below_;
  const ServedNames& names_;
  CallStatistics& statistics_;
  const std::function<TimePoint()> now_;
  const HashSecret secret_;
  std::array<std::unique_ptr<Part>, kParts> parts_;
  std::atomic<uint64_t> next_{0};  // number of a call, less its part
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_CACHE_CACHED_INFERENCE_H_
