#include "app/event_log.h"

#include <fmt/format.h>

#include "platform/clock.h"

namespace foliot {
namespace {

// How long lines wait before they are written, together.
constexpr Duration kInterval = Duration::milliseconds(100);

}  // namespace

Result<std::unique_ptr<EventLog>> EventLog::open(const std::filesystem::path& path, TimePoint origin) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    return Status::invalid_argument(
        fmt::format("cannot write the event log {}; choose another with --event-log", path.string()));
  }
  std::unique_ptr<EventLog> log(new EventLog(file, origin));
  Result<Thread> thread = Thread::start({.name = "event-log", .nice = 10}, [raw = log.get()] { raw->run(); });
  if (!thread.ok()) return thread.status();
  log->thread_ = std::move(thread).value();
  return log;
}

EventLog::EventLog(std::FILE* file, TimePoint origin) : file_(file), origin_(origin) {
  std::fputs("kind,id,type,model,batch,start_us,end_us,expected_us,earliest_us,latest_us,status\n", file_);
}

EventLog::~EventLog() {
  stopping_.store(true);
  parker_.unpark();
  thread_.join();
  if (dropped_ > 0) fmt::print(file_, "dropped,{},,,,,,,,,\n", dropped_.load());
  std::fclose(file_);
}

void EventLog::on_model(const ModelInfo& model) {
  if (model.id.value() >= names_.size()) names_.resize(model.id.value() + 1);
  names_[model.id.value()] = std::make_shared<const std::string>(model.name);
}

void EventLog::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  push({.is_action = true,
        .type = action.type,
        .id = action.id.value(),
        .model = action.model,
        .model_name = {},
        .batch_size = action.batch_size,
        .start = outcome.start,
        .end = outcome.end,
        .expected = action.expected,
        .earliest = action.earliest,
        .latest = action.latest,
        .status = to_string(outcome.status)});
}

void EventLog::on_completion(const Completion& completion, TimePoint /*now*/) {
  push({.id = completion.id.value(),
        .model = completion.model,
        .model_name = {},
        .batch_size = completion.batch_size,
        .start = completion.arrival,
        .end = completion.finished,
        .expected = completion.deadline.is_infinite() ? Duration() : completion.deadline - completion.arrival,
        .earliest = completion.arrival,
        .latest = completion.deadline,
        .status = completion.served() ? "served" : to_string(completion.refusal)});
}

void EventLog::push(Line line) {
  if (line.model.value() < names_.size()) line.model_name = names_[line.model.value()];
  if (!ring_.push(std::move(line))) dropped_.fetch_add(1);
}

void EventLog::run() {
  while (!stopping_.load()) {
    write_lines();
    parker_.park_until(monotonic_now() + kInterval);
  }
  write_lines();
}

void EventLog::write_lines() {
  const auto time = [this](TimePoint t) {
    return t.is_infinite() ? std::string() : fmt::format("{:.1f}", (t - origin_).to_microseconds());
  };
  while (const std::optional<Line> line = ring_.pop()) {
    fmt::print(file_, "{},{},{},{},{},{},{},{:.1f},{},{},{}\n", line->is_action ? "action" : "request", line->id,
               line->is_action ? to_string(line->type) : "", line->model_name ? *line->model_name : "",
               line->batch_size, time(line->start), time(line->end), line->expected.to_microseconds(),
               time(line->earliest), time(line->latest), line->status);
  }
  std::fflush(file_);
}

}  // namespace foliot
