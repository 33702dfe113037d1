// The policies, by the name that --scheduler takes.
#ifndef FOLIOT_APP_SCHEDULERS_H_
#define FOLIOT_APP_SCHEDULERS_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "controller/controller.h"

namespace foliot {

std::vector<std::string> scheduler_names();
// Errors: kNotFound naming those that exist.
Result<Controller::SchedulerFactory> find_scheduler(const std::string& name);

}  // namespace foliot

#endif  // FOLIOT_APP_SCHEDULERS_H_
