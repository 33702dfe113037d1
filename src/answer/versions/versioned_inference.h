// VersionedInference: the layer that chooses the version of a model for each call: the one that it names by a number or
// a label, or one by the model's split (foundation/core/version_table.h). What is below gets the name of that version.
// Calls that were split are watched where the model asks for it (split_watch.h).
//
// Threading: that of Inference.
#ifndef FOLIOT_ANSWER_VERSIONS_VERSIONED_INFERENCE_H_
#define FOLIOT_ANSWER_VERSIONS_VERSIONED_INFERENCE_H_

#include <functional>

#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"
#include "answer/versions/split_watch.h"

namespace foliot {

class VersionedInference : public Inference {
 public:
  // All outlive this.
  VersionedInference(Inference& below, const ServedNames& names, const std::function<TimePoint()>& now)
      : below_(below), names_(names), watch_(below, names, now) {}

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override { below_.cancel(call); }
  // Of a model with several versions, for which they are compared, the loss of an answer by version or label. Errors:
  // kInvalidArgument for what is no loss.
  Status observe(const Observation& observation) override;
  SplitWatch& watch() { return watch_; }

 private:
  Inference& below_;
  const ServedNames& names_;
  SplitWatch watch_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_VERSIONED_INFERENCE_H_
