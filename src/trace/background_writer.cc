#include "trace/background_writer.h"

#include <optional>

#include "platform/clock.h"

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
  while (const std::optional<ActionRecord> action = actions_.ring.pop()) writer_->add(*action);
  writer_->flush();
}

}  // namespace foliot
