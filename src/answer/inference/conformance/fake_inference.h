// FakeInference: an Inference for the tests of what stands on one. Answers at once, by a
// function of the query; or holds its answers back, or refuses.
//
// It checks a query as models do, for models without variable dimensions.
//
// Threading: as Inference; one thread at a time starts calls of one mailbox, holds and
// releases.
#ifndef FOLIOT_ANSWER_INFERENCE_CONFORMANCE_FAKE_INFERENCE_H_
#define FOLIOT_ANSWER_INFERENCE_CONFORMANCE_FAKE_INFERENCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

class FakeInference : public Inference {
 public:
  // The bytes of each of the model's outputs.
  using Compute = std::function<std::vector<std::string>(const ModelInfo&, const Query&)>;

  // `names` outlives it.
  FakeInference(const ServedNames& names, Compute compute, std::function<TimePoint()> now);
  ~FakeInference() override;

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override;
  // Keeps it: observations().
  Status observe(const Observation& observation) override;

  // No call is answered, unless it is cancelled, until release().
  void hold();
  // The same of one model, whose calls are past being cancelled. Their outputs are computed then, from
  // what their inputs are by then.
  void hold_running(const std::string& name);
  void release();
  // Every call from now on is refused so; kNone: served.
  void refuse(Refusal refusal, std::string detail = "");
  // The same of one model's.
  void refuse_model(const std::string& name, Refusal refusal);
  // Of the answers from now on.
  void set_quality(Quality quality);
  // How many there were of this name.
  uint64_t observations(const std::string& name) const;

 private:
  class Call;
  std::unique_ptr<Answer> give(CallId call);

  const ServedNames& names_;
  const Compute compute_;
  const std::function<TimePoint()> now_;
  mutable Mutex mutex_;
  std::map<CallId, std::unique_ptr<Call>> calls_ GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> observations_ GUARDED_BY(mutex_);
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  bool held_ GUARDED_BY(mutex_) = false;
  std::set<std::string> running_ GUARDED_BY(mutex_);
  Refusal refusal_ GUARDED_BY(mutex_) = Refusal::kNone;
  std::map<std::string, Refusal> refusals_ GUARDED_BY(mutex_);  // of single models
  std::string detail_ GUARDED_BY(mutex_);
  Quality quality_ GUARDED_BY(mutex_) = Quality::kComplete;
};

// Of doubling_model().
std::vector<std::string> double_inputs(const ModelInfo& model, const Query& query);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CONFORMANCE_FAKE_INFERENCE_H_
