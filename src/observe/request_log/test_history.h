// History: events of a controller, written in a few words, and the records that a
// Recorder makes of them. For tests. Times are in milliseconds; every action is
// expected to take kExpected.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_TEST_HISTORY_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_TEST_HISTORY_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "foundation/base/check.h"
#include "observe/request_log/log.h"
#include "observe/request_log/log_writer.h"
#include "observe/request_log/record_memory.h"
#include "observe/request_log/recorder.h"

namespace foliot {

inline constexpr ModelId kWarm{0};
inline constexpr ModelId kCold{1};
inline constexpr Duration kExpected = Duration::milliseconds(10);

inline TimePoint at(int64_t milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

// Keeps records in memory.
class RecordList : public RecordSink {
 public:
  void add(const RequestRecord& request) override { requests.push_back(request); }
  void add(const ActionRecord& action) override {
    actions.push_back(action);
    actions.back().requests = memory_.keep(action.requests);
  }
  std::vector<RequestRecord> requests;
  std::vector<ActionRecord> actions;

 private:
  RecordMemory memory_;
};

class History {
 public:
  // Models "warm" (1 page) and "cold" (2 pages), neither loaded.
  History() : History(std::make_unique<RecordList>()) {}

  const std::vector<RequestRecord>& requests() const { return list_.requests; }
  const std::vector<ActionRecord>& actions() const { return list_.actions; }
  const RequestRecord& request_of(uint64_t id) const {
    const auto found = std::find_if(list_.requests.begin(), list_.requests.end(),
                                    [&](const RequestRecord& record) { return record.id == RequestId(id); });
    FOLIOT_CHECK(found != list_.requests.end());
    return *found;
  }
  // All records, in the order of ids, to another sink.
  void copy_to(RecordSink& sink) const {
    for (const RequestRecord& request : list_.requests) sink.add(request);
    for (const ActionRecord& action : list_.actions) sink.add(action);
  }

  void request(uint64_t id, ModelId model, int64_t arrival, int64_t deadline,
               const std::optional<CallLabel>& label = {}) {
    if (label) recorder_.on_label(RequestId(id), std::make_shared<const CallLabel>(*label));
    add({.id = RequestId(id), .model = model, .arrival = at(arrival), .deadline = at(deadline)});
  }
  void add(const Request& request) {
    open_[request.id.value()] = request;
    recorder_.on_request(request, request.arrival);
  }
  void task(ServedTaskId id, std::string name) {
    TaskInfo task;
    task.id = id;
    task.name = std::move(name);
    recorder_.on_task(task);
  }
  // A run of the pipeline "street".
  void run(uint64_t id, int64_t arrival, int64_t deadline) {
    PipelineInfo street;
    street.name = "street";
    const Request request{
        .id = RequestId(id), .pipeline = PipelineId(1), .arrival = at(arrival), .deadline = at(deadline)};
    open_[id] = request;
    recorder_.on_run(request, &street, at(arrival));
  }
  void run_over(uint64_t id, int64_t now, Refusal refusal = Refusal::kNone) {
    Completion completion = completion_of(id, now);
    completion.refusal = refusal;
    recorder_.on_run_over(completion, at(now));
  }
  // Device 0 joins, of this kind.
  void join(std::string_view kind, int64_t now) {
    recorder_.on_device({.device = DeviceId(0), .joined = true, .kind = kind}, at(now));
  }
  void served(uint64_t id, uint64_t action, int64_t finished) { answered(id, action, finished, Refusal::kNone); }
  // The request is answered by a batch that ran in two parts.
  void served_in_parts(uint64_t id, uint64_t first, uint64_t last, int64_t finished) {
    Completion completion = completion_of(id, finished);
    completion.batch_size = done_.at(last).first.batch_size;
    completion.exec_start = done_.at(first).second.start;
    completion.exec_duration = done_.at(first).second.duration + done_.at(last).second.duration;
    recorder_.on_completion(completion, at(finished));
  }
  void late(uint64_t id, uint64_t action, int64_t finished) { answered(id, action, finished, Refusal::kLate); }
  void refused(uint64_t id, Refusal reason, int64_t now, int64_t earliest_completion = 0,
               UnmetRequirement unmet = UnmetRequirement::kNone) {
    Completion completion = completion_of(id, now);
    completion.refusal = reason;
    completion.unmet = unmet;
    completion.earliest_completion = at(earliest_completion);
    recorder_.on_completion(completion, at(now));
  }

  void send_load(uint64_t id, ModelId model, int64_t sent) {
    send(action_of(id, ActionType::kLoad, model, sent), sent);
  }
  void load(uint64_t id, ModelId model, int64_t sent, int64_t start, int64_t end) {
    send_load(id, model, sent);
    over(id, OutcomeStatus::kDone, start, end);
  }
  void unload(uint64_t id, ModelId model, int64_t now) {
    Action action = action_of(id, ActionType::kUnload, model, now);
    action.latest = TimePoint::infinite_future();
    action.expected = Duration();
    send(action, now);
    over(id, OutcomeStatus::kDone, now, now);
  }
  void send_infer(uint64_t id, ModelId model, const std::vector<uint64_t>& rows, int64_t sent,
                  LaneInterval lanes = {}) {
    Action action = action_of(id, ActionType::kInfer, model, sent);
    action.lanes = lanes;
    action.batch_size = static_cast<uint32_t>(rows.size());
    for (const uint64_t row : rows) action.rows.add({RequestId(row), PayloadHandle()});
    send(action, sent);
  }
  void infer_done(uint64_t id, int64_t start, int64_t end) { over(id, OutcomeStatus::kDone, start, end); }
  void infer(uint64_t id, ModelId model, const std::vector<uint64_t>& rows, int64_t sent, int64_t start, int64_t end) {
    send_infer(id, model, rows, sent);
    infer_done(id, start, end);
  }
  void infer_refused(uint64_t id, ModelId model, const std::vector<uint64_t>& rows, int64_t sent, OutcomeStatus status,
                     int64_t now) {
    send_infer(id, model, rows, sent);
    over(id, status, now, now);
  }

 private:
  explicit History(std::unique_ptr<RecordList> list) : list_(*list), recorder_(std::move(list)) {
    recorder_.on_model(ModelInfo{.id = kWarm, .name = "warm", .runnables = {{.pages = 1}}});
    recorder_.on_model(ModelInfo{.id = kCold, .name = "cold", .runnables = {{.pages = 2}}});
  }

  void answered(uint64_t id, uint64_t action, int64_t finished, Refusal refusal) {
    Completion completion = completion_of(id, finished);
    const auto& [sent, outcome] = done_.at(action);
    completion.refusal = refusal;
    completion.batch_size = sent.batch_size;
    completion.exec_start = outcome.start;
    completion.exec_duration = outcome.duration;
    completion.input_duration = outcome.input_duration;
    completion.output_duration = outcome.output_duration;
    recorder_.on_completion(completion, at(finished));
  }
  Completion completion_of(uint64_t id, int64_t finished) const {
    const Request& request = open_.at(id);
    return {.id = request.id,
            .model = request.model,
            .detail = {},
            .arrival = request.arrival,
            .deadline = request.deadline,
            .finished = at(finished)};
  }
  static Action action_of(uint64_t id, ActionType type, ModelId model, int64_t sent) {
    return {.id = ActionId(id),
            .type = type,
            .device = DeviceId(0),
            .model = model,
            .earliest = at(sent),
            .latest = at(sent) + Duration::milliseconds(30),
            .expected = kExpected};
  }
  void send(const Action& action, int64_t sent) {
    sent_[action.id.value()] = action;
    recorder_.on_action(action, at(sent));
  }
  void over(uint64_t id, OutcomeStatus status, int64_t start, int64_t end) {
    const Action& action = sent_.at(id);
    Outcome outcome{.action = action.id,
                    .type = action.type,
                    .device = action.device,
                    .model = action.model,
                    .status = status,
                    .start = at(start),
                    .end = at(end),
                    .duration = at(end) - at(start)};
    if (action.type == ActionType::kInfer && outcome.done()) {
      outcome.input_duration = Duration::microseconds(100);
      outcome.output_duration = Duration::microseconds(50);
      outcome.output_end = outcome.end + outcome.output_duration;
    }
    done_[id] = {action, outcome};
    recorder_.on_outcome(action, outcome, at(end));
  }

  RecordList& list_;
  Recorder recorder_;
  std::map<uint64_t, Request> open_;
  std::map<uint64_t, Action> sent_;
  std::map<uint64_t, std::pair<Action, Outcome>> done_;
};

// What is read back of a history that was written to a log.
inline Log log_of(const History& history) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("foliot_history_" + std::to_string(getpid()));
  {
    auto writer = LogWriter::open({.folder = folder});
    FOLIOT_CHECK(writer.ok());
    history.copy_to(**writer);
  }
  auto log = Log::read(folder);
  std::filesystem::remove_all(folder);
  return std::move(log).value();
}

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_TEST_HISTORY_H_
