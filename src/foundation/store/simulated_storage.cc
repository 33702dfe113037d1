#include "foundation/store/simulated_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

constexpr size_t kBlockBytes = 64;  // small, so that a short file has several

Status down() { return Status::internal("the simulated machine is down"); }

}  // namespace

class SimulatedStorage::OpenFile : public StorageFile {
 public:
  OpenFile(SimulatedStorage& storage, std::shared_ptr<File> file, std::string_view name)
      : storage_(storage), file_(std::move(file)), name_(name) {}
  Status append(std::span<const std::byte> bytes) override { return storage_.append(file_, name_, bytes); }
  Status sync() override { return storage_.sync(file_, name_); }

 private:
  SimulatedStorage& storage_;
  std::shared_ptr<File> file_;
  const std::string name_;
};

bool SimulatedStorage::begin() {
  const auto longest = static_cast<uint64_t>(faults_.operation_max.nanoseconds());
  if (longest > 0) elapsed_ += Duration::nanoseconds(static_cast<int64_t>(random_.below(longest)));
  return !drawn(faults_.crash);
}

Result<std::unique_ptr<StorageFile>> SimulatedStorage::create(std::string_view name) {
  if (crashed_) return down();
  const bool survives = begin();
  if (drawn(faults_.failed_name)) return Status::internal(fmt::format("{}: cannot create", name));
  if (survives || drawn(0.5)) files_.insert_or_assign(std::string(name), std::make_shared<File>());
  if (!survives) {
    crash();
    return down();
  }
  return std::unique_ptr<StorageFile>(std::make_unique<OpenFile>(*this, files_.find(name)->second, name));
}

Status SimulatedStorage::append(const std::shared_ptr<File>& file, const std::string& name,
                                std::span<const std::byte> bytes) {
  if (crashed_) return down();
  const bool survives = begin();
  if (drawn(faults_.disk_full)) appends_until_space_ = 1 + random_.below(5);
  const bool is_full = appends_until_space_ > 0;
  if (is_full) --appends_until_space_;
  const bool fails = is_full || drawn(faults_.failed_append);
  const size_t written = survives && !fails ? bytes.size() : random_.below(bytes.size() + 1);
  file->bytes.insert(file->bytes.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(written));
  if (!survives) {
    crash();
    return down();
  }
  if (is_full) return Status::resource_exhausted(fmt::format("{}: the disk is full", name));
  return fails ? Status::internal(fmt::format("{}: cannot write", name)) : Status();
}

Status SimulatedStorage::sync(const std::shared_ptr<File>& file, const std::string& name) {
  if (crashed_) return down();
  ++syncs_;
  if (!begin()) {
    if (!file->is_broken) {
      file->synced_bytes += random_.below(file->bytes.size() - file->synced_bytes + 1);
    }
    crash();
    return down();
  }
  if (drawn(faults_.failed_sync)) {
    file->is_broken = true;
    return Status::internal(fmt::format("{}: cannot sync", name));
  }
  if (!file->is_broken) file->synced_bytes = file->bytes.size();
  return Status();
}

Status SimulatedStorage::sync(std::string_view name) {
  const auto file = files_.find(name);
  if (file == files_.end()) return Status::not_found(fmt::format("{}: no such file", name));
  return sync(file->second, file->first);
}

Status SimulatedStorage::rename(std::string_view from, std::string_view to) {
  if (crashed_) return down();
  const bool survives = begin();
  const auto file = files_.find(from);
  if (file == files_.end()) return Status::not_found(fmt::format("{}: no such file", from));
  if (drawn(faults_.failed_name)) return Status::internal(fmt::format("{}: cannot rename", from));
  if (survives || drawn(0.5)) {
    files_.insert_or_assign(std::string(to), file->second);
    files_.erase(file);
  }
  if (survives) return Status();
  crash();
  return down();
}

Status SimulatedStorage::remove(std::string_view name) {
  if (crashed_) return down();
  const bool survives = begin();
  const auto file = files_.find(name);
  if (file == files_.end()) return Status::not_found(fmt::format("{}: no such file", name));
  if (drawn(faults_.failed_name)) return Status::internal(fmt::format("{}: cannot remove", name));
  if (survives || drawn(0.5)) files_.erase(file);
  if (survives) return Status();
  crash();
  return down();
}

Result<std::vector<std::byte>> SimulatedStorage::read(std::string_view name) { return read(name, 0, SIZE_MAX); }

Result<std::vector<std::byte>> SimulatedStorage::read(std::string_view name, uint64_t offset, size_t bytes_max) {
  if (crashed_) return down();
  const auto file = files_.find(name);
  if (file == files_.end()) return Status::not_found(fmt::format("{}: no such file", name));
  const std::span<const std::byte> bytes = file->second->bytes;
  const std::span<const std::byte> rest = bytes.subspan(std::min<uint64_t>(offset, bytes.size()));
  const std::span<const std::byte> part = rest.first(std::min(bytes_max, rest.size()));
  return std::vector<std::byte>(part.begin(), part.end());
}

Result<std::vector<std::string>> SimulatedStorage::list() {
  if (crashed_) return down();
  std::vector<std::string> names;
  names.reserve(files_.size());
  for (const auto& [name, file] : files_) names.push_back(name);
  return names;
}

void SimulatedStorage::crash() {
  crashed_ = true;
  for (auto& [name, file] : files_) {
    // What was open before writes into a copy that no process reads.
    file = std::make_shared<File>(*file);
    lose_part(*file);
    file->synced_bytes = file->bytes.size();
    file->is_broken = false;
  }
}

void SimulatedStorage::lose_part(File& file) {
  const size_t unsynced = file.bytes.size() - file.synced_bytes;
  file.bytes.resize(file.synced_bytes + random_.below(unsynced + 1));
  for (size_t begin = file.synced_bytes; begin < file.bytes.size(); begin += kBlockBytes) {
    const size_t end = std::min(begin + kBlockBytes, file.bytes.size());
    const uint64_t fate = random_.below(4);
    for (size_t at = begin; at < end && fate >= 2; ++at) {
      file.bytes[at] = fate == 2 ? std::byte{0} : static_cast<std::byte>(random_.below(256));
    }
  }
}

void SimulatedStorage::flip(std::string_view name, uint64_t byte, uint32_t bit) {
  files_.find(name)->second->bytes[byte] ^= static_cast<std::byte>(1U << bit);
}

void SimulatedStorage::truncate(std::string_view name, uint64_t bytes) {
  files_.find(name)->second->bytes.resize(bytes);
}

}  // namespace foliot
