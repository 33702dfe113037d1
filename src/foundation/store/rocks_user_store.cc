#include "foundation/store/rocks_user_store.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <array>
#include <cstdarg>
#include <string>
#include <system_error>
#include <utility>

namespace foliot {
namespace {

// Keys: of a user this and its number, most significant byte first, so that they are in the order of numbers.
constexpr char kUserPrefix = 'u';
constexpr char kAfterUsers = 'v';
constexpr const char* kNoteKey = "note";
constexpr size_t kKeyBytes = 9;
// Ranges that are compacted one by one; of more users, everything is.
constexpr size_t kRangesMax = 32;

using Key = std::array<char, kKeyBytes>;

Key key_of(uint64_t user) {
  Key key{kUserPrefix};
  for (size_t i = 0; i < 8; ++i) key[1 + i] = static_cast<char>(user >> (56 - 8 * i));
  return key;
}

uint64_t user_of(const rocksdb::Slice& key) {
  uint64_t user = 0;
  for (size_t i = 1; i < kKeyBytes; ++i) user = user << 8 | static_cast<uint8_t>(key[i]);
  return user;
}

rocksdb::Slice slice(const Key& key) { return {key.data(), key.size()}; }
rocksdb::Slice slice(const UserStore::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
UserStore::Bytes bytes_of(const rocksdb::Slice& value) {
  const auto* const begin = reinterpret_cast<const std::byte*>(value.data());
  return {begin, begin + value.size()};
}

// RocksDB's own lines are not kept: errors are returned.
class NoLines : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

rocksdb::Options make_options(uint64_t bytes_max) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.info_log = std::make_shared<NoLines>();
  // No thread for statistics.
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  options.max_background_jobs = 2;
  options.max_subcompactions = 1;
  options.max_open_files = 256;
  options.bytes_per_sync = 1 << 20;  // the log's syncs do not wait for a whole file
  options.avoid_flush_during_shutdown = true;
  options.max_manifest_file_size = 1 << 20;
  options.keep_log_file_num = 1;
  // Two buffers in half of the memory, blocks and filters in the other.
  options.write_buffer_size = std::min<uint64_t>(bytes_max / 4, 64 << 20);
  options.max_write_buffer_number = 2;
  options.target_file_size_base = std::max<uint64_t>(options.write_buffer_size, 4 << 20);
  options.level_compaction_dynamic_level_bytes = true;
  options.compression = rocksdb::kNoCompression;  // weights and numbers do not get smaller
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(bytes_max - 2 * options.write_buffer_size, 4);
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::Env* const env = rocksdb::Env::Default();
  env->SetBackgroundThreads(1, rocksdb::Env::LOW);
  env->SetBackgroundThreads(1, rocksdb::Env::HIGH);
  for (const rocksdb::Env::Priority pool : {rocksdb::Env::LOW, rocksdb::Env::HIGH}) {
    env->LowerThreadPoolCPUPriority(pool, rocksdb::CpuPriority::kLow).PermitUncheckedError();
  }
  return options;
}

Status error_of(const std::string& folder, const char* what, const rocksdb::Status& status) {
  if (status.ok()) return Status();
  if (status.IsNoSpace()) {
    return Status::resource_exhausted(fmt::format("{}: cannot {}: the disk is full; free space on it", folder, what));
  }
  return Status::internal(fmt::format(
      "{}: cannot {}: {}; check the disk: the folder is made anew from the log when the server is started again",
      folder, what, status.ToString()));
}

}  // namespace

struct RocksUserStore::Database {
  std::string folder;
  rocksdb::Options options;
  std::unique_ptr<rocksdb::DB> db{};

  Status open() {
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, folder, &opened);
    db.reset(opened);
    return error_of(folder, "open it", status);
  }
  // After an error in the background RocksDB refuses all writes until Resume().
  Status write(rocksdb::WriteBatch& batch) {
    rocksdb::WriteOptions without_log;
    without_log.disableWAL = true;
    rocksdb::Status status = db->Write(without_log, &batch);
    if (!status.ok()) {
      status = db->Resume();
      if (status.ok()) status = db->Write(without_log, &batch);
    }
    return error_of(folder, "write", status);
  }
  Status compact(const rocksdb::Slice* begin, const rocksdb::Slice* end) {
    rocksdb::CompactRangeOptions all_levels;
    all_levels.exclusive_manual_compaction = false;
    all_levels.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    return error_of(folder, "compact", db->CompactRange(all_levels, begin, end));
  }
};

