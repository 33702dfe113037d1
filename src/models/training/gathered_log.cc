#include "models/training/gathered_log.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "answer/personal/storage/user_records.h"

namespace foliot {
namespace {

class NothingRead : public LogReader {
 public:
  Status on_snapshot(std::span<const std::byte> /*piece*/) override { return Status(); }
  Status on_record(uint64_t /*number*/, std::span<const std::byte> /*record*/) override { return Status(); }
};

}  // namespace

Result<GatheredLog> GatheredLog::make(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<DiskStorage> storage, DiskStorage::open(folder));
  NothingRead nothing;
  FOLIOT_ASSIGN_OR_RETURN(LogFiles files, LogFiles::open(*storage, 1, nothing));
  return GatheredLog(std::move(storage), std::move(files));
}

Status GatheredLog::add(std::span<const std::byte> copy) {
  const std::optional<UserRecord> decoded = decode_record(copy);
  if (!decoded || !decoded->generation)
    return Status::invalid_argument("a front end has sent what is no copy of a user");
  std::span<const UserObservation> left = decoded->observations;
  while (!left.empty()) {
    const std::span<const UserObservation> part = left.first(std::min(kObservationsPerCopy, left.size()));
    left = left.subspan(part.size());
    last_ = encode_copy(decoded->user, *decoded->generation, part);
    FOLIOT_RETURN_IF_ERROR(append(last_));
  }
  return Status();
}

Status GatheredLog::append(std::span<const std::byte> record) {
  Result<uint64_t> number = commit_->append(record);
  if (number.ok() || number.status().code() != StatusCode::kResourceExhausted) return number.status();
  FOLIOT_RETURN_IF_ERROR(write());
  return commit_->append(record).status();
}

Status GatheredLog::write() {
  std::optional<LogBatch> batch = commit_->begin();
  if (!batch) return Status();
  FOLIOT_RETURN_IF_ERROR(files_.write(*batch));
  commit_->succeed(std::move(*batch));
  return Status();
}

// A record lasts for a reader once a later one says so: the last one is written again, which changes nothing.
Status GatheredLog::finish() {
  FOLIOT_RETURN_IF_ERROR(write());
  if (last_.empty()) return Status();
  FOLIOT_RETURN_IF_ERROR(append(last_));
  return write();
}

}  // namespace foliot
