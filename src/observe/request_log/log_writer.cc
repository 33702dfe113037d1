#include "observe/request_log/log_writer.h"

#include <fmt/format.h>

#include <system_error>

#include "observe/request_log/log_format.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// So much is written at a time.
constexpr size_t kBufferBytes = size_t{64} << 10;

}  // namespace

Result<std::unique_ptr<LogWriter>> LogWriter::open(const LogOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) {
    return Status::invalid_argument(
        fmt::format("cannot make the folder {} of the log: {}", options.folder.string(), error.message()));
  }
  FOLIOT_ASSIGN_OR_RETURN(Stream requests, open_stream<RequestRecord>(options.folder));
  FOLIOT_ASSIGN_OR_RETURN(Stream actions, open_stream<ActionRecord>(options.folder));
  for (const char* suffix : {".csv", ".previous.csv"}) {
    fs::remove(options.folder / (std::string(LogFormat<FeedbackRecord>::kStem) + suffix), error);
  }
  return std::unique_ptr<LogWriter>(new LogWriter(options, std::move(requests), std::move(actions)));
}

template <typename Record>
Result<LogWriter::Stream> LogWriter::open_stream(const fs::path& folder) {
  using Format = LogFormat<Record>;
  const fs::path path = folder / fmt::format("{}.csv", Format::kStem);
  const fs::path previous_path = folder / fmt::format("{}.previous.csv", Format::kStem);
  std::error_code error;
  fs::remove(previous_path, error);
  FOLIOT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::create(path));
  const std::string header = Format::header() + '\n';
  if (!file.append(header)) return Status::invalid_argument(fmt::format("cannot write {}", path.string()));
  return Stream{path, previous_path, header, std::move(file), {}, 0, 0};
}

LogWriter::~LogWriter() { flush(); }

void LogWriter::add(const RequestRecord& request) { add_to(requests_, request); }
void LogWriter::add(const ActionRecord& action) { add_to(actions_, action); }
void LogWriter::add(const FeedbackRecord& record) {
  if (Stream* stream = feedback()) return add_to(*stream, record);
  ++feedback_dropped_;
}

LogWriter::Stream* LogWriter::feedback() {
  if (feedback_) return &*feedback_;
  Result<Stream> opened = open_stream<FeedbackRecord>(options_.folder);
  if (!opened.ok()) return nullptr;
  feedback_.emplace(std::move(opened).value());
  if (const uint64_t dropped = std::exchange(feedback_dropped_, 0); dropped > 0) add_dropped_feedback(dropped);
  return &*feedback_;
}

template <typename Record>
void LogWriter::add_to(Stream& stream, const Record& record) {
  LogFormat<Record>::append(record, options_.origin, stream.buffer);
  ++stream.buffered;
  if (stream.buffer.size() >= kBufferBytes) flush();
}

void LogWriter::add_dropped_requests(uint64_t count) { requests_.buffer += dropped_line(count); }
void LogWriter::add_dropped_actions(uint64_t count) { actions_.buffer += dropped_line(count); }
void LogWriter::add_dropped_feedback(uint64_t count) {
  if (Stream* stream = feedback()) {
    stream->buffer += dropped_line(count);
  } else {
    feedback_dropped_ += count;
  }
}

void LogWriter::flush() {
  flush(requests_);
  flush(actions_);
  if (feedback_) flush(*feedback_);
  const uint64_t feedback_bytes = feedback_ ? feedback_->file.size() : 0;
  if (requests_.file.size() + actions_.file.size() + feedback_bytes < options_.bytes_max / 2) return;
  begin_anew(requests_);
  begin_anew(actions_);
  if (feedback_) begin_anew(*feedback_);
}

void LogWriter::flush(Stream& stream) {
  if (stream.buffer.empty()) return;
  if (stream.dropped > 0) stream.buffer.insert(0, dropped_line(stream.dropped));
  stream.dropped = stream.file.append(stream.buffer) ? 0 : stream.dropped + stream.buffered;
  stream.buffer.clear();
  stream.buffered = 0;
}

// Where it fails, the file goes on growing, and this is tried again.
void LogWriter::begin_anew(Stream& stream) {
  std::error_code error;
  fs::rename(stream.path, stream.previous_path, error);
  Result<AppendFile> file = AppendFile::create(stream.path);
  if (file.ok() && file->append(stream.header)) stream.file = std::move(file).value();
}

}  // namespace foliot
