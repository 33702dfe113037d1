#include "control/fleet/solvers/highs_solver.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "control/fleet/solvers/integer_program.h"
#include "foundation/platform/clock.h"
#include "foundation/process/child_process.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

// Bounds that are infinite are null.
std::string to_json(const IntegerProgram& program, Duration limit) {
  Json columns = Json::array();
  for (const IntegerProgram::Column& column : program.columns) columns.push_back({column.cost, column.most});
  Json rows = Json::array();
  const auto bound = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  for (const IntegerProgram::Row& row : program.rows) {
    Json terms = Json::array();
    for (const IntegerProgram::Term& term : row.terms) terms.push_back({term.column, term.factor});
    rows.push_back({{"least", bound(row.least)}, {"most", bound(row.most)}, {"terms", terms}});
  }
  return Json{{"seconds", limit.to_seconds()}, {"columns", columns}, {"rows", rows}}.dump();
}

}  // namespace

Result<ScalingPlan> HighsSolver::solve(const ScalingProblem& problem, Duration limit) {
  FOLIOT_RETURN_IF_ERROR(check_problem(problem));
  const IntegerProgram program = integer_program_of(problem);
  auto child = ChildProcess::start(
      {.command = options_.command, .environment = options_.environment, .input = to_json(program, limit)});
  if (!child.ok()) return Status::unavailable("HiGHS cannot be started: " + child.status().message());
  const TimePoint end = monotonic_now() + limit + options_.start_most;
  std::string said, complained;
  while (child->listen(end - monotonic_now(), said, complained)) {
    if (monotonic_now() < end) continue;
    child->kill();
    return Status::unavailable(
        fmt::format("HiGHS did not answer within {} s, and was killed", (limit + options_.start_most).to_seconds()));
  }
  if (!child->succeeded()) {
    return Status::unavailable(fmt::format("HiGHS ended with {}: {}", child->ending(), complained.substr(0, 500)));
  }
  const Json answer = Json::parse(said, nullptr, false);
  if (!answer.is_object() || !answer.contains("status") || !answer.at("status").is_string()) {
    return Status::unavailable("HiGHS gave no answer: " + said.substr(0, 200));
  }
  const std::string status = answer.at("status");
  if (status == "infeasible") return infeasible(problem);
  const auto values = answer.find("values");
  if (values == answer.end() || !values->is_array()) return Status::unavailable("HiGHS found nothing: " + status);
  std::vector<double> numbers;
  for (const Json& value : *values) numbers.push_back(value.is_number() ? value.get<double>() : NAN);
  if (const auto seconds = answer.find("seconds"); seconds != answer.end() && seconds->is_number()) {
    solving_ = Duration::from_seconds(seconds->get<double>());
  }
  return plan_of(problem, program, numbers, status == "optimal");
}

}  // namespace foliot
