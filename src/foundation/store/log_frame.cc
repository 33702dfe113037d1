#include "foundation/store/log_frame.h"

#include <bit>
#include <cstring>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr uint64_t kMagic = 0x676f6c6f696c6f66;  // "foliolog"

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <typename T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

void append_header(std::vector<std::byte>& file, const LogHeader& header) {
  file.resize(file.size() + kLogHeaderBytes);
  std::byte* const at = file.data() + file.size() - kLogHeaderBytes;
  put(at, kMagic);
  put(at + 8, header.sequence);
  put(at + 16, header.after);
  put(at + 24, header.first);
  put(at + 32, header.salt);
  put(at + 40, hash64({at, kLogHeaderBytes - 8}));
}

std::optional<LogHeader> read_header(std::span<const std::byte> file) {
  if (file.size() < kLogHeaderBytes || get<uint64_t>(file.data()) != kMagic ||
      get<uint64_t>(file.data() + 40) != hash64(file.first(kLogHeaderBytes - 8))) {
    return std::nullopt;
  }
  return LogHeader{get<uint64_t>(file.data() + 8), get<uint64_t>(file.data() + 16), get<uint64_t>(file.data() + 24),
                   get<uint64_t>(file.data() + 32)};
}

void append_frame(std::vector<std::byte>& file, uint64_t salt, const LogFrame& frame) {
  FOLIOT_CHECK(frame.synced < frame.number && frame.number - frame.synced <= UINT32_MAX);
  FOLIOT_CHECK(frame.bytes.size() <= kRecordBytesMax);
  file.resize(file.size() + frame.size());
  std::byte* const at = file.data() + file.size() - frame.size();
  put(at + 8, frame.number);
  put(at + 16, static_cast<uint32_t>(frame.bytes.size()));
  put(at + 20, static_cast<uint32_t>(frame.number - frame.synced));
  if (!frame.bytes.empty()) std::memcpy(at + kFrameHeaderBytes, frame.bytes.data(), frame.bytes.size());
  put(at, hash64({at + 8, frame.size() - 8}) ^ salt);
}

std::optional<LogFrame> read_frame(std::span<const std::byte> file, size_t offset, uint64_t salt) {
  if (offset + kFrameHeaderBytes > file.size()) return std::nullopt;
  const std::byte* const at = file.data() + offset;
  const size_t length = get<uint32_t>(at + 16);
  if (length > kRecordBytesMax || offset + kFrameHeaderBytes + length > file.size()) return std::nullopt;
  if (get<uint64_t>(at) != (hash64({at + 8, kFrameHeaderBytes - 8 + length}) ^ salt)) return std::nullopt;
  const auto number = get<uint64_t>(at + 8);
  return LogFrame{number, number - get<uint32_t>(at + 20), file.subspan(offset + kFrameHeaderBytes, length)};
}

}  // namespace foliot
