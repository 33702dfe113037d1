// Log: a log that was read back, with look-ups.
//
// Threading: immutable once read.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_LOG_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_LOG_H_

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/ids.h"
#include "observe/request_log/record.h"
#include "observe/request_log/record_memory.h"

namespace foliot {

class Log {
 public:
  static constexpr uint64_t kAllBytes = std::numeric_limits<uint64_t>::max();
  // Reads the log in `folder`, of a server that still runs too; of each file, as many whole lines of its end as have
  // `bytes_max`. Errors: kNotFound if there is none; kInvalidArgument naming file and line.
  static Result<Log> read(const std::filesystem::path& folder, uint64_t bytes_max = kAllBytes);

  // By id.
  const std::vector<RequestRecord>& requests() const { return requests_; }
  const std::vector<ActionRecord>& actions() const { return actions_; }
  // By the time of the answer; none if the log has no feedback.
  const std::vector<FeedbackRecord>& feedback() const { return feedback_; }
  // Null if the log has none of that id.
  const RequestRecord* request(RequestId id) const;
  const ActionRecord* action(ActionId id) const;

  // What the log lacks, as sentences: dropped records, a last line cut off.
  const std::vector<std::string>& gaps() const { return gaps_; }

 private:
  template <typename Record>
  Status read_records(const std::filesystem::path& folder, uint64_t bytes_max, std::vector<Record>& into);
  template <typename Record>
  Status read_file(const std::filesystem::path& path, uint64_t bytes_max, std::vector<Record>& into);

  RecordMemory memory_;
  std::vector<RequestRecord> requests_;
  std::vector<ActionRecord> actions_;
  std::vector<FeedbackRecord> feedback_;
  std::vector<std::string> gaps_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_LOG_H_
