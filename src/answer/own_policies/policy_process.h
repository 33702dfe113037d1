// PolicyProcess: the process of a policy in Python (answer/selection/own_policy.h), confined as a container, whose
// protocol it speaks: a call has the state of one context and its feedback, and its answer the state after it and
// the numbers by which models are asked (python/foliot/selection.py).
//
// The process is not trusted: what it returns is checked.
//
// Threading: one, that which started it.
#ifndef FOLIOT_ANSWER_OWN_POLICIES_POLICY_PROCESS_H_
#define FOLIOT_ANSWER_OWN_POLICIES_POLICY_PROCESS_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer/selection/own_policy.h"
#include "answer/selection/served_application.h"
#include "engine/container/container_process.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// PolicyPlace says how processes of policies are started on this machine.
struct PolicyPlace {
  std::vector<std::string> launcher;  // ContainerOptions::launcher
  std::filesystem::path package;      // that the Python package `foliot` lies in
  ContainerSafety safety;
};

class PolicyProcess {
 public:
  static constexpr size_t kFeedbackMax = 64;  // observations of one call
  // A call ends by then; python/foliot/selection.py needs some 20 us for an observation.
  static constexpr Duration kTimeout = Duration::seconds(1);
  static constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;
  static constexpr uint64_t kDiskBytes = uint64_t{64} << 20;

  // Errors, and `cancelled`: as ContainerProcess::start().
  static Result<std::unique_ptr<PolicyProcess>> start(const OwnPolicyOptions& policy, const PolicyPlace& place,
                                                      ContainerProcess::OnLine on_line,
                                                      const std::function<bool()>& cancelled = {});

  // Errors: what the policy's code raised; kUnavailable: the process is gone, or took longer than kTimeout;
  // kInternal: it broke the protocol. REQUIRES: at most kFeedbackMax observations.
  Result<OwnPolicy::Part> ask(const ServedApplication::OwnWork& work);
  // Passes on what it prints, for at most this long. Errors: kUnavailable: it has ended.
  Status listen(Duration most);

 private:
  PolicyProcess(std::unique_ptr<ContainerProcess> process, const OwnPolicyOptions& policy);
  void write(const ServedApplication::OwnWork& work);
  Result<OwnPolicy::Part> read() const;

  const std::unique_ptr<ContainerProcess> process_;
  const size_t models_;
  const bool combines_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_OWN_POLICIES_POLICY_PROCESS_H_
