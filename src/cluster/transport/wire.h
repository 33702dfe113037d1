// Wire: numbers and texts as bytes, and back. Little-endian and packed, so that a
// message costs little more than copying it.
#ifndef FOLIOT_CLUSTER_TRANSPORT_WIRE_H_
#define FOLIOT_CLUSTER_TRANSPORT_WIRE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "foundation/base/id.h"
#include "foundation/base/time.h"

namespace foliot {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian; swap bytes here");

using WireBytes = std::vector<std::byte>;

inline constexpr size_t kWireTextBytesMax = 4096;

// Appends to `bytes`, which outlives the writer.
class WireWriter {
 public:
  explicit WireWriter(WireBytes& bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  void put(T value) { append(&value, sizeof(value)); }
  template <typename T>
  requires std::is_enum_v<T>
  void put(T value) { put(static_cast<std::underlying_type_t<T>>(value)); }
  template <typename Tag, typename Representation>
  void put(Id<Tag, Representation> id) {
    put(id.value());
  }
  void put(Duration duration) { put(duration.nanoseconds()); }
  void put(TimePoint instant) { put(instant.nanoseconds()); }
  // Cut off at kWireTextBytesMax.
  void put(std::string_view text) {
    text = text.substr(0, kWireTextBytesMax);
    put(static_cast<uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  // A tensor's.
  void put(std::span<const std::byte> tensor) {
    put(static_cast<uint64_t>(tensor.size()));
    append(tensor.data(), tensor.size());
  }

 private:
  void append(const void* from, size_t size) {
    if (size == 0) return;
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, from, size);
  }

  WireBytes& bytes_;
};

// Reads what a WireWriter wrote. The first thing that is not there, or is out of
// its range, makes the reader fail for good; what is read from then on is zero.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  // Everything was there, and nothing is left.
  bool complete() const { return !failed_ && bytes_.empty(); }
  size_t left() const { return bytes_.size(); }
  void fail() {
    failed_ = true;
    bytes_ = {};
  }

  template <typename T>
  requires std::is_arithmetic_v<T>
  void get(T& value) {
    value = T();
    if (bytes_.size() < sizeof(T)) return fail();
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
  }
  // Fails beyond `last`.
  template <typename T>
  requires std::is_enum_v<T>
  void get(T& value, T last) {
    std::underlying_type_t<T> number;
    get(number);
    if (number > static_cast<std::underlying_type_t<T>>(last)) return fail();
    value = static_cast<T>(number);
  }
  void get(bool& value) {
    uint8_t number;
    get(number);
    if (number > 1) return fail();
    value = number == 1;
  }
  template <typename Tag, typename Representation>
  void get(Id<Tag, Representation>& id) {
    Representation value;
    get(value);
    id = Id<Tag, Representation>(value);
  }
  void get(Duration& duration) {
    int64_t nanoseconds;
    get(nanoseconds);
    if (!can_be_added(nanoseconds)) return fail();
    duration = Duration::nanoseconds(nanoseconds);
  }
  void get(TimePoint& instant) {
    int64_t nanoseconds;
    get(nanoseconds);
    instant = TimePoint::from_nanoseconds(nanoseconds);
    if (!instant.is_infinite() && !can_be_added(nanoseconds)) fail();
  }
  void get(std::string& text) {
    uint32_t size;
    get(size);
    if (size > kWireTextBytesMax || size > bytes_.size()) return fail();
    text.assign(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
  }
  // Views what is read.
  void get(std::span<const std::byte>& tensor) {
    uint64_t size;
    get(size);
    tensor = {};
    if (size > bytes_.size()) return fail();
    tensor = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
  }
  // The number of elements that follow, of at least `bytes_each`; a false number cannot
  // reserve more memory than the bytes that were sent.
  uint32_t get_count(size_t bytes_each) {
    uint32_t count;
    get(count);
    if (count > bytes_.size() / bytes_each) {
      fail();
      return 0;
    }
    return count;
  }

 private:
  // Within 36 years: sums of a few such times cannot overflow.
  static bool can_be_added(int64_t nanoseconds) {
    constexpr int64_t kMax = int64_t{1} << 60;
    return -kMax <= nanoseconds && nanoseconds <= kMax;
  }

  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_WIRE_H_
