#include "engine/program/program.h"

#include <algorithm>

namespace foliot {
namespace {

uint64_t largest(const std::vector<Plan>& plans, uint64_t Plan::*member) {
  uint64_t result = 0;
  for (const Plan& plan : plans) result = std::max(result, plan.*member);
  return result;
}

}  // namespace

uint64_t Program::workspace_bytes() const { return largest(plans, &Plan::workspace_bytes); }
uint64_t Program::input_bytes() const { return largest(plans, &Plan::input_bytes); }
uint64_t Program::output_bytes() const { return largest(plans, &Plan::output_bytes); }

}  // namespace foliot
