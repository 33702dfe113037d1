#include "foundation/store/log_files.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr std::string_view kSegmentPrefix = "log.";
constexpr std::string_view kSnapshotPrefix = "snapshot.";
constexpr std::string_view kNewSuffix = ".new";
constexpr const char* kNewSnapshot = "snapshot.new";
// Batches wait while a part of a snapshot is synced: some milliseconds for this many bytes.
constexpr uint64_t kSyncEveryBytes = 1 << 20;
constexpr size_t kReadBytes = 4 << 20;  // of a snapshot at a time

std::string numbered(std::string_view prefix, uint64_t number) { return fmt::format("{}{:020}", prefix, number); }

// The number in the name of a file; nullopt: it is none of these.
std::optional<uint64_t> number_in(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Status damage(std::string_view name, size_t offset, std::string_view what) {
  return Status::internal(fmt::format(
      "{}: damaged at offset {}: {}; restore the file from a copy, or move it and all later ones away to go "
      "on with the records before it",
      name, offset, what));
}

// Whether, behind an invalid frame, there is one that proves that record `number` once lasted.
bool once_lasted(std::span<const std::byte> file, size_t offset, uint64_t salt, uint64_t number) {
  for (; offset + kFrameHeaderBytes <= file.size(); ++offset) {
    const std::optional<LogFrame> frame = read_frame(file, offset, salt);
    if (frame && frame->synced >= number) return true;
  }
  return false;
}

// The last record of which a later one says that it lasts.
uint64_t last_synced(std::span<const std::byte> file, const LogHeader& header) {
  uint64_t synced = header.after;
  size_t offset = kLogHeaderBytes;
  for (uint64_t number = header.first;; ++number) {
    const std::optional<LogFrame> frame = read_frame(file, offset, header.salt);
    if (!frame || frame->number != number) return synced;
    synced = frame->synced;
    offset += frame->size();
  }
}

}  // namespace

Result<LogFiles> LogFiles::open(Storage& storage, uint64_t seed, LogReader& reader) {
  LogFiles files(storage, seed);
  FOLIOT_RETURN_IF_ERROR(files.read_all(reader));
  return files;
}

Result<uint64_t> LogFiles::read_lasting(Storage& storage, LogReader& reader) {
  LogFiles files(storage, 0);
  files.access_ = Access::kRead;
  FOLIOT_RETURN_IF_ERROR(files.read_all(reader));
  return files.last_;
}

Status LogFiles::read_all(LogReader& reader) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_->list());
  std::vector<std::pair<uint64_t, std::string>> found;
  std::vector<std::string> old_snapshots;  // left where the machine stopped before they were removed
  for (const std::string& name : names) {
    if (name.ends_with(kNewSuffix)) {
      if (access_ == Access::kOwn) FOLIOT_RETURN_IF_ERROR(storage_->remove(name));
    } else if (const auto number = number_in(name, kSnapshotPrefix)) {
      if (!snapshot_name_.empty()) old_snapshots.push_back(snapshot_name_);
      snapshot_number_ = *number;
      snapshot_name_ = name;
    } else if (const auto sequence = number_in(name, kSegmentPrefix)) {
      found.emplace_back(*sequence, name);
      sequence_ = *sequence;
    }
  }
  bool reads_snapshot = !snapshot_name_.empty();
  if (access_ == Access::kOwn) {
    FOLIOT_ASSIGN_OR_RETURN(const LogContents contents, this->contents(found));
    reads_snapshot = reader.on_begin(contents) && reads_snapshot;
  }
  if (reads_snapshot) FOLIOT_RETURN_IF_ERROR(read_snapshot(snapshot_name_, reader));
  for (const std::string& old : old_snapshots) {
    if (access_ == Access::kOwn) FOLIOT_RETURN_IF_ERROR(storage_->remove(old));
  }
  last_ = snapshot_number_;

  // Two files at a time: where the records of one end, the header of the next says.
  std::vector<std::byte> file;
  std::optional<LogHeader> header;
  std::string name;
  const auto read_current = [&](const LogHeader* next) {
    return header ? read_segment(name, file, *header, next, reader) : Status();
  };
  for (const auto& [sequence, next_name] : found) {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<std::byte> next_file, storage_->read(next_name));
    const std::optional<LogHeader> next = read_header(next_file);
    if (!next || next->sequence != sequence) {
      if (next || next_file.size() > kLogHeaderBytes) return damage(next_name, 0, "its header is invalid");
      // Headers are synced before the first record is written: it has none.
      if (access_ == Access::kOwn) FOLIOT_RETURN_IF_ERROR(storage_->remove(next_name));
      continue;
    }
    FOLIOT_RETURN_IF_ERROR(read_current(&*next));
    file = std::move(next_file);
    header = next;
    name = next_name;
    if (header->after > last_) {
      return damage(name, 0, fmt::format("records {} to {} before it are missing", last_ + 1, header->after));
    }
    segments_[sequence] = {name, header->after, header->salt};
  }
  return read_current(nullptr);
}

