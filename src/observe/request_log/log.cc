#include "observe/request_log/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "observe/request_log/log_format.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

template <typename Record, typename RecordId>
const Record* find(const std::vector<Record>& records, RecordId id) {
  const auto found = std::lower_bound(records.begin(), records.end(), id,
                                      [](const Record& record, RecordId wanted) { return record.id < wanted; });
  return found != records.end() && found->id == id ? &*found : nullptr;
}

RequestId order_of(const RequestRecord& record) { return record.id; }
ActionId order_of(const ActionRecord& record) { return record.id; }
TimePoint order_of(const FeedbackRecord& record) { return record.answered; }

}  // namespace

Result<Log> Log::read(const fs::path& folder, uint64_t bytes_max) {
  Log log;
  FOLIOT_RETURN_IF_ERROR(log.read_records(folder, bytes_max, log.requests_));
  FOLIOT_RETURN_IF_ERROR(log.read_records(folder, bytes_max, log.actions_));
  std::error_code error;
  if (fs::exists(folder / fmt::format("{}.csv", LogFormat<FeedbackRecord>::kStem), error)) {
    FOLIOT_RETURN_IF_ERROR(log.read_records(folder, bytes_max, log.feedback_));
  }
  return log;
}

const RequestRecord* Log::request(RequestId id) const { return find(requests_, id); }
const ActionRecord* Log::action(ActionId id) const { return find(actions_, id); }

template <typename Record>
Status Log::read_records(const fs::path& folder, uint64_t bytes_max, std::vector<Record>& into) {
  const std::string stem(LogFormat<Record>::kStem);
  const fs::path previous = folder / (stem + ".previous.csv");
  std::error_code error;
  if (fs::exists(previous, error)) FOLIOT_RETURN_IF_ERROR(read_file(previous, bytes_max, into));
  FOLIOT_RETURN_IF_ERROR(read_file(folder / (stem + ".csv"), bytes_max, into));
  std::ranges::stable_sort(into, {}, [](const Record& record) { return order_of(record); });
  return Status();
}

template <typename Record>
Status Log::read_file(const fs::path& path, uint64_t bytes_max, std::vector<Record>& into) {
  std::ifstream file(path);
  if (!file) {
    return Status::not_found(fmt::format(
        "cannot read {}; a log is a folder that a server's or a controller's --log FOLDER wrote", path.string()));
  }
  std::string line;
  std::getline(file, line);
  const std::optional<size_t> fields = LogFormat<Record>::fields_in(line);
  if (!fields) {
    return Status::invalid_argument(
        fmt::format("{}:1: not the first line of a log of {} that this version can read; it should be {}",
                    path.string(), LogFormat<Record>::kStem, LogFormat<Record>::header()));
  }
  // The line that this falls into is left out.
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (!error && size > bytes_max && size - bytes_max > static_cast<uint64_t>(file.tellg())) {
    file.seekg(static_cast<std::streamoff>(size - bytes_max));
    std::getline(file, line);
  }
  for (uint64_t number = 2; std::getline(file, line); ++number) {
    if (file.eof()) {  // a whole line has an end
      gaps_.push_back(fmt::format("{}:{}: the last line is cut off and left out", path.string(), number));
    } else if (const std::optional<uint64_t> dropped = parse_dropped_line(line)) {
      gaps_.push_back(fmt::format("{}:{}: {} {} are missing here: the writer could not keep up", path.string(), number,
                                  *dropped, LogFormat<Record>::kStem));
    } else {
      Result<Record> record = LogFormat<Record>::parse(line, memory_, *fields);
      if (!record.ok()) return record.status().with_context(fmt::format("{}:{}", path.string(), number));
      into.push_back(std::move(record).value());
    }
  }
  return Status();
}

}  // namespace foliot
