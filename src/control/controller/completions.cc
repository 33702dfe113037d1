#include "control/controller/completions.h"

#include <fmt/format.h>

namespace foliot {

namespace {

// What comes after the inference is still to be done then.
TimePoint answered_by(const Request& request, TimePoint earliest_completion) {
  const bool known = earliest_completion > TimePoint() && !earliest_completion.is_infinite();
  return known ? earliest_completion + request.reserve : earliest_completion;
}

}  // namespace

Completion refusal_of(const Request& request, Refusal reason, TimePoint earliest_completion, TimePoint now) {
  return {.id = request.id,
          .model = request.model,
          .task = request.task,
          .payload = request.payload,
          .refusal = reason,
          .detail = {},
          .arrival = request.arrival,
          .deadline = request.answer_by(),
          .finished = now,
          .earliest_completion = answered_by(request, earliest_completion)};
}

std::string queue_detail(const CountByClass& waiting) {
  const uint64_t count = waiting[static_cast<size_t>(RequestClass::kDeadline)];
  if (count == 0) return {};
  return fmt::format("{} other {} with a deadline {}", count, count == 1 ? "request" : "requests",
                     count == 1 ? "waits" : "wait");
}

Completion answer_of(const RequestTable::Entry& row, const Action& action, const Outcome& outcome, uint32_t index,
                     TimePoint now) {
  Completion completion = refusal_of(row.request, Refusal::kNone, TimePoint(), now);
  if (now > row.request.answer_by()) {
    completion.refusal = Refusal::kLate;
    completion.earliest_completion = now;
  }
  completion.batch_size = action.batch_size;
  completion.cold_start = row.cold_start;
  completion.exec_start = outcome.start;
  completion.input_duration = outcome.input_duration;
  completion.exec_duration = outcome.duration;
  completion.output_duration = outcome.output_duration;
  completion.conditions = outcome.conditions[index];
  completion.count = outcome.counts[index];
  completion.action = action.id;
  completion.device = action.device;
  return completion;
}

}  // namespace foliot
