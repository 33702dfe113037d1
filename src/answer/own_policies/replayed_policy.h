// ReplayedPolicy: a policy in Python as one that learns at once, for judging it by a log
// (answer/selection/policy_replay.h): each observation waits for the process.
//
// Threading: one, that which started the process.
#ifndef FOLIOT_ANSWER_OWN_POLICIES_REPLAYED_POLICY_H_
#define FOLIOT_ANSWER_OWN_POLICIES_REPLAYED_POLICY_H_

#include <memory>

#include "answer/own_policies/policy_process.h"
#include "answer/selection/own_policy.h"
#include "answer/selection/selection_policy.h"
#include "foundation/base/status.h"

namespace foliot {

class ReplayedPolicy final : public SelectionPolicy {
 public:
  // Errors: as PolicyProcess::start() and ask().
  static Result<std::unique_ptr<ReplayedPolicy>> start(std::shared_ptr<const OwnPolicy> policy,
                                                       const PolicyPlace& place, ContainerProcess::OnLine on_line);

  SelectionState init() const override { return initial_; }
  // The first error of the process, after which nothing was learned.
  const Status& status() const { return status_; }

 private:
  ReplayedPolicy(std::shared_ptr<const OwnPolicy> policy, std::unique_ptr<PolicyProcess> process);
  bool is_size(size_t) const override { return false; }  // it is not restored
  Selection choose(const SelectionState& state, const Available& available, Random& random) const override;
  void learn(SelectionState& state, const Selection& selected, Losses losses) const override;

  const std::shared_ptr<const OwnPolicy> policy_;
  const std::unique_ptr<PolicyProcess> process_;
  SelectionState initial_;
  mutable Status status_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_OWN_POLICIES_REPLAYED_POLICY_H_
