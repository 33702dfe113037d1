#include "foundation/store/record_log.h"

#include <optional>
#include <utility>

#include "foundation/platform/clock.h"

namespace foliot {

Result<std::unique_ptr<RecordLog>> RecordLog::open(std::unique_ptr<Storage> storage, const Options& options,
                                                   LogReader& reader, LogSink& sink, SnapshotSource& source) {
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<RecordLog> log, open(*storage, options, reader, sink, source));
  log->storage_ = std::move(storage);  // its thread knows it already
  return log;
}

Result<std::unique_ptr<RecordLog>> RecordLog::open(Storage& storage, const Options& options, LogReader& reader,
                                                   LogSink& sink, SnapshotSource& source) {
  FOLIOT_ASSIGN_OR_RETURN(LogFiles files, LogFiles::open(storage, options.seed, reader));
  std::unique_ptr<RecordLog> log(new RecordLog(options, std::move(files), sink, source));
  FOLIOT_ASSIGN_OR_RETURN(log->thread_, Thread::start({.name = "store"}, [raw = log.get()] { raw->run(); }));
  return log;
}

RecordLog::RecordLog(const Options& options, LogFiles files, LogSink& sink, SnapshotSource& source)
    : sink_(sink),
      source_(source),
      snapshot_after_(options.snapshot_after),
      torn_bytes_(files.torn_bytes()),
      last_at_open_(files.last()),
      commit_(files.last(), options.limits),
      files_(std::move(files)) {
  if (files_.last() > files_.snapshot_number()) snapshot_due_ = monotonic_now() + snapshot_after_;
}

void RecordLog::close() {
  stopping_.store(true);
  parker_.unpark();
  thread_.join();
}

Result<uint64_t> RecordLog::append(std::span<const std::byte> record) {
  MutexLock lock(mutex_);
  Result<uint64_t> number = commit_.append(record);
  lock.unlock();
  parker_.unpark();
  return number;
}

void RecordLog::request_snapshot() {
  snapshot_wanted_.store(true);
  parker_.unpark();
}

void RecordLog::run() {
  while (true) {
    const bool stops = stopping_.load();
    const bool wrote = write_batch();
    if (stops && !wrote) return end_snapshot(Status::unavailable("the log is being closed"));
    if (!stops && !snapshot_due_.is_infinite() && monotonic_now() >= snapshot_due_) request_snapshot();
    if (!(!stops && write_snapshot_part()) && !wrote) parker_.park_until(snapshot_due_);
  }
}

bool RecordLog::write_batch() {
  MutexLock lock(mutex_);
  std::optional<LogBatch> batch = commit_.begin();
  lock.unlock();
  if (!batch) return false;
  const uint64_t first = batch->first;
  const uint64_t last = batch->last();
  const Status status = files_.write(*batch);
  lock.lock();
  status.ok() ? commit_.succeed(*std::move(batch)) : commit_.fail(*std::move(batch));
  lock.unlock();
  if (snapshot_due_.is_infinite()) snapshot_due_ = monotonic_now() + snapshot_after_;
  sink_.on_written(first, last, status);
  return true;
}

bool RecordLog::write_snapshot_part() {
  if (!makes_snapshot_) {
    if (!snapshot_wanted_.exchange(false)) return false;
    makes_snapshot_ = true;
    snapshot_number_ = files_.last();
    snapshot_due_ = TimePoint::infinite_future();
    {
      const MutexLock lock(mutex_);
      commit_.begin_file();  // so that the file of today can be removed after the next snapshot
    }
    source_.on_snapshot_begin();
    if (const Status status = files_.begin_snapshot(snapshot_number_); !status.ok()) end_snapshot(status);
    return true;
  }
  const Result<bool> has_more = source_.next_piece(piece_);
  const bool is_last = !has_more.ok() || !*has_more;
  Status status = has_more.status();
  if (status.ok()) status = is_last ? files_.finish_snapshot() : files_.add_to_snapshot(piece_);
  if (is_last || !status.ok()) end_snapshot(status);
  return true;
}

void RecordLog::end_snapshot(const Status& status) {
  if (!std::exchange(makes_snapshot_, false)) return;
  if (!status.ok()) {
    files_.give_up_snapshot();  // on a full disk, its space is needed
    snapshot_due_ = monotonic_now() + snapshot_after_;
  }
  source_.on_snapshot_end(snapshot_number_, status);
}

}  // namespace foliot