RocksUserStore::RocksUserStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
RocksUserStore::~RocksUserStore() = default;

Result<std::unique_ptr<RocksUserStore>> RocksUserStore::open(const std::filesystem::path& folder, uint64_t bytes_max) {
  if (bytes_max < kBytesMin) {
    return Status::invalid_argument(
        fmt::format("{} bytes for RocksDB: must be {} or more", bytes_max, uint64_t{kBytesMin}));
  }
  auto database = std::make_unique<Database>(Database{.folder = folder.string(), .options = make_options(bytes_max)});
  FOLIOT_RETURN_IF_ERROR(database->open());
  return std::unique_ptr<RocksUserStore>(new RocksUserStore(std::move(database)));
}

Status RocksUserStore::remove_all(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) return Status();
  return Status::internal(fmt::format("{}: cannot remove it: {}", folder.string(), error.message()));
}

Result<std::optional<UserStore::Bytes>> RocksUserStore::get(uint64_t user) {
  const Key key = key_of(user);
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      database_->db->Get(rocksdb::ReadOptions(), database_->db->DefaultColumnFamily(), slice(key), &value);
  if (status.IsNotFound()) return std::optional<Bytes>();
  FOLIOT_RETURN_IF_ERROR(error_of(database_->folder, "read", status));
  return std::optional<Bytes>(bytes_of(value));
}

Status RocksUserStore::write(std::span<const Write> writes) {
  rocksdb::WriteBatch batch;
  for (const Write& write : writes) {
    const Key key = key_of(write.user);
    const rocksdb::Status status = write.bytes ? batch.Put(slice(key), slice(*write.bytes)) : batch.Delete(slice(key));
    FOLIOT_RETURN_IF_ERROR(error_of(database_->folder, "write", status));
  }
  return database_->write(batch);
}

Result<std::vector<UserStore::Value>> RocksUserStore::scan(std::optional<uint64_t> after, size_t bytes_max) {
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> iterator(database_->db->NewIterator(read));
  const Key from = key_of(after.value_or(0));
  iterator->Seek(slice(from));
  if (after && iterator->Valid() && iterator->key() == slice(from)) iterator->Next();
  std::vector<Value> values;
  size_t bytes = 0;
  for (; iterator->Valid() && iterator->key().size() == kKeyBytes && iterator->key()[0] == kUserPrefix;
       iterator->Next()) {
    bytes += iterator->value().size();
    if (!values.empty() && bytes > bytes_max) break;
    values.push_back({user_of(iterator->key()), bytes_of(iterator->value())});
  }
  FOLIOT_RETURN_IF_ERROR(error_of(database_->folder, "read", iterator->status()));
  return values;
}

Status RocksUserStore::flush() {
  return error_of(database_->folder, "write", database_->db->Flush(rocksdb::FlushOptions()));
}

Status RocksUserStore::purge(std::span<const uint64_t> users) {
  if (users.empty()) return Status();
  FOLIOT_RETURN_IF_ERROR(flush());
  if (users.size() > kRangesMax) return database_->compact(nullptr, nullptr);
  for (const uint64_t user : users) {
    const Key key = key_of(user);
    const rocksdb::Slice range = slice(key);
    FOLIOT_RETURN_IF_ERROR(database_->compact(&range, &range));
  }
  return Status();
}

Status RocksUserStore::clear() {
  database_->db.reset();
  FOLIOT_RETURN_IF_ERROR(remove_all(database_->folder));
  return database_->open();
}

Result<std::optional<UserStore::Bytes>> RocksUserStore::note() {
  std::string value;
  const rocksdb::Status status = database_->db->Get(rocksdb::ReadOptions(), kNoteKey, &value);
  if (status.IsNotFound()) return std::optional<Bytes>();
  FOLIOT_RETURN_IF_ERROR(error_of(database_->folder, "read", status));
  return std::optional<Bytes>(bytes_of(value));
}

Status RocksUserStore::set_note(std::optional<Bytes> note) {
  rocksdb::WriteBatch batch;
  const rocksdb::Status status = note ? batch.Put(kNoteKey, slice(*note)) : batch.Delete(kNoteKey);
  FOLIOT_RETURN_IF_ERROR(error_of(database_->folder, "write", status));
  return database_->write(batch);
}

}  // namespace foliot
