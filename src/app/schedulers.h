// The policies, by the name that --scheduler takes.
#ifndef FOLIOT_APP_SCHEDULERS_H_
#define FOLIOT_APP_SCHEDULERS_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "controller/controller.h"

namespace foliot {

struct Policy {
  std::string name;
  std::string summary;  // one line, for people
  Controller::SchedulerFactory make;
};

// In the order of their names.
const std::vector<Policy>& policies();
std::vector<std::string> policy_names();
// Errors: kNotFound naming those that exist.
Result<Policy> find_policy(const std::string& name);

}  // namespace foliot

#endif  // FOLIOT_APP_SCHEDULERS_H_
