// LogWriter: writes records to a folder, at once or nearly so (log_format.h).
//
// Bounded: when the files have grown to half of `bytes_max` together, they become the
// previous ones, in place of those before, and new ones begin; so the latest
// records are kept, and at least half of the bound of them. The file of feedback is there
// once there was some.
//
// A record that the disk does not take is dropped, and the file has the number of
// dropped records at that place.
//
// Threading: not thread-safe; one owner. Blocks while the disk is slow: right for
// virtual time; in real time use BackgroundWriter.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_LOG_WRITER_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_LOG_WRITER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "observe/request_log/append_file.h"
#include "observe/request_log/record.h"

namespace foliot {

struct LogOptions {
  std::filesystem::path folder;  // made where it does not exist
  uint64_t bytes_max = uint64_t{1} << 30;
  TimePoint origin;  // what the log's times count from
};

class LogWriter : public RecordSink {
 public:
  // Replaces the log that the folder held. Errors: kInvalidArgument naming what
  // cannot be written.
  static Result<std::unique_ptr<LogWriter>> open(const LogOptions& options);
  // Flushes.
  ~LogWriter() override;

  void add(const RequestRecord& request) override;
  void add(const ActionRecord& action) override;
  void add(const FeedbackRecord& feedback);
  // `count` records were dropped before they came here.
  void add_dropped_requests(uint64_t count);
  void add_dropped_actions(uint64_t count);
  void add_dropped_feedback(uint64_t count);
  // Hands what was added to the operating system.
  void flush();

 private:
  struct Stream {
    std::filesystem::path path;
    std::filesystem::path previous_path;
    std::string header;
    AppendFile file;
    std::string buffer;
    uint64_t buffered = 0;  // records in the buffer
    uint64_t dropped = 0;   // records that the disk did not take
  };

  LogWriter(const LogOptions& options, Stream requests, Stream actions)
      : options_(options), requests_(std::move(requests)), actions_(std::move(actions)) {}
  template <typename Record>
  static Result<Stream> open_stream(const std::filesystem::path& folder);
  template <typename Record>
  void add_to(Stream& stream, const Record& record);
  Stream* feedback();  // null: its file cannot be made
  static void flush(Stream& stream);
  static void begin_anew(Stream& stream);

  LogOptions options_;
  Stream requests_;
  Stream actions_;
  std::optional<Stream> feedback_;  // nullopt: there was none yet
  uint64_t feedback_dropped_ = 0;   // while its file could not be made
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_LOG_WRITER_H_
