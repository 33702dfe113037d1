// RecordWriter and RecordReader: numbers and observations as bytes, as the log, snapshots and the store of users of a
// personal model hold them.
//
// Threading: one owner each.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_RECORD_BYTES_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_RECORD_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "answer/personal/weights/observation_table.h"

namespace foliot {

class RecordWriter {
 public:
  // Replaces what `bytes` has.
  explicit RecordWriter(std::vector<std::byte>& bytes) : bytes_(bytes) { bytes_.clear(); }
  template <typename T>
  void put(T value) {
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
  }
  void put(std::span<const UserObservation> observations) {
    put(static_cast<uint32_t>(observations.size()));
    for (const UserObservation& observation : observations) {
      put(observation.id);
      put(observation.item);
      put(observation.value);
      put(observation.probability);
    }
  }
  // Their number, and each.
  template <typename T>
  void put_all(std::span<const T> values) {
    put(static_cast<uint32_t>(values.size()));
    for (const T& value : values) put(value);
  }
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

 private:
  std::vector<std::byte>& bytes_;
};

class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value{};
    is_valid_ = is_valid_ && bytes_.size() >= sizeof value;
    if (!is_valid_) return value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::vector<UserObservation> observations() {
    std::vector<UserObservation> all;
    const auto count = get<uint32_t>();
    for (uint32_t i = 0; i < count && is_valid_; ++i) {
      UserObservation observation;
      observation.id = get<uint64_t>();
      observation.item = get<uint64_t>();
      observation.value = get<float>();
      observation.probability = get<float>();
      all.push_back(observation);
    }
    return all;
  }
  template <typename T>
  std::vector<T> all() {
    std::vector<T> values;
    const auto count = get<uint32_t>();
    is_valid_ = is_valid_ && bytes_.size() / sizeof(T) >= count;
    if (is_valid_) values.reserve(count);
    for (uint32_t i = 0; i < count && is_valid_; ++i) values.push_back(get<T>());
    return values;
  }
  // Empty if there are fewer, which is not valid.
  std::span<const std::byte> take(size_t count) {
    is_valid_ = is_valid_ && count <= bytes_.size();
    if (!is_valid_) return {};
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  void fail() { is_valid_ = false; }
  bool is_valid() const { return is_valid_; }
  bool is_at_end() const { return is_valid_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool is_valid_ = true;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_RECORD_BYTES_H_
