#include "observe/request_log/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "foundation/base/bit_set.h"
#include "foundation/base/escaped_text.h"
#include "foundation/core/stage_visit.h"
#include "observe/request_log/time_parts.h"

namespace foliot {
namespace {

// Of the time that a request waited, an idle device is mentioned if it was idle for one part in so many.
constexpr int64_t kIdleParts = 10;
// Less would be shown as 0.00 ms.
constexpr Duration kShortest = Duration::microseconds(5);

std::string milliseconds(Duration duration) { return fmt::format("{:.2f} ms", duration.to_milliseconds()); }

// `one` as it is, or the number and `many`: "1 request was", "no requests were".
std::string counted(uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return std::string(one);
  return count == 0 ? fmt::format("no {}", many) : fmt::format("{} {}", count, many);
}

// "'a'", "'a' and 'b'", "'a', 'b' and 'c'".
std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += fmt::format("'{}'", names[i]);
  }
  return text;
}

// "0.40 ms longer than expected".
std::string against_expected(Duration measured, Duration expected) {
  const Duration error = measured - expected;
  if (error == Duration()) return "as expected";
  return fmt::format("{} {} than expected", milliseconds(error < Duration() ? -error : error),
                     error < Duration() ? "shorter" : "longer");
}

class Explainer {
 public:
  Explainer(const Log& log, const RequestRecord& request)
      : log_(log), request_(request), action_(request.action ? log.action(*request.action) : nullptr) {}

  std::string explain() {
    say_headline();
    text_ += "\n\n";
    say_label();
    if (const std::vector<const RequestRecord*> stages = visits(); !stages.empty()) {
      say_visits(stages);
      return std::move(text_);
    }
    say_arrival();
    say_load();
    say_returns();
    if (request_.action) say_batch();
    if (request_.exec_start.is_infinite()) {
      say_what_kept_it();
    } else {
      say_what_was_before_it();
      say_exec();
    }
    if (!request_.served()) say_refusal();
    if (!request_.exec_start.is_infinite()) say_where_the_time_went();
    return std::move(text_);
  }

