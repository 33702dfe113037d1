#include "foundation/store/group_commit.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/base/check.h"
#include "foundation/store/log_frame.h"

namespace foliot {

Result<uint64_t> GroupCommit::append(std::span<const std::byte> record) {
  if (record.size() > kRecordBytesMax) {
    return Status::invalid_argument(
        fmt::format("a record of {} bytes is over the limit of {}", record.size(), kRecordBytesMax));
  }
  if (waiting_.lengths.size() >= limits_.records_max || waiting_.bytes.size() + record.size() > limits_.bytes_max) {
    return Status::resource_exhausted(
        fmt::format("{} records of {} bytes wait for the disk, limits {} and {}; try again later",
                    waiting_.lengths.size(), waiting_.bytes.size(), limits_.records_max, limits_.bytes_max));
  }
  waiting_.lengths.push_back(static_cast<uint32_t>(record.size()));
  waiting_.bytes.insert(waiting_.bytes.end(), record.begin(), record.end());
  return ++last_;
}

std::optional<LogBatch> GroupCommit::begin() {
  if (is_writing_ || waiting_.lengths.empty()) return std::nullopt;
  is_writing_ = true;
  LogBatch batch = std::exchange(waiting_, std::exchange(spare_, LogBatch()));
  batch.first = last_ - batch.lengths.size() + 1;
  batch.synced = synced_;
  batch.begins_file = begins_file_ || file_bytes_ >= limits_.file_bytes_max;
  if (batch.begins_file) file_bytes_ = 0;
  file_bytes_ += batch.bytes.size() + batch.lengths.size() * kFrameHeaderBytes;
  begins_file_ = false;
  return batch;
}

void GroupCommit::succeed(LogBatch batch) {
  synced_ = batch.last();
  finish(std::move(batch));
}

void GroupCommit::fail(LogBatch batch) {
  begins_file_ = true;
  finish(std::move(batch));
}

void GroupCommit::finish(LogBatch batch) {
  FOLIOT_CHECK(is_writing_);
  is_writing_ = false;
  batch.lengths.clear();
  batch.bytes.clear();
  spare_ = std::move(batch);
}

}  // namespace foliot