Result<LogContents> LogFiles::contents(std::span<const std::pair<uint64_t, std::string>> segments) {
  LogContents contents{.snapshot_number = snapshot_number_};
  const auto add = [&](const std::string& name) {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, storage_->read(name, 0, kLogHeaderBytes));
    if (const std::optional<LogHeader> header = read_header(bytes)) {
      if (name == snapshot_name_) snapshot_salt_ = header->salt;
      contents.salts.push_back(header->salt);
    }
    return Status();
  };
  if (!snapshot_name_.empty()) FOLIOT_RETURN_IF_ERROR(add(snapshot_name_));
  for (const auto& [sequence, name] : segments) FOLIOT_RETURN_IF_ERROR(add(name));
  return contents;
}

// A part at a time: a snapshot may be larger than the memory.
Status LogFiles::read_snapshot(const std::string& name, LogReader& reader) {
  size_t part_bytes = kReadBytes;
  uint64_t begin = 0;  // of the part, in the file
  FOLIOT_ASSIGN_OR_RETURN(std::vector<std::byte> part, storage_->read(name, begin, part_bytes));
  const std::optional<LogHeader> header = read_header(part);
  if (!header || header->after != snapshot_number_) return damage(name, 0, "its header is invalid");
  size_t offset = kLogHeaderBytes;  // in the part
  for (uint64_t number = 1;;) {
    const std::optional<LogFrame> frame = read_frame(part, offset, header->salt);
    if (frame && frame->number == number) {
      if (frame->bytes.empty()) return Status();
      FOLIOT_RETURN_IF_ERROR(reader.on_snapshot(frame->bytes));
      offset += frame->size();
      ++number;
      continue;
    }
    // It may go on behind the part, which is larger the next time if it has not one whole frame.
    const bool is_end = part.size() < part_bytes;
    if (is_end) return damage(name, begin + offset, fmt::format("piece {} is invalid", number));
    if (offset == 0) part_bytes *= 2;
    begin += offset;
    offset = 0;
    FOLIOT_ASSIGN_OR_RETURN(part, storage_->read(name, begin, part_bytes));
  }
}

Status LogFiles::read_segment(const std::string& name, std::span<const std::byte> file, const LogHeader& header,
                              const LogHeader* next, LogReader& reader) {
  size_t offset = kLogHeaderBytes;
  uint64_t number = header.first;
  uint64_t end = next == nullptr ? UINT64_MAX : next->after;
  if (next == nullptr && access_ == Access::kRead) end = last_synced(file, header);
  for (; number <= end; ++number) {
    const std::optional<LogFrame> frame = read_frame(file, offset, header.salt);
    if (!frame || frame->number != number) break;
    if (number > last_) {
      FOLIOT_RETURN_IF_ERROR(reader.on_record(number, frame->bytes));
      last_ = number;
    }
    offset += frame->size();
  }
  const bool is_damaged = next != nullptr ? last_ < next->after : once_lasted(file, offset, header.salt, number);
  if (is_damaged) return damage(name, offset, fmt::format("record {} is invalid", number));
  if (next != nullptr) return Status();
  if (access_ == Access::kRead) {
    read_unproven(file, offset, header, number, reader);
    return Status();
  }
  torn_bytes_ = file.size() - offset;
  return write_anew(name, file.first(offset));
}

void LogFiles::read_unproven(std::span<const std::byte> file, size_t offset, const LogHeader& header, uint64_t number,
                             LogReader& reader) {
  for (;; ++number) {
    const std::optional<LogFrame> frame = read_frame(file, offset, header.salt);
    if (!frame || frame->number != number) return;
    reader.on_unproven(number, frame->bytes);
    offset += frame->size();
  }
}

Status LogFiles::write_anew(const std::string& name, std::span<const std::byte> file) {
  const std::string new_name = name + std::string(kNewSuffix);
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<StorageFile> copy, storage_->create(new_name));
  FOLIOT_RETURN_IF_ERROR(copy->append(file));
  FOLIOT_RETURN_IF_ERROR(copy->sync());
  return storage_->rename(new_name, name);
}