 private:
  template <typename... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }
  // "+1.50 ms", from the arrival.
  std::string when(TimePoint time) const {
    return fmt::format("{:+.2f} ms", (time - request_.arrival).to_milliseconds());
  }

  void say_what_was_asked() {
    if (request_.task.empty()) {
      say("Request {} of model '{}' ", request_.id.value(), request_.model);
    } else {
      say("Request {} of task '{}' (variant '{}') ", request_.id.value(), request_.task, request_.model);
    }
  }

  void say_headline() {
    say_what_was_asked();
    if (request_.served()) {
      say("was answered after {}", milliseconds(request_.latency()));
    } else if (request_.refusal == Refusal::kLate) {
      say("was answered too late, after {}", milliseconds(request_.latency()));
    } else {
      say("was refused after {} ({})", milliseconds(request_.latency()), to_string(request_.refusal));
    }
    if (!request_.slo) {
      say("; it had no deadline{}.", request_.request_class == RequestClass::kOffline ? " (class offline)" : "");
    } else if (request_.departure <= request_.deadline) {
      say(", {} before its deadline of {}.", milliseconds(request_.deadline - request_.departure),
          milliseconds(*request_.slo));
    } else {
      say(", {} after its deadline of {}.", milliseconds(request_.departure - request_.deadline),
          milliseconds(*request_.slo));
    }
  }

  void say_label() {
    if (request_.label == nullptr) return;
    const CallLabel& label = *request_.label;
    if (!label.selection.empty()) say("It was asked by {}.\n", escaped(label.selection));
    if (label.bytes == 0) return;
    say("Its client calls it {}", in_quotes(label.text));
    if (label.cut()) say(" (the first {} of {} bytes)", label.text.size(), label.bytes);
    say(".\n");
  }

  // If it is a run of a pipeline: those of its stages, as far as the log has them.
  std::vector<const RequestRecord*> visits() const {
    std::vector<const RequestRecord*> visits;
    if (visit_slot(request_.id)) return visits;
    for (uint32_t slot = 0; slot < kSlotsMax; ++slot) {
      const RequestRecord* visit = log_.request(visit_of(request_.id, slot));
      const bool within = visit != nullptr && visit->arrival >= request_.arrival &&
                          visit->departure <= request_.departure && visit->deadline == request_.deadline;
      if (within) visits.push_back(visit);
    }
    return visits;
  }

  void say_visits(const std::vector<const RequestRecord*>& visits) {
    say("It is a run of a pipeline, which arrived {:.6f} s into the log. Its visits of stages, each a request of its "
        "own:\n",
        (request_.arrival - TimePoint()).to_seconds());
    for (const RequestRecord* visit : visits) {
      say("  visit {} (model '{}', request {}): began at {}, ", *visit_slot(visit->id) + 1, visit->model,
          visit->id.value(), when(visit->arrival));
      if (!visit->served()) {
        say("was refused at {} ({})\n", when(visit->departure), to_string(visit->refusal));
        continue;
      }
      say("waited {}, EXEC {} in a batch of {}, over at {}\n", milliseconds(visit->exec_start - visit->arrival),
          milliseconds(visit->exec_duration), visit->batch_size, when(visit->departure));
    }
    if (!request_.served()) say_refusal();
  }

  void say_arrival() {
    say("It arrived {:.6f} s into the log, when {} queued. ", (request_.arrival - TimePoint()).to_seconds(),
        counted(request_.queue_length, "1 other request was", "other requests were"));
    say("{}\n", request_.cold_start ? "Its model was not loaded: a cold start." : "Its model was loaded.");
  }

  void say_load() {
    if (!request_.load) {
      if (request_.cold_start && !request_.action) say("No LOAD of its model was under way.\n");
      return;
    }
    const ActionRecord* load = log_.action(*request_.load);
    if (load == nullptr) {
      say("It waited for LOAD {} of its model, of which the log has no outcome.\n", request_.load->value());
      return;
    }
    if (!load->done()) {
      say("LOAD {} of its model, sent to device {} at {}, came to nothing: {}.\n", load->id.value(),
          load->device.value(), when(load->sent), to_string(load->status));
      return;
    }
    say("It waited for LOAD {} of its model to device {}, which was sent at {} and ran from {} to {}: {}, {}",
        load->id.value(), load->device.value(), when(load->sent), when(load->start), when(load->end),
        milliseconds(load->duration), against_expected(load->duration, load->expected_duration));
    const std::vector<std::string_view> evicted = evicted_for(*load);
    if (!evicted.empty()) say("; it evicted {}", listed(evicted));
    say(".\n");
  }

  // UNLOADs that were sent to the same device at the same instant, just before it.
  std::vector<std::string_view> evicted_for(const ActionRecord& load) const {
    std::vector<std::string_view> names;
    for (auto i = &load - log_.actions().data(); i > 0; --i) {
      const ActionRecord& before = log_.actions()[static_cast<size_t>(i - 1)];
      if (before.type != ActionType::kUnload || before.device != load.device || before.sent != load.sent) break;
      names.push_back(before.model);
    }
    return names;
  }

  void say_returns() {
    if (request_.returns == 0) return;
    for (const ActionRecord& action : log_.actions()) {
      if (action.done() || std::ranges::count(action.requests, request_.id) == 0) continue;
      say("INFER {} was to carry it on device {}, and was refused at {} ({}): EXEC was expected at {} and had to begin "
          "by {}. It went back into the queue.\n",
          action.id.value(), action.device.value(), when(action.start), to_string(action.status),
          when(action.expected_start), when(action.latest));
    }
  }

  void say_batch() {
    if (action_ == nullptr) {
      say("INFER {} carried it; the log has no outcome of that.\n", request_.action->value());
      return;
    }
    const std::string company =
        action_->rows == 1 ? "it alone" : "it and " + counted(action_->rows - 1, "1 other", "others");
    say("At {} INFER {} was sent to device {}{}, with {} in a batch of size {}; {} behind in the queue.\n",
        when(action_->sent), action_->id.value(), action_->device.value(), on_lanes(*action_), company,
        action_->batch_size, counted(action_->queue_length, "1 request stayed", "requests stayed"));
  }

  // Empty: as far as the log shows, the device has one.
  std::string on_lanes(const ActionRecord& infer) const {
    const auto beyond_first = [&](const ActionRecord& other) {
      return other.device == infer.device && other.lanes.end() > 1;
    };
    if (std::ranges::none_of(log_.actions(), beyond_first)) return "";
    const LaneInterval lanes = infer.lanes;
    return lanes.count == 1 ? fmt::format(", lane {}", lanes.first)
                            : fmt::format(", lanes {} to {}", lanes.first, lanes.end() - 1);
  }

  struct Work {
    uint64_t batches = 0;
    uint64_t of_its_model = 0;
    Duration time;
  };
  // What devices (or the one given) executed between two instants.
  Work work_between(TimePoint begin, TimePoint end, std::optional<DeviceId> device) const {
    Work work;
    for (const ActionRecord& action : log_.actions()) {
      if (action.type != ActionType::kInfer || !action.done() || (device && action.device != *device)) continue;
      const Duration overlap = std::min(action.end, end) - std::max(action.start, begin);
      if (overlap <= Duration() || &action == action_) continue;
      ++work.batches;
      if (action.model == request_.model) ++work.of_its_model;
      work.time += overlap;
    }
    return work;
  }

  static std::string of_its_model(const Work& work) {
    return work.of_its_model == 0 ? "none of its model" : fmt::format("{} of its model", work.of_its_model);
  }

  void say_what_was_before_it() {
    const Work work = work_between(request_.arrival, request_.exec_start, request_.device);
    if (work.batches > 0) {
      say("Until its EXEC began the device executed {}, {}, for {}.\n",
          counted(work.batches, "1 other batch", "other batches"), of_its_model(work), milliseconds(work.time));
    }
    if (action_ == nullptr || in_parts()) return;
    const Duration idle = idle_until(action_->sent, action_->device);
    if (!worth_saying(idle, action_->sent)) return;
    const auto later = std::ranges::count_if(action_->requests, [&](RequestId id) {
      const RequestRecord* const other = log_.request(id);
      return other != nullptr && other->arrival > request_.arrival;
    });
    say("For {} before it was sent, the device had its model and executed nothing: {}; {} of its batch came after "
        "it.\n",
        milliseconds(idle), kHeldBack, counted(static_cast<uint64_t>(later), "1 request", "requests"));
  }

  void say_what_kept_it() {
    const Work work = work_between(request_.arrival, request_.departure, std::nullopt);
    if (work.batches > 0) {
      say("In that time {} executed, {}, for {} in all.\n", counted(work.batches, "1 batch was", "batches were"),
          of_its_model(work), milliseconds(work.time));
    }
    Duration longest;
    DeviceId device;
    BitSet seen;
    for (const ActionRecord& action : log_.actions()) {
      if (action.model != request_.model || seen.contains(action.device.value())) continue;
      seen.insert(action.device.value());
      const Duration idle = idle_until(request_.departure, action.device);
      if (idle <= longest) continue;
      longest = idle;
      device = action.device;
    }
    if (!worth_saying(longest, request_.departure)) return;
    say("For {} of that time device {} had its model and executed nothing: {}, or what was measured let no answer in "
        "time be expected.\n",
        milliseconds(longest), device.value(), kHeldBack);
  }

  static constexpr std::string_view kHeldBack =
      "the policy held its batch back, for more rows (batch_delay) or for requests with less time";

  // A moment passes between any two actions.
  bool worth_saying(Duration idle, TimePoint end) const {
    return idle > Duration() && idle >= (end - request_.arrival) / kIdleParts;
  }

  // For how long the device had its model, as far as the log shows, and executed nothing, from its arrival to `end`.
  Duration idle_until(TimePoint end, DeviceId device) const {
    std::optional<TimePoint> held;
    std::vector<const ActionRecord*> execs;
    for (const ActionRecord& action : log_.actions()) {
      if (action.device != device || action.sent >= end) continue;
      if (action.type == ActionType::kInfer && action.done()) execs.push_back(&action);
      if (action.model != request_.model || !action.done()) continue;
      if (action.type == ActionType::kUnload) {
        held.reset();
      } else if (!held) {
        held = action.type == ActionType::kLoad ? action.end : action.sent;
      }
    }
    if (!held) return Duration();
    std::ranges::sort(execs, {}, &ActionRecord::start);
    TimePoint free = std::max(request_.arrival, *held);
    Duration idle;
    for (const ActionRecord* const exec : execs) {
      idle += std::max(Duration(), std::min(exec->start, end) - free);
      free = std::max(free, exec->end);
    }
    return idle + std::max(Duration(), end - free);
  }

  void say_exec() {
    say("EXEC began at {}", when(request_.exec_start));
    if (action_ == nullptr || in_parts()) {
      say("{} and took {}.\n", in_parts() ? ", ran in parts" : "", milliseconds(request_.exec_duration));
      return;
    }
    const Duration error = request_.exec_start - action_->expected_start;
    say(" ({} {} than expected) and took {}: {} were predicted, so it was {}.\n",
        milliseconds(error < Duration() ? -error : error), error < Duration() ? "earlier" : "later",
        milliseconds(request_.exec_duration), milliseconds(action_->expected_duration),
        against_expected(request_.exec_duration, action_->expected_duration));
  }

  void say_refusal() {
    switch (request_.refusal) {
      case Refusal::kUnmeetable:
        if (request_.unmet != UnmetRequirement::kNone) return say_unmet();
        say("It was refused because even alone on an idle device it would have missed its deadline");
        break;
      case Refusal::kOverload:
        say("It was refused because what was queued before it left no time for it, or a queue was full");
        break;
      case Refusal::kExpired: say("It was refused because its time ran out while it waited"); break;
      case Refusal::kLate: say("Its answer came after its deadline, and counts as none"); break;
      case Refusal::kWorkerLost: say("It was refused because the worker failed or kept refusing its action"); break;
      case Refusal::kUnloaded: say("It was refused because its model was removed"); break;
      case Refusal::kCancelled: say("It was given up because its client went away"); break;
      case Refusal::kDraining: say("It was refused because the server was shutting down"); break;
      case Refusal::kDisconnected: say("It was refused because the connection to the controller was lost"); break;
      case Refusal::kOverShare:
        say("It was refused because its tenant asked for more than its share, and others would have had to wait");
        break;
      case Refusal::kModelError: say("It failed because the model's own code failed on it"); break;
      case Refusal::kNone: break;
    }
    if (request_.earliest_completion.is_infinite() || request_.refusal == Refusal::kLate) {
      say(".\n");
      return;
    }
    say(": its answer was predicted for {} at the earliest", when(request_.earliest_completion));
    if (request_.earliest_completion > request_.deadline) {
      say(", {} after its deadline", milliseconds(request_.earliest_completion - request_.deadline));
    }
    say(".\n");
  }

  // The log has no more of it; the answer named the nearest variant.
  void say_unmet() {
    const bool cost = request_.unmet == UnmetRequirement::kCost;
    say("It was refused because no variant of task '{}' {}; its time was not the reason.\n", request_.task,
        cost ? "that is as accurate as it asked for costs as little as it asked for"
             : "that is served is as accurate as it asked for");
  }

  void say_where_the_time_went() {
    const TimePoint sent = action_ != nullptr && !in_parts() ? action_->sent : request_.exec_start;
    const TimePoint exec_end = action_ != nullptr ? action_->end : request_.exec_start + request_.exec_duration;
    say("\nWhere the time went:\n");
    say_part(sent - request_.arrival, "queued, before it was sent to a device");
    if (action_ != nullptr && !in_parts()) say_reasons_of_queue(sent);
    if (in_parts()) {
      say_part(request_.exec_duration, "EXEC, in parts");
      say_part(exec_end - request_.exec_start - request_.exec_duration, "between the parts, when others ran");
    } else {
      if (action_ != nullptr) {
        say_part(request_.exec_start - sent, "on the device, until EXEC began");
        say_reasons_of_device(sent);
      }
      say_part(exec_end - request_.exec_start, "EXEC");
    }
    const Duration output = std::min(request_.output_duration, request_.departure - exec_end);
    say_part(output, "OUTPUT");
    const Duration news = request_.departure - exec_end - output;
    if (news >= kShortest) say_part(news, "until the controller knew of it");
    say_part(request_.latency(), "in all");
  }
  // What its device executed beside its own batch.
  Duration take_executions(TimeParts& parts) const {
    Duration taken;
    for (const ActionRecord& action : log_.actions()) {
      const bool is_other = action.type == ActionType::kInfer && action.done() && &action != action_;
      if (is_other && action.device == action_->device) taken += parts.take(action.start, action.end);
    }
    return taken;
  }
  void say_reasons_of_queue(TimePoint sent) {
    TimeParts parts(request_.arrival, sent);
    const ActionRecord* const load = request_.load ? log_.action(*request_.load) : nullptr;
    if (load != nullptr) say_reason(parts.take(load->start, load->end), "its model was loaded");
    say_reason(take_executions(parts), "the device executed other batches");
    if (load != nullptr) {
      say_reason(parts.take(request_.arrival, load->start), "the LOAD of its model had not begun");
    }
    say_reason(parts.left(), "the device was free: its batch waited for more rows, or for the controller to decide");
  }
  void say_reasons_of_device(TimePoint sent) {
    TimeParts parts(sent, request_.exec_start);
    say_reason(take_executions(parts), "the device executed other batches");
    say_reason(parts.take(sent, std::min(action_->earliest, request_.exec_start)), "its window had not begun");
    say_reason(parts.take_earliest(request_.input_duration), "its INPUT ran");
    say_reason(parts.left(), "it was on its way: the link, and the executor that woke up");
  }
  // Below a part.
  void say_reason(Duration duration, std::string_view what) {
    if (duration >= kShortest) say("  {:>14}  while {}\n", milliseconds(duration), what);
  }
  // The action is the last of several.
  bool in_parts() const { return action_ != nullptr && request_.exec_start < action_->sent; }
  void say_part(Duration duration, std::string_view what) { say("  {:>12}  {}\n", milliseconds(duration), what); }

  const Log& log_;
  const RequestRecord& request_;
  const ActionRecord* action_;  // null: none carried it, or the log lacks it
  std::string text_;
};

}  // namespace

std::string explain(const Log& log, const RequestRecord& request) { return Explainer(log, request).explain(); }

}  // namespace foliot
