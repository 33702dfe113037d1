#include "observe/monitor/feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "foundation/core/action.h"
#include "foundation/core/call_label.h"
#include "observe/request_log/explanation.h"
#include "observe/request_log/log.h"

namespace foliot {
namespace {

// Bytes that are no UTF-8 become U+FFFD.
std::string quoted(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view outcome_of(Refusal refusal) { return refusal == Refusal::kNone ? "served" : to_string(refusal); }

// {"served":3,"expired":1}: those that there were.
std::string to_json(const MonitorOutcomes& outcomes) {
  std::string json;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] == 0) continue;
    fmt::format_to(std::back_inserter(json), "{}\"{}\":{}", json.empty() ? "" : ",",
                   outcome_of(static_cast<Refusal>(i)), outcomes[i]);
  }
  return "{" + json + "}";
}

// "[0,5]": the bits that are set.
std::string list_of(uint64_t bits) {
  std::string json;
  for (; bits != 0; bits &= bits - 1)
    fmt::format_to(std::back_inserter(json), "{}{}", json.empty() ? "" : ",", std::countr_zero(bits));
  return "[" + json + "]";
}

// Puts `item` behind a comma, unless the list is to be no longer than `bytes_max`.
bool append(std::string& list, std::string_view item, size_t bytes_max) {
  if (list.size() + item.size() + 1 > bytes_max) return false;
  if (!list.empty()) list += ',';
  list += item;
  return true;
}

}  // namespace

MonitorFeed::MonitorFeed(const Monitor& monitor, std::string process, TimePoint origin, std::function<TimePoint()> now)
    : monitor_(monitor), process_(std::move(process)), origin_(origin), now_(std::move(now)) {}

Result<std::string> MonitorFeed::explanation(std::optional<RequestId> request, std::string_view client_id) const {
  if (log_.empty())
    return Status::not_found("this server keeps no log to explain requests from; start it with --log FOLDER");
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(log_, kLogBytesMax));
  const RequestRecord* found = request ? log.request(*request) : nullptr;
  if (!request) {
    const CallLabel wanted = call_label(client_id);
    for (const RequestRecord& record : log.requests()) {
      const bool called = record.label && record.label->text == wanted.text && record.label->bytes == wanted.bytes;
      if (called && wanted.bytes > 0 && (found == nullptr || record.arrival > found->arrival)) found = &record;
    }
  }
  if (found != nullptr) return explain(log, *found);
  return Status::not_found(
      fmt::format("the last {} MB of the log {} have no such request; it is a moment later there than here, and of "
                  "older ones `foliot "
                  "explain` knows more",
                  kLogBytesMax >> 20, log_.string()));
}

// PROCESS.NUMBER
std::optional<uint64_t> MonitorFeed::sequence_of(std::string_view since) const {
  if (!since.starts_with(process_)) return std::nullopt;
  since.remove_prefix(process_.size());
  if (!since.starts_with('.')) return std::nullopt;
  since.remove_prefix(1);
  uint64_t sequence = 0;
  const auto [end, error] = std::from_chars(since.data(), since.data() + since.size(), sequence);
  if (error != std::errc() || end != since.data() + since.size()) return std::nullopt;
  return sequence;
}

std::string MonitorFeed::answer(std::string_view since) {
  const TimePoint now = now_();
  read_state(now);
  const uint64_t end = monitor_.events().written(), oldest = monitor_.events().oldest();
  const std::optional<uint64_t> wanted = sequence_of(since);
  const bool full = !wanted || *wanted > end || *wanted < oldest;
  const uint64_t first = full ? oldest : *wanted;
  constexpr size_t kFrameBytes = 1000;
  const Events events = events_between(first, end, kBytesMax - kFrameBytes - state_.size());
  return fmt::format(
      R"({{"version":{},"process":"{}","full":{},"now":{},"next":"{}.{}","lost":{},{},"actions":[{}],"requests":[{}]}})",
      kVersion, process_, full, instant(now), process_, end, full ? 0 : events.first - first, state_, events.actions,
      events.requests);
}

// From the newest back, until they are too many or the writer has overtaken them.
MonitorFeed::Events MonitorFeed::events_between(uint64_t first, uint64_t end, size_t bytes_max) const {
  std::vector<std::string> actions, requests;
  Events events{.actions = {}, .requests = {}, .first = end};
  size_t bytes = 0;
  while (events.first > first) {
    const std::optional<MonitorEvent> event = monitor_.events().read(events.first - 1);
    if (!event) break;
    std::string json = std::visit([this](const auto& what) { return to_json(what); }, *event);
    bytes += json.size() + 1;
    if (bytes > bytes_max) break;
    (std::holds_alternative<MonitorAction>(*event) ? actions : requests).push_back(std::move(json));
    --events.first;
  }
  std::ranges::reverse(actions);
  std::ranges::reverse(requests);
  for (const std::string& action : actions) append(events.actions, action, bytes_max);
  for (const std::string& request : requests) append(events.requests, request, bytes_max);
  return events;
}

