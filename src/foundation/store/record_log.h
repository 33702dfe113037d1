// RecordLog: an append-only log of records, whose state survives whatever happens to the process and,
// for what was acknowledged, to the machine.
//
// Its thread does all that blocks: it writes what waits as one batch with one sync (GroupCommit),
// and between two batches a part of the snapshot that is being made (LogFiles). A snapshot is made when it is
// requested, and when records have waited for one for long: so what they removed leaves the disk.
//
// A record that is refused, or whose answer is lost, may be there after a restart. So records
// carry ids of their clients where a retry must be harmless: the log itself gives numbers.
//
// Threading: append() and request_snapshot() by any thread; they do not wait for the disk. The sink
// and the source are called by the log's thread.
#ifndef FOLIOT_FOUNDATION_STORE_RECORD_LOG_H_
#define FOLIOT_FOUNDATION_STORE_RECORD_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/parker.h"
#include "foundation/platform/thread.h"
#include "foundation/store/group_commit.h"
#include "foundation/store/log_files.h"
#include "foundation/store/storage.h"

namespace foliot {

class LogSink {
 public:
  virtual ~LogSink() = default;
  // Records `first` to `last` last from here on, or were refused. In the order of numbers.
  virtual void on_written(uint64_t first, uint64_t last, const Status& status) = 0;
};

// State, as it is written to a snapshot.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  virtual void on_snapshot_begin() = 0;
  // Replaces `piece` by the next; false: that was all. Pieces may contain what records did that
  // come after the snapshot's number and last: reading these records again must be harmless. After an error the
  // snapshot is given up.
  virtual Result<bool> next_piece(std::vector<std::byte>& piece) = 0;
  virtual void on_snapshot_end(uint64_t number, const Status& status) = 0;
};

class RecordLog {
 public:
  struct Options {
    GroupCommit::Limits limits{};
    uint64_t seed = 0;  // random in a server
    // A snapshot begins when a record has been in none for so long.
    Duration snapshot_after = Duration::max();
  };

  // Passes what is there to `reader` first. Sink and source outlive it. Errors: as LogFiles::open().
  static Result<std::unique_ptr<RecordLog>> open(std::unique_ptr<Storage> storage, const Options& options,
                                                 LogReader& reader, LogSink& sink, SnapshotSource& source);
  // Over a storage that outlives it.
  static Result<std::unique_ptr<RecordLog>> open(Storage& storage, const Options& options, LogReader& reader,
                                                 LogSink& sink, SnapshotSource& source);
  ~RecordLog() { close(); }
  // Writes what waits. A snapshot that is being made is given up. REQUIRES: no append() follows.
  void close();

  // Returns the record's number; the sink learns once it lasts. Errors: as GroupCommit::append().
  Result<uint64_t> append(std::span<const std::byte> record);
  // A snapshot begins as soon as possible; without effect while one is being made.
  void request_snapshot();

  // What was cut off when it was opened.
  uint64_t torn_bytes() const { return torn_bytes_; }
  // Number of the last record that there was when it was opened.
  uint64_t last_at_open() const { return last_at_open_; }
  // As LogFiles::salt(). REQUIRES: close() was called.
  uint64_t salt() const { return files_.salt(); }

 private:
  RecordLog(const Options& options, LogFiles files, LogSink& sink, SnapshotSource& source);
  void run();
  // False: there was nothing to do.
  bool write_batch();
  bool write_snapshot_part();
  void end_snapshot(const Status& status);

  std::unique_ptr<Storage> storage_;  // null: it is the owner's
  LogSink& sink_;
  SnapshotSource& source_;
  const Duration snapshot_after_;
  const uint64_t torn_bytes_;
  const uint64_t last_at_open_;

  Mutex mutex_;
  GroupCommit commit_ GUARDED_BY(mutex_);

  // Of the log's thread.
  LogFiles files_;
  bool makes_snapshot_ = false;
  uint64_t snapshot_number_ = 0;
  TimePoint snapshot_due_ = TimePoint::infinite_future();
  std::vector<std::byte> piece_;

  std::atomic<bool> snapshot_wanted_{false};
  std::atomic<bool> stopping_{false};
  Parker parker_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_RECORD_LOG_H_
