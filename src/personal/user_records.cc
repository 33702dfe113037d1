#include "personal/user_records.h"

#include <cstring>

namespace foliot {
namespace {

constexpr uint32_t kRecordFormat = 3;
constexpr uint32_t kUserFormat = 4;

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
      put(observation.probability);
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
      observation.probability = get<float>();
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
  record.reserve(16 + 24 * observations.size());
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

void encode_user(const ObservationTable::User& user, std::span<const float> weights, uint64_t fingerprint,
                 std::vector<std::byte>& piece) {
  Writer writer(piece);
  writer.put(kUserFormat);
  writer.put(user.id);
  writer.put(user.first_number);
  writer.put(user.number);
  writer.put(std::span(user.observations));
  writer.put(fingerprint);
  writer.put(static_cast<uint32_t>(weights.size()));
  for (const float weight : weights) writer.put(weight);
}

std::optional<StoredUser> decode_user(std::span<const std::byte> piece, uint64_t fingerprint) {
  Reader reader(piece);
  if (reader.get<uint32_t>() != kUserFormat) return std::nullopt;
  StoredUser stored;
  stored.user.id = reader.get<uint64_t>();
  stored.user.first_number = reader.get<uint64_t>();
  stored.user.number = reader.get<uint64_t>();
  stored.user.observations = reader.observations();
  const bool is_of_this_version = reader.get<uint64_t>() == fingerprint;
  const auto count = reader.get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.is_valid(); ++i) stored.weights.push_back(reader.get<float>());
  if (!reader.is_at_end()) return std::nullopt;
  if (!is_of_this_version) stored.weights.clear();
  return stored;
}

}  // namespace foliot