Status LogFiles::begin_segment(const LogBatch& batch) {
  file_.reset();
  const LogHeader header{++sequence_, batch.synced, batch.first, random_.next()};
  const std::string name = numbered(kSegmentPrefix, header.sequence);
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<StorageFile> file, storage_->create(name));
  segments_[header.sequence] = {name, header.after, header.salt};
  frames_.clear();
  append_header(frames_, header);
  FOLIOT_RETURN_IF_ERROR(file->append(frames_));
  FOLIOT_RETURN_IF_ERROR(file->sync());
  file_ = std::move(file);
  salt_ = header.salt;
  return Status();
}

Status LogFiles::write(const LogBatch& batch) {
  const bool begins_file = batch.begins_file || file_ == nullptr;
  Status status = begins_file ? begin_segment(batch) : Status();
  if (status.ok()) status = append(batch);
  if (status.ok()) {
    last_ = batch.last();
    return status;
  }
  file_.reset();
  // It has no record that lasts, and on a full disk its space is needed. If it stays, it does no harm.
  const auto segment = segments_.find(sequence_);
  if (begins_file && segment != segments_.end() && storage_->remove(segment->second.name).ok()) {
    segments_.erase(segment);
  }
  return status;
}

Status LogFiles::append(const LogBatch& batch) {
  FOLIOT_CHECK(file_ != nullptr);
  frames_.clear();
  std::span<const std::byte> rest = batch.bytes;
  uint64_t number = batch.first;
  for (const uint32_t length : batch.lengths) {
    append_frame(frames_, salt_, {number++, batch.synced, rest.first(length)});
    rest = rest.subspan(length);
  }
  FOLIOT_RETURN_IF_ERROR(file_->append(frames_));
  return file_->sync();
}

Status LogFiles::begin_snapshot(uint64_t number) {
  FOLIOT_CHECK(number <= last_);
  new_snapshot_.reset();
  new_number_ = number;
  new_pieces_ = 0;
  new_salt_ = random_.next();
  FOLIOT_ASSIGN_OR_RETURN(new_snapshot_, storage_->create(kNewSnapshot));
  std::vector<std::byte> header;
  append_header(header, {0, number, 1, new_salt_});
  return new_snapshot_->append(header);
}

Status LogFiles::add_to_snapshot(std::span<const std::byte> piece) {
  FOLIOT_CHECK(new_snapshot_ != nullptr && !piece.empty());
  std::vector<std::byte> frame;
  append_frame(frame, new_salt_, {++new_pieces_, 0, piece});
  FOLIOT_RETURN_IF_ERROR(new_snapshot_->append(frame));
  unsynced_bytes_ += frame.size();
  if (unsynced_bytes_ < kSyncEveryBytes) return Status();
  unsynced_bytes_ = 0;
  return new_snapshot_->sync();
}

Status LogFiles::finish_snapshot() {
  FOLIOT_CHECK(new_snapshot_ != nullptr);
  std::vector<std::byte> end;
  append_frame(end, new_salt_, {++new_pieces_, 0, {}});
  FOLIOT_RETURN_IF_ERROR(new_snapshot_->append(end));
  FOLIOT_RETURN_IF_ERROR(new_snapshot_->sync());
  new_snapshot_.reset();
  const std::string name = numbered(kSnapshotPrefix, new_number_);
  FOLIOT_RETURN_IF_ERROR(storage_->rename(kNewSnapshot, name));
  const std::string old = std::exchange(snapshot_name_, name);
  snapshot_number_ = new_number_;
  snapshot_salt_ = new_salt_;
  if (!old.empty() && old != name) FOLIOT_RETURN_IF_ERROR(storage_->remove(old));
  return remove_old(new_number_);
}

void LogFiles::give_up_snapshot() {
  new_snapshot_.reset();
  // What stays is begun anew by the next one, and removed when the log is opened.
  static_cast<void>(storage_->remove(kNewSnapshot));
}

// The oldest first: what is left is always complete from some record on.
Status LogFiles::remove_old(uint64_t number) {
  while (segments_.size() > 1) {
    const auto oldest = segments_.begin();
    if (std::next(oldest)->second.after > number) return Status();
    FOLIOT_RETURN_IF_ERROR(storage_->remove(oldest->second.name));
    segments_.erase(oldest);
  }
  // Nothing came since: the next batch begins a file.
  if (segments_.size() == 1 && last_ == number) {
    file_.reset();
    FOLIOT_RETURN_IF_ERROR(storage_->remove(segments_.begin()->second.name));
    segments_.clear();
  }
  return Status();
}

}  // namespace foliot
