#include "app/schedulers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "sched/clockwork/clockwork_scheduler.h"

namespace foliot {
namespace {

std::map<std::string, Controller::SchedulerFactory> all() {
  return {
      {"clockwork", [](const Cluster& cluster) { return clockwork::make_clockwork_scheduler(cluster); }},
  };
}

}  // namespace

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : all()) names.push_back(name);
  return names;
}

Result<Controller::SchedulerFactory> find_scheduler(const std::string& name) {
  const auto factories = all();
  const auto found = factories.find(name);
  if (found != factories.end()) return found->second;
  return Status::not_found(
      fmt::format("there is no scheduler '{}'; there are: {}", name, fmt::join(scheduler_names(), ", ")));
}

}  // namespace foliot
