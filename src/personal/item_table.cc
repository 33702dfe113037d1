#include "personal/item_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error_text.h"
#include "base/hash.h"
#include "personal/cholesky.h"
#include "personal/user_weights.h"
#include "platform/descriptor.h"

namespace foliot {
namespace {

constexpr uint64_t kMagic = 0x736d657469'6c6f66;  // "folitems"
constexpr size_t kHeaderBytes = 32;
constexpr size_t kRowsAlignment = 64;

size_t rows_offset(size_t items) {
  return (kHeaderBytes + items * sizeof(uint64_t) + kRowsAlignment - 1) / kRowsAlignment * kRowsAlignment;
}

// The first item that is not greater than the one before it; items.size() if there is none.
size_t first_out_of_order(std::span<const uint64_t> items) {
  return static_cast<size_t>(
      std::adjacent_find(items.begin(), items.end(), [](uint64_t a, uint64_t b) { return a >= b; }) - items.begin());
}

}  // namespace

Result<std::shared_ptr<const ItemTable>> ItemTable::open(const std::filesystem::path& file) {
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat attributes {};
  if (!descriptor.is_open() || ::fstat(descriptor.number(), &attributes) != 0) {
    return Status::not_found(fmt::format("{}: cannot read: {}", file.string(), error_text(errno)));
  }
  const auto size = static_cast<size_t>(attributes.st_size);
  if (size < kHeaderBytes) return Status::invalid_argument(fmt::format("{}: is no table of items", file.string()));
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.number(), 0);
  if (address == MAP_FAILED) {
    return Status::resource_exhausted(fmt::format("{}: cannot map: {}", file.string(), error_text(errno)));
  }
  std::shared_ptr<ItemTable> table(new ItemTable(std::span(static_cast<std::byte*>(address), size)));
  if (const std::string wrong = table->read(); !wrong.empty()) {
    return Status::invalid_argument(fmt::format("{}: {}; write the table anew", file.string(), wrong));
  }
  return std::shared_ptr<const ItemTable>(std::move(table));
}

ItemTable::~ItemTable() { ::munmap(mapped_.data(), mapped_.size()); }

std::string ItemTable::read() {
  std::array<uint64_t, 4> header;
  std::memcpy(header.data(), mapped_.data(), sizeof header);
  const auto [magic, features, items, checksum] = header;
  if (magic != kMagic) return "is no table of items";
  if (features < 1 || features > kFeaturesMax) {
    return fmt::format("has {} features, limits 1 and {}", features, kFeaturesMax);
  }
  const size_t width = padded_rows(features);
  if (items > mapped_.size() || mapped_.size() != rows_offset(items) + items * width * sizeof(float)) {
    return fmt::format("is damaged: {} bytes are not the size of {} items of {} features", mapped_.size(), items,
                       features);
  }
  if (checksum != hash64(mapped_.subspan(kHeaderBytes))) return "is damaged: its checksum differs";
  features_ = features;
  width_ = width;
  checksum_ = checksum;
  items_ = {reinterpret_cast<const uint64_t*>(mapped_.data() + kHeaderBytes), items};
  rows_ = {reinterpret_cast<const float*>(mapped_.data() + rows_offset(items)), items * width};
  if (const size_t at = first_out_of_order(items_); at < items) {
    return fmt::format("item {} is not below item {} after it: ids must ascend, each once", items_[at], items_[at + 1]);
  }
  for (size_t i = 0; i < items; ++i) {
    const std::span<const float> values = row(i);
    for (size_t j = 0; j < width; ++j) {
      if (!std::isfinite(values[j])) return fmt::format("feature {} of item {} is not finite", j, items_[i]);
      if (j >= features && values[j] != 0) return fmt::format("item {} has more than {} features", items_[i], features);
    }
  }
  return "";
}

Status ItemTable::write(const std::filesystem::path& file, size_t features, std::span<const uint64_t> items,
                        std::span<const float> rows) {
  if (features < 1 || features > kFeaturesMax || rows.size() != items.size() * features) {
    return Status::invalid_argument(fmt::format("{}: {} values are not {} items of {} features (1 to {})",
                                                file.string(), rows.size(), items.size(), features, kFeaturesMax));
  }
  const size_t width = padded_rows(features);
  const size_t offset = rows_offset(items.size());
  std::vector<std::byte> bytes(offset + items.size() * width * sizeof(float));
  if (!items.empty()) std::memcpy(bytes.data() + kHeaderBytes, items.data(), items.size_bytes());
  for (size_t i = 0; i < items.size(); ++i) {
    std::memcpy(bytes.data() + offset + i * width * sizeof(float), rows.data() + i * features,
                features * sizeof(float));
  }
  const std::array<uint64_t, 4> header = {kMagic, features, items.size(),
                                          hash64(std::span(bytes).subspan(kHeaderBytes))};
  std::memcpy(bytes.data(), header.data(), sizeof header);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return Status::internal(fmt::format("{}: cannot write", file.string()));
  return open(file).status();
}

std::optional<size_t> ItemTable::find(uint64_t item) const {
  const auto found = std::lower_bound(items_.begin(), items_.end(), item);
  if (found == items_.end() || *found != item) return std::nullopt;
  return static_cast<size_t>(found - items_.begin());
}

}  // namespace foliot