void MonitorFeed::read_state(TimePoint now) {
  if (state_at_ && now - *state_at_ < kStateInterval) return;
  state_at_ = now;
  state_ = fmt::format(R"("outcomes":{},{},{})", foliot::to_json(monitor_.outcomes()), devices(), models());
}

std::string MonitorFeed::devices() const {
  std::string list;
  size_t left_out = 0;
  for (const MonitorDevice& device : monitor_.devices()) {
    const bool fits = append(
        list,
        fmt::format(
            R"({{"id":{},"kind":{},"state":"{}","trouble":"{}","since":{},"lanes":{},"pages_used":{},"pages":{},"residents":{},"actions":{},"margin":{},"lookahead":{}}})",
            device.id.value(), quoted(device.kind), to_string(device.state), to_string(device.trouble),
            instant(device.since), device.lanes, device.pages_used, device.pages, device.residents, device.actions,
            device.margin.nanoseconds(), device.lookahead.nanoseconds()),
        kListBytesMax);
    if (!fits) ++left_out;
  }
  return fmt::format(R"("devices":[{}],"devices_left_out":{})", list, left_out);
}

// Those that were asked for most come first, so that they are not those left out.
std::string MonitorFeed::models() const {
  std::vector<MonitorModel> models = monitor_.models();
  std::ranges::stable_sort(models, std::ranges::greater(), &MonitorModel::arrivals);
  std::string list;
  size_t left_out = 0;
  for (const MonitorModel& model : models) {
    const bool fits = append(
        list,
        fmt::format(
            R"({{"name":{},"pages":{},"copies":{},"held_by":{},"arrivals":{},"waiting":{},"sent":{},"outcomes":{}}})",
            quoted(model.name), model.pages, model.copies, list_of(model.holders), model.arrivals, model.waiting,
            model.sent, foliot::to_json(model.outcomes)),
        kListBytesMax);
    if (!fits) ++left_out;
  }
  return fmt::format(R"("models":[{}],"models_left_out":{})", list, left_out);
}

std::string MonitorFeed::to_json(const MonitorAction& action) const {
  std::string json = fmt::format(R"({{"id":{},"type":"{}","device":{},"model":{})", action.id.value(),
                                 to_string(action.type), action.device.value(), quoted(action.model));
  const auto add = [&json](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(json), R"(,"{}":{})", name, value);
  };
  if (action.type == ActionType::kInfer) {
    add("lane", action.lane);
    add("lanes", action.lanes);
    add("batch", action.batch_size);
    add("rows", action.rows);
  }
  if (!action.sent.is_infinite()) add("sent", instant(action.sent));
  if (!action.expected_begin.is_infinite()) {
    add("expected_begin", instant(action.expected_begin));
    add("expected_end", instant(action.expected_begin + action.expected));
  }
  if (action.over) {
    fmt::format_to(std::back_inserter(json), R"(,"status":"{}")", to_string(action.status));
    add("begin", instant(action.begin));
    add("end", instant(action.end));
  }
  return json + "}";
}

// Ids have 64 bits, more than a number of JavaScript's: they are strings.
std::string MonitorFeed::to_json(const MonitorRequest& request) const {
  std::string json = fmt::format(R"({{"id":"{}","model":{},"outcome":"{}","arrival":{},"finished":{})",
                                 request.id.value(), quoted(request.model), outcome_of(request.refusal),
                                 instant(request.arrival), instant(request.finished));
  const auto add = [&json](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(json), R"(,"{}":{})", name, value);
  };
  if (!request.deadline.is_infinite()) add("deadline", instant(request.deadline));
  if (!request.earliest_completion.is_infinite()) add("earliest", instant(request.earliest_completion));
  if (request.cold_start) add("cold", true);
  if (request.batch_size > 0) {
    add("batch", request.batch_size);
    add("device", request.device.value());
    add("action", request.action.value());
    add("begin", instant(request.exec_begin));
    add("input", request.input.nanoseconds());
    add("exec", request.exec.nanoseconds());
    add("output", request.output.nanoseconds());
  }
  return json + "}";
}

}  // namespace foliot
