// TaskOptions: how the controller chooses variants of tasks.
#ifndef FOLIOT_CONTROL_CONTROLLER_TASK_OPTIONS_H_
#define FOLIOT_CONTROL_CONTROLLER_TASK_OPTIONS_H_

#include <map>
#include <string>

namespace foliot {

struct TaskOptions {
  // One of control/variants/variant_policy.h.
  std::string policy{"predicted"};
  // Dollars per hour of a device, by kind. Where all kinds cost the same, costs compare durations.
  std::map<std::string, double, std::less<>> hourly_dollars{};
  // Of kinds that are not there.
  double default_hourly_dollars = 1;

  double hourly_dollars_of(const std::string& kind) const {
    const auto found = hourly_dollars.find(kind);
    return found == hourly_dollars.end() ? default_hourly_dollars : found->second;
  }
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_TASK_OPTIONS_H_
