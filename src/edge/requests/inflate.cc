#include "edge/requests/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// The largest window, and gzip or zlib by what the data begins with.
constexpr int kWindowBitsDetect = 15 + 32;
constexpr size_t kFirstBytes = 64 << 10;

class Inflater {
 public:
  explicit Inflater(std::string_view compressed) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));  // NOLINT: zlib only reads
    stream_.avail_in = static_cast<uInt>(compressed.size());
    FOLIOT_CHECK(inflateInit2(&stream_, kWindowBitsDetect) == Z_OK);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Writes behind the `produced` bytes of `to`, up to `room`.
  int run(char* to, size_t& produced, size_t room) {
    stream_.next_out = reinterpret_cast<Bytef*>(to + produced);
    const auto bytes = static_cast<uInt>(std::min<size_t>(room - produced, std::numeric_limits<uInt>::max()));
    stream_.avail_out = bytes;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    produced += bytes - stream_.avail_out;
    return code;
  }
  size_t left() const { return stream_.avail_in; }
  // A gzip file may have several members, which are one text (RFC 1952). False: none follows.
  bool begin_next_member() {
    const bool follows = stream_.avail_in >= 2 && stream_.next_in[0] == 0x1f && stream_.next_in[1] == 0x8b;
    return follows && inflateReset(&stream_) == Z_OK;
  }

 private:
  z_stream stream_{};
};

}  // namespace

Result<std::string> inflate_bytes(std::string_view compressed, uint64_t bytes_max) {
  if (compressed.size() > std::numeric_limits<uInt>::max())
    return Status::resource_exhausted(fmt::format("a compressed body of {} bytes; at most {} are allowed",
                                                  compressed.size(), std::numeric_limits<uInt>::max()));
  Inflater inflater(compressed);
  std::string inflated;
  size_t produced = 0;
  while (true) {
    // One byte beyond the limit distinguishes a body that fills it from one that
    // exceeds it.
    const size_t room = std::min<uint64_t>(std::max(kFirstBytes, inflated.size() * 2), bytes_max + 1);
    inflated.resize(room);
    const int code = inflater.run(inflated.data(), produced, room);
    if (produced > bytes_max)
      return Status::resource_exhausted(fmt::format("the body inflates to more than the {} bytes allowed", bytes_max));
    if (code == Z_STREAM_END) {
      if (inflater.left() == 0) break;
      if (inflater.begin_next_member()) continue;
      return Status::invalid_argument(
          fmt::format("{} bytes follow the compressed body, and are no further member of it", inflater.left()));
    }
    const bool wants_room = code == Z_OK && produced == room;
    if (!wants_room) return Status::invalid_argument("the compressed body is damaged or cut off");
  }
  inflated.resize(produced);
  return inflated;
}

}  // namespace foliot
