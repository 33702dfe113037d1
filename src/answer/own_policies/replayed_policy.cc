#include "answer/own_policies/replayed_policy.h"

#include <utility>

#include "foundation/base/time.h"

namespace foliot {

Result<std::unique_ptr<ReplayedPolicy>> ReplayedPolicy::start(std::shared_ptr<const OwnPolicy> policy,
                                                              const PolicyPlace& place,
                                                              ContainerProcess::OnLine on_line) {
  FOLIOT_ASSIGN_OR_RETURN(auto process, PolicyProcess::start(policy->options(), place, std::move(on_line)));
  std::unique_ptr<ReplayedPolicy> replayed(new ReplayedPolicy(std::move(policy), std::move(process)));
  const ServedApplication::OwnWork first{
      .policy = replayed->policy_, .context = "", .begins = true, .state = {}, .feedback = {}};
  FOLIOT_ASSIGN_OR_RETURN(const OwnPolicy::Part part, replayed->process_->ask(first));
  replayed->initial_ = replayed->policy_->init();
  replayed->policy_->set_part(replayed->initial_, part);
  return replayed;
}

ReplayedPolicy::ReplayedPolicy(std::shared_ptr<const OwnPolicy> policy, std::unique_ptr<PolicyProcess> process)
    : SelectionPolicy(static_cast<uint32_t>(policy->options().models.size())),
      policy_(std::move(policy)),
      process_(std::move(process)) {}

Selection ReplayedPolicy::choose(const SelectionState& state, const Available& available, Random& random) const {
  return policy_->select(state, available, random);
}

void ReplayedPolicy::learn(SelectionState& state, const Selection& selected, Losses losses) const {
  if (!status_.ok()) return;
  // Without this a process that prints much would wait for a reader.
  status_ = process_->listen(Duration());
  if (!status_.ok()) return;
  const std::span<const double> own = policy_->own_state(state);
  const auto feedback =
      std::make_shared<const LearnedFeedback>(LearnedFeedback{selected, {losses.begin(), losses.end()}});
  const Result<OwnPolicy::Part> part = process_->ask(
      {.policy = policy_, .context = "", .begins = false, .state = {own.begin(), own.end()}, .feedback = {feedback}});
  status_ = part.status();
  if (part.ok()) policy_->set_part(state, *part);
}

}  // namespace foliot
