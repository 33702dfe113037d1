#include "answer/personal/storage/user_records.h"

#include <string>
#include <utility>

#include "answer/personal/items/item_input.h"
#include "answer/personal/storage/record_bytes.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

constexpr uint32_t kRecordFormat = 3;
constexpr uint32_t kUserFormat = 4;
constexpr uint32_t kRecordWithItemsFormat = 5;
constexpr uint32_t kItemFormat = 6;
constexpr uint32_t kCopyFormat = 7;
constexpr uint32_t kUserOfGenerationFormat = 8;

void put(const KnownItem& item, RecordWriter& writer) {
  writer.put(item.item);
  writer.put(static_cast<uint32_t>(item.input->size()));
  writer.append(std::as_bytes(std::span(*item.input)));
}

// Its input is one, or the record is not valid.
KnownItem get_item(RecordReader& reader) {
  KnownItem known{.item = reader.get<uint64_t>(), .input = nullptr};
  const auto size = reader.get<uint32_t>();
  const std::span<const std::byte> bytes = reader.take(size);
  if (!reader.is_valid()) return known;
  std::string input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!decode_input(input)) reader.fail();
  known.input = std::make_shared<const std::string>(std::move(input));
  return known;
}

}  // namespace

std::vector<std::byte> encode_record(uint64_t user, std::span<const UserObservation> observations,
                                     std::span<const KnownItem> items) {
  std::vector<std::byte> record;
  record.reserve(16 + 24 * observations.size());
  RecordWriter writer(record);
  writer.put(items.empty() ? kRecordFormat : kRecordWithItemsFormat);
  writer.put(user);
  writer.put(observations);
  if (items.empty()) return record;
  writer.put(static_cast<uint32_t>(items.size()));
  for (const KnownItem& item : items) put(item, writer);
  return record;
}

std::vector<std::byte> encode_copy(uint64_t user, uint64_t generation, std::span<const UserObservation> observations) {
  std::vector<std::byte> record;
  record.reserve(24 + 24 * observations.size());
  RecordWriter writer(record);
  writer.put(kCopyFormat);
  writer.put(user);
  writer.put(generation);
  writer.put(observations);
  return record;
}

UserDigest digest_of(uint64_t user, uint64_t generation, std::span<const UserObservation> observations) {
  UserDigest digest{.user = user, .generation = generation, .observations = observations.size()};
  // Sums do not depend on the order.
  for (const UserObservation& one : observations) digest.hash += hash64(std::as_bytes(std::span(&one.id, 1)));
  return digest;
}

std::optional<UserRecord> decode_record(std::span<const std::byte> record) {
  RecordReader reader(record);
  const auto format = reader.get<uint32_t>();
  if (format != kRecordFormat && format != kRecordWithItemsFormat && format != kCopyFormat) return std::nullopt;
  UserRecord result;
  result.user = reader.get<uint64_t>();
  if (format == kCopyFormat) result.generation = reader.get<uint64_t>();
  result.observations = reader.observations();
  const uint32_t items = format == kRecordWithItemsFormat ? reader.get<uint32_t>() : 0;
  for (uint32_t i = 0; i < items && reader.is_valid(); ++i) result.items.push_back(get_item(reader));
  return reader.is_at_end() ? std::optional(std::move(result)) : std::nullopt;
}

void encode_item(const KnownItem& item, std::vector<std::byte>& piece) {
  RecordWriter writer(piece);
  writer.put(kItemFormat);
  put(item, writer);
}

std::optional<KnownItem> decode_item(std::span<const std::byte> piece) {
  RecordReader reader(piece);
  if (reader.get<uint32_t>() != kItemFormat) return std::nullopt;
  KnownItem item = get_item(reader);
  return reader.is_at_end() ? std::optional(std::move(item)) : std::nullopt;
}

// Once weights stood behind the observations: the fingerprint of their version, and how many there are.
void encode_user(const ObservationTable::User& user, std::vector<std::byte>& piece) {
  RecordWriter writer(piece);
  writer.put(user.generation == 0 ? kUserFormat : kUserOfGenerationFormat);
  writer.put(user.id);
  if (user.generation > 0) writer.put(user.generation);
  writer.put(user.first_number);
  writer.put(user.number);
  writer.put(std::span(user.observations));
  writer.put(uint64_t{0});
  writer.put(uint32_t{0});
}

std::optional<ObservationTable::User> decode_user(std::span<const std::byte> piece) {
  RecordReader reader(piece);
  const auto format = reader.get<uint32_t>();
  if (format != kUserFormat && format != kUserOfGenerationFormat) return std::nullopt;
  ObservationTable::User user;
  user.id = reader.get<uint64_t>();
  if (format == kUserOfGenerationFormat) user.generation = reader.get<uint64_t>();
  user.first_number = reader.get<uint64_t>();
  user.number = reader.get<uint64_t>();
  user.observations = reader.observations();
  reader.get<uint64_t>();
  const auto weights = reader.get<uint32_t>();
  reader.take(uint64_t{weights} * sizeof(float));
  return reader.is_at_end() ? std::optional(std::move(user)) : std::nullopt;
}

}  // namespace foliot
