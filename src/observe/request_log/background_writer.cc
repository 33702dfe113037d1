#include "observe/request_log/background_writer.h"

#include <optional>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// How long records wait before they are written, together.
constexpr Duration kInterval = Duration::milliseconds(50);

}  // namespace

Result<std::unique_ptr<BackgroundWriter>> BackgroundWriter::open(const LogOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> file_writer, LogWriter::open(options));
  std::unique_ptr<BackgroundWriter> writer(new BackgroundWriter(std::move(file_writer)));
  FOLIOT_ASSIGN_OR_RETURN(writer->thread_,
                          Thread::start({.name = "log", .nice = 10}, [raw = writer.get()] { raw->run(); }));
  return writer;
}

BackgroundWriter::~BackgroundWriter() {
  stopping_.store(true);
  parker_.unpark();
  thread_.join();
}

void BackgroundWriter::add(const ActionRecord& action) {
  ActionRecord alone = action;
  alone.requests = {};
  if (actions_.ring.full() || !action_rows_.push_all(action.requests)) {
    actions_.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  FOLIOT_CHECK(actions_.ring.push(alone));
}

void BackgroundWriter::add_feedback(FeedbackRecord record) {
  if (!feedback_.push(std::move(record))) feedback_dropped_.fetch_add(1, std::memory_order_relaxed);
}

// `rows` outlives the record.
ActionRecord BackgroundWriter::with_rows(ActionRecord action, BoundedArray<RequestId, kBatchSizeMax>& rows) {
  rows.clear();
  for (uint32_t i = 0; i < action.rows; ++i) rows.add(action_rows_.pop().value());
  action.requests = {rows.begin(), rows.end()};
  return action;
}

void BackgroundWriter::run() {
  while (!stopping_.load()) {
    write_waiting();
    parker_.park_until(monotonic_now() + kInterval);
  }
  write_waiting();
}

void BackgroundWriter::write_waiting() {
  if (const uint64_t dropped = requests_.dropped.exchange(0); dropped > 0) writer_->add_dropped_requests(dropped);
  if (const uint64_t dropped = actions_.dropped.exchange(0); dropped > 0) writer_->add_dropped_actions(dropped);
  while (const std::optional<RequestRecord> request = requests_.ring.pop()) writer_->add(*request);
  BoundedArray<RequestId, kBatchSizeMax> rows;
  while (const std::optional<ActionRecord> action = actions_.ring.pop()) writer_->add(with_rows(*action, rows));
  if (const uint64_t dropped = feedback_dropped_.exchange(0); dropped > 0) writer_->add_dropped_feedback(dropped);
  while (feedback_.consume([this](const FeedbackRecord& record) { writer_->add(record); })) {
  }
  writer_->flush();
}

}  // namespace foliot
