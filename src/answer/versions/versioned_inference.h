// VersionedInference: the layer that chooses the version of a model for each call: the one that it names by a number or
// a label, or one by the model's split (foundation/core/version_table.h). What is below gets the name of that version.
//
// Threading: that of Inference.
#ifndef FOLIOT_ANSWER_VERSIONS_VERSIONED_INFERENCE_H_
#define FOLIOT_ANSWER_VERSIONS_VERSIONED_INFERENCE_H_

#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"

namespace foliot {

class VersionedInference : public Inference {
 public:
  // Both outlive this.
  VersionedInference(Inference& below, const ServedNames& names) : below_(below), names_(names) {}

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override { below_.cancel(call); }
  Status observe(const Observation& observation) override { return below_.observe(observation); }

 private:
  Inference& below_;
  const ServedNames& names_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_VERSIONED_INFERENCE_H_
