// Registry: the policies, by the name that --scheduler takes.
#ifndef FOLIOT_CONTROL_POLICIES_REGISTRY_H_
#define FOLIOT_CONTROL_POLICIES_REGISTRY_H_

#include <string>
#include <vector>

#include "control/controller/controller.h"
#include "foundation/base/status.h"

namespace foliot {

struct RegisteredPolicy {
  std::string name;
  std::string summary;  // one line, for people
  Controller::PolicyFactory make;
};

// In the order of their names.
const std::vector<RegisteredPolicy>& policies();
std::vector<std::string> policy_names();
// Errors: kNotFound naming those that exist.
Result<RegisteredPolicy> find_policy(const std::string& name);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_REGISTRY_H_
