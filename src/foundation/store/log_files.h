// LogFiles: the files of a log: reads them when it is opened, writes batches, makes
// snapshots and removes what they replace.
//
//   log.SEQUENCE       records, in files of limited size (log_frame.h)
//   snapshot.NUMBER    the state after the record of this number, as frames; an empty one ends it
//   NAME.new           being written; removed when the log is opened
//
// State is the newest snapshot and all records after its number. What a stopped machine was
// writing ends in an invalid frame: it was not acknowledged, and is cut off. An invalid frame in
// front of records that once lasted is damage: opening fails and names file and offset,
// after the records before it have been passed on. A damaged frame of the very last batch cannot
// be distinguished from one that was being written.
//
// After a failed sync, what the system shows as written may not be: so the last file is written
// anew when it is opened, and no file is appended to that another process began.
//
// Threading: one at a time. All functions block.
#ifndef FOLIOT_FOUNDATION_STORE_LOG_FILES_H_
#define FOLIOT_FOUNDATION_STORE_LOG_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/store/group_commit.h"
#include "foundation/store/log_frame.h"
#include "foundation/store/storage.h"

namespace foliot {

// What a log consists of when it is opened.
struct LogContents {
  uint64_t snapshot_number = 0;   // 0: there is no snapshot
  std::vector<uint64_t> salts{};  // of its files (LogFiles::salt())
};

// What state is rebuilt from, in order: the pieces of the snapshot first.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // By LogFiles::open(), before all others. False: the reader has the snapshot's state, and gets no piece of it.
  virtual bool on_begin(const LogContents& /*contents*/) { return true; }
  virtual Status on_snapshot(std::span<const std::byte> piece) = 0;
  virtual Status on_record(uint64_t number, std::span<const std::byte> record) = 0;
  // By LogFiles::read_lasting(), after all others: written, but nothing proves that it lasts.
  virtual void on_unproven(uint64_t /*number*/, std::span<const std::byte> /*record*/) {}
};

class LogFiles {
 public:
  // Passes everything to `reader`, and then is ready for batches. The storage outlives it; `seed`:
  // random in a server. Errors: the storage's and the reader's; kInternal naming file and
  // offset, or the missing file, if there is damage.
  static Result<LogFiles> open(Storage& storage, uint64_t seed, LogReader& reader);

  // Passes on what lasts by now of a log that another process may be writing, and returns the number of its last
  // record: what is synced by its files. Changes nothing. Errors: as open(); kNotFound if a snapshot has replaced files
  // meanwhile: begin again with a new reader.
  static Result<uint64_t> read_lasting(Storage& storage, LogReader& reader);

  // Number of the last record.
  uint64_t last() const { return last_; }
  // Of the last record that the last snapshot has; 0: there is none.
  uint64_t snapshot_number() const { return snapshot_number_; }
  // What was cut off when it was opened.
  uint64_t torn_bytes() const { return torn_bytes_; }
  // Drawn for the file that has the last record, or for the snapshot if no file has any: a log that goes on from
  // another one's copy has other ones from there on.
  uint64_t salt() const { return segments_.empty() ? snapshot_salt_ : segments_.rbegin()->second.salt; }

  // Writes and syncs it. After an error the next batch must begin a file.
  Status write(const LogBatch& batch);

  // A snapshot of the state after record `number`: begin, add its pieces (none is empty), finish.
  // Files that have no later records are removed then. After an error: begin again. REQUIRES: number <= that of the
  // last record that lasts.
  Status begin_snapshot(uint64_t number);
  Status add_to_snapshot(std::span<const std::byte> piece);
  Status finish_snapshot();
  // Removes what was written of it, as far as that is possible.
  void give_up_snapshot();

 private:
  // A file of records.
  struct Segment {
    std::string name;
    uint64_t after = 0;  // as its header has it
    uint64_t salt = 0;
  };
  LogFiles(Storage& storage, uint64_t seed) : storage_(&storage), random_(seed) {}
  // Without changing anything: all but the records of the last file that nothing proves to last.
  enum class Access { kOwn, kRead };
  Status read_all(LogReader& reader);
  // What its files are, by their headers. An invalid one is found when the file is read.
  Result<LogContents> contents(std::span<const std::pair<uint64_t, std::string>> segments);
  Status read_snapshot(const std::string& name, LogReader& reader);
  static void read_unproven(std::span<const std::byte> file, size_t offset, const LogHeader& header, uint64_t number,
                            LogReader& reader);
  // `next`: the header of the file after it; null: it is the last.
  Status read_segment(const std::string& name, std::span<const std::byte> file, const LogHeader& header,
                      const LogHeader* next, LogReader& reader);
  Status write_anew(const std::string& name, std::span<const std::byte> file);
  Status begin_segment(const LogBatch& batch);
  Status append(const LogBatch& batch);
  Status remove_old(uint64_t number);

  Storage* storage_;
  Access access_ = Access::kOwn;
  Random random_;
  uint64_t last_ = 0;
  uint64_t torn_bytes_ = 0;
  uint64_t sequence_ = 0;                 // of the last file
  std::map<uint64_t, Segment> segments_;  // by sequence
  uint64_t snapshot_number_ = 0;
  std::string snapshot_name_;
  uint64_t snapshot_salt_ = 0;

  std::unique_ptr<StorageFile> file_;  // that is appended to
  uint64_t salt_ = 0;
  std::vector<std::byte> frames_;

  // The snapshot that is being made.
  std::unique_ptr<StorageFile> new_snapshot_;
  uint64_t new_number_ = 0;
  uint64_t new_salt_ = 0;
  uint64_t new_pieces_ = 0;
  uint64_t unsynced_bytes_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_LOG_FILES_H_
