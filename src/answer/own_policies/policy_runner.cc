#include "answer/own_policies/policy_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/units.h"
#include "foundation/platform/clock.h"

namespace foliot {

PolicyRunner::PolicyRunner(PolicyPlace place, std::shared_ptr<ServedApplication> application, Reports reports)
    : place_(std::move(place)), application_(std::move(application)), reports_(std::move(reports)) {}

PolicyRunner::~PolicyRunner() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

Status PolicyRunner::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "policy"}, [this] { run(); }));
  return Status();
}

bool PolicyRunner::wait(Duration most) {
  MutexLock lock(mutex_);
  stop_.wait_for(mutex_, most, [this]() REQUIRES(mutex_) { return stopping_.load(); });
  return !stopping_;
}

void PolicyRunner::run() {
  Duration delay = kWaitMin;
  while (!stopping_) {
    const std::shared_ptr<const OwnPolicy> policy = application_->own_policy();
    if (policy == nullptr) {
      wait(kWaitMin);
      continue;
    }
    const TimePoint began = monotonic_now();
    const Status ended = serve(policy->options());
    if (ended.ok() || stopping_) {
      delay = kWaitMin;
      continue;
    }
    application_->fail_own(std::exchange(asked_, 0));
    if (monotonic_now() - began >= kGoodAfter) delay = kWaitMin;
    reports_.on_failure(
        fmt::format("application '{}': the policy '{}' failed: {}; its fallback '{}' selects, and it is started again "
                    "in {}",
                    application_->application()->name, policy->options().file.filename().string(), ended.message(),
                    policy->options().fallback, format_duration(delay)));
    failed_before_ = true;
    wait(delay);
    delay = std::min(delay * 2, kWaitMax);
  }
}

Status PolicyRunner::serve(const OwnPolicyOptions& options) {
  const std::string name =
      fmt::format("application '{}', policy '{}'", application_->application()->name, options.file.filename().string());
  const auto on_line = [&](std::string_view line) { reports_.on_line(fmt::format("{}: {}", name, line)); };
  const auto cancelled = [this] { return stopping_.load(); };
  Result<std::unique_ptr<PolicyProcess>> process = PolicyProcess::start(options, place_, on_line, cancelled);
  if (stopping_) return Status();
  FOLIOT_RETURN_IF_ERROR(process.status());
  std::optional<ServedApplication::OwnWork> work = application_->first_own_work();
  while (!stopping_) {
    const std::shared_ptr<const OwnPolicy> policy = application_->own_policy();
    if (policy == nullptr || policy->options() != options) return Status();
    if (work && work->policy->options() == options) {
      asked_ = work->feedback.size();
      FOLIOT_ASSIGN_OR_RETURN(const OwnPolicy::Part part, (*process)->ask(*work));
      application_->take_own_part(*work, part);
      asked_ = 0;
      if (std::exchange(failed_before_, false)) reports_.on_line(fmt::format("{} selects again", name));
    }
    // Before more is taken, which would be lost with a process that has ended.
    FOLIOT_RETURN_IF_ERROR((*process)->listen(work ? Duration() : kInterval));
    work = application_->take_own_work(PolicyProcess::kFeedbackMax);
  }
  return Status();
}

}  // namespace foliot
