#include "personal/user_records.h"

#include <cstring>

namespace foliot {
namespace {

constexpr uint32_t kRecordFormat = 1;
constexpr uint32_t kUserFormat = 2;

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& bytes) : bytes_(bytes) { bytes_.clear(); }
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
    }
  }

 private:
  std::vector<std::byte>& bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
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
      all.push_back(observation);
    }
    return all;
  }
  bool is_valid() const { return is_valid_; }
  bool is_at_end() const { return is_valid_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool is_valid_ = true;
};

}  // namespace

std::vector<std::byte> encode_record(uint64_t user, std::span<const UserObservation> observations) {
  std::vector<std::byte> record;
  record.reserve(16 + 20 * observations.size());
  Writer writer(record);
  writer.put(kRecordFormat);
  writer.put(user);
  writer.put(observations);
  return record;
}

std::optional<UserRecord> decode_record(std::span<const std::byte> record) {
  Reader reader(record);
  if (reader.get<uint32_t>() != kRecordFormat) return std::nullopt;
  UserRecord result;
  result.user = reader.get<uint64_t>();
  result.observations = reader.observations();
  return reader.is_at_end() ? std::optional(std::move(result)) : std::nullopt;
}

void encode_user(const UserTable::Stored& user, uint64_t items_checksum, std::vector<std::byte>& piece) {
  Writer writer(piece);
  writer.put(kUserFormat);
  writer.put(user.user);
  writer.put(user.number);
  writer.put(std::span(user.observations));
  writer.put(items_checksum);
  writer.put(static_cast<uint32_t>(user.weights.size()));
  for (const float weight : user.weights) writer.put(weight);
}

std::optional<UserTable::Stored> decode_user(std::span<const std::byte> piece, uint64_t items_checksum) {
  Reader reader(piece);
  if (reader.get<uint32_t>() != kUserFormat) return std::nullopt;
  UserTable::Stored user;
  user.user = reader.get<uint64_t>();
  user.number = reader.get<uint64_t>();
  user.observations = reader.observations();
  const bool are_of_these_items = reader.get<uint64_t>() == items_checksum;
  const auto count = reader.get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.is_valid(); ++i) user.weights.push_back(reader.get<float>());
  if (!reader.is_at_end()) return std::nullopt;
  if (!are_of_these_items) user.weights.clear();
  return user;
}

}  // namespace foliot
