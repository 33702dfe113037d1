#include "frontend/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

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

  int run(char* to, size_t bytes) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(bytes, std::numeric_limits<uInt>::max()));
    return inflate(&stream_, Z_NO_FLUSH);
  }
  size_t produced() const { return stream_.total_out; }

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
  while (true) {
    // One byte beyond the limit distinguishes a body that fills it from one that
    // exceeds it.
    const size_t room = std::min<uint64_t>(std::max(kFirstBytes, inflated.size() * 2), bytes_max + 1);
    inflated.resize(room);
    const int code = inflater.run(inflated.data() + inflater.produced(), room - inflater.produced());
    if (inflater.produced() > bytes_max)
      return Status::resource_exhausted(fmt::format("the body inflates to more than the {} bytes allowed", bytes_max));
    if (code == Z_STREAM_END) break;
    const bool wants_room = code == Z_OK && inflater.produced() == room;
    if (!wants_room) return Status::invalid_argument("the compressed body is damaged or cut off");
  }
  inflated.resize(inflater.produced());
  return inflated;
}

}  // namespace foliot
