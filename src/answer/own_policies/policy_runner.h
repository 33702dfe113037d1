// PolicyRunner: keeps the process of one application's policy in Python, and passes feedback to it and what it
// made of that back. No call waits for it: while the process starts, fails or is away, the policy's fallback
// selects. A process that ends, raises, returns what is no selection or takes too long is killed and started
// again, after a wait that doubles while it keeps failing.
//
// Threading: one owner, and a thread of its own.
#ifndef FOLIOT_ANSWER_OWN_POLICIES_POLICY_RUNNER_H_
#define FOLIOT_ANSWER_OWN_POLICIES_POLICY_RUNNER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "answer/own_policies/policy_process.h"
#include "answer/selection/served_application.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"

namespace foliot {

class PolicyRunner {
 public:
  static constexpr Duration kWaitMin = Duration::milliseconds(100);
  static constexpr Duration kWaitMax = Duration::seconds(30);
  // A process that lived for so long is started again after kWaitMin.
  static constexpr Duration kGoodAfter = Duration::seconds(60);
  // Feedback waits for at most so long while nothing else does: it is passed on in batches.
  static constexpr Duration kInterval = Duration::milliseconds(20);

  // From its thread, a line each.
  struct Reports {
    std::function<void(const std::string&)> on_failure;
    std::function<void(const std::string&)> on_line;  // what the process prints, and that it works again
  };
  PolicyRunner(PolicyPlace place, std::shared_ptr<ServedApplication> application, Reports reports);
  ~PolicyRunner();  // ends the process

  Status start();

 private:
  void run();
  // Until its policy is another one, or it fails.
  Status serve(const OwnPolicyOptions& options);
  bool wait(Duration most);  // false: it ends

  const PolicyPlace place_;
  const std::shared_ptr<ServedApplication> application_;
  const Reports reports_;
  size_t asked_ = 0;  // observations that the process is asked about
  bool failed_before_ = false;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  Condition stop_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_OWN_POLICIES_POLICY_RUNNER_H_
