// GroupCommit: which records of the log are written next, and which are acknowledged. All that
// come while one batch is being written make the next batch: one write and one sync for all.
//
// A batch that fails is refused as a whole. What it left in its file is unknown, so the
// next batch begins a new one. Numbers of refused records are not used again.
//
// Bounded: beyond its limits append() refuses. A state machine: its owner writes.
//
// Threading: not thread-safe.
#ifndef FOLIOT_FOUNDATION_STORE_GROUP_COMMIT_H_
#define FOLIOT_FOUNDATION_STORE_GROUP_COMMIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// Records with consecutive numbers.
struct LogBatch {
  uint64_t first = 0;
  uint64_t synced = 0;  // highest number that lasts
  bool begins_file = false;
  std::vector<uint32_t> lengths{};
  std::vector<std::byte> bytes{};  // of all, one after the other

  uint64_t last() const { return first + lengths.size() - 1; }
};

class GroupCommit {
 public:
  struct Limits {
    uint64_t records_max = 65536;        // that wait
    uint64_t bytes_max = 16 << 20;       // that wait
    uint64_t file_bytes_max = 64 << 20;  // a file that has this many is not appended to
  };

  // `last`: the number of the last record before.
  GroupCommit(uint64_t last, const Limits& limits) : limits_(limits), synced_(last), last_(last) {}

  // Returns the record's number. Errors: kResourceExhausted if too much waits,
  // kInvalidArgument if it has more than kRecordBytesMax bytes.
  Result<uint64_t> append(std::span<const std::byte> record);

  // What is to be written and synced now; nullopt: nothing waits, or a batch is being written.
  std::optional<LogBatch> begin();
  // It lasts. Takes it back for its memory.
  void succeed(LogBatch batch);
  void fail(LogBatch batch);
  // The next batch begins a new file.
  void begin_file() { begins_file_ = true; }

  uint64_t synced() const { return synced_; }
  uint64_t last() const { return last_; }
  size_t waiting() const { return waiting_.lengths.size(); }

 private:
  void finish(LogBatch batch);

  const Limits limits_;
  uint64_t synced_;
  uint64_t last_;
  uint64_t file_bytes_ = 0;
  bool begins_file_ = true;
  bool is_writing_ = false;
  LogBatch waiting_;
  LogBatch spare_;  // its memory is used again
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_GROUP_COMMIT_H_
