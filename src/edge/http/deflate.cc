#include "edge/http/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// What fits one packet of Ethernet arrives no sooner for being smaller.
constexpr size_t kBytesMin = 1400;
constexpr int kWindowBits = 15;
constexpr int kGzip = 16;  // added to the window bits: gzip's header and trailer in place of zlib's
constexpr int kMemoryLevel = 8;
constexpr size_t kOutputBytes = 64 << 10;

class Deflater {
 public:
  explicit Deflater(ContentEncoding encoding) {
    const int window = encoding == ContentEncoding::kGzip ? kWindowBits + kGzip : kWindowBits;
    FOLIOT_CHECK(deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, window, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t part = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT: zlib only reads
      stream_.avail_in = static_cast<uInt>(part);
      while (stream_.avail_in > 0) step(Z_NO_FLUSH);
      bytes.remove_prefix(part);
    }
  }
  std::string take() {
    while (step(Z_FINISH) != Z_STREAM_END) {
    }
    output_.resize(stream_.total_out);
    return std::move(output_);
  }

 private:
  int step(int flush) {
    if (output_.size() == stream_.total_out) output_.resize(output_.size() + std::max(output_.size(), kOutputBytes));
    const size_t room = output_.size() - stream_.total_out;
    stream_.next_out = reinterpret_cast<Bytef*>(output_.data() + stream_.total_out);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(room, std::numeric_limits<uInt>::max()));
    const int code = deflate(&stream_, flush);
    FOLIOT_CHECK(code == Z_OK || code == Z_STREAM_END);
    return code;
  }

  z_stream stream_{};
  std::string output_;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Splits at the first `separator`: what is before it, trimmed; `text` is what is left.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// "q=0.5"; 1 where it is left out, 0 where it is no number.
double quality_of(std::string_view parameters) {
  const std::string_view text = take_until(parameters, ';');
  if (!text.starts_with("q=")) return 1;
  double quality = 0;
  std::from_chars(text.data() + 2, text.data() + text.size(), quality);
  return quality;
}

bool equal(std::string_view a, std::string_view b) {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

}  // namespace

ContentEncoding preferred_encoding(std::string_view accept_encoding) {
  double gzip = 0, deflate = 0, identity = 0;
  while (!accept_encoding.empty()) {
    std::string_view entry = take_until(accept_encoding, ',');
    const std::string_view name = take_until(entry, ';');
    const double quality = quality_of(entry);
    if (equal(name, "gzip")) gzip = quality;
    if (equal(name, "deflate")) deflate = quality;
    if (equal(name, "identity")) identity = quality;
  }
  const double best = std::max(gzip, deflate);
  if (best <= 0 || identity > best) return ContentEncoding::kIdentity;
  return gzip >= deflate ? ContentEncoding::kGzip : ContentEncoding::kDeflate;
}

void compress(HttpResponse& response, ContentEncoding encoding) {
  if (encoding == ContentEncoding::kIdentity) return;
  size_t bytes = 0;
  for (const std::string& piece : response.body) bytes += piece.size();
  if (bytes < kBytesMin) return;
  Deflater deflater(encoding);
  for (const std::string& piece : response.body) deflater.add(piece);
  std::string compressed = deflater.take();
  if (compressed.size() >= bytes) return;
  response.body.clear();
  response.body.push_back(std::move(compressed));
  response.headers.emplace_back("Content-Encoding", encoding == ContentEncoding::kGzip ? "gzip" : "deflate");
}

}  // namespace foliot
