#include "personal/stored_user.h"

#include <utility>

#include "personal/record_bytes.h"

namespace foliot {
namespace {

constexpr uint32_t kValueFormat = 1;
constexpr uint32_t kNoteFormat = 1;

void put(const KeptWeights& kept, RecordWriter& writer) {
  writer.put(kept.settled);
  writer.put(kept.loss.count());
  writer.put(kept.loss.mean());
  writer.put(kept.loss.recent());
  writer.put_all(std::span(kept.weights));
}

KeptWeights get_weights(RecordReader& reader) {
  KeptWeights kept{.settled = reader.get<uint32_t>()};
  const auto count = reader.get<uint64_t>();
  const auto mean = reader.get<double>();
  kept.loss = RunningLoss(count, mean, reader.get<double>());
  kept.weights = reader.all<float>();
  return kept;
}

}  // namespace

std::vector<std::byte> encode_value(const UserValue& value) {
  std::vector<std::byte> bytes;
  RecordWriter writer(bytes);
  writer.put(kValueFormat);
  writer.put(value.user.id);
  writer.put(value.user.first_number);
  writer.put(value.user.number);
  writer.put(value.user.generation);
  writer.put(std::span(value.user.observations));
  writer.put(static_cast<uint32_t>(value.tables.size()));
  for (const UserValue::OfTable& of : value.tables) {
    writer.put(of.table);
    writer.put(of.start);
    put(of.kept, writer);
  }
  return bytes;
}

Result<UserValue> decode_value(uint64_t user, std::span<const std::byte> bytes) {
  const Status other = Status::internal("a value in the store of users is of another format");
  RecordReader reader(bytes);
  if (reader.get<uint32_t>() != kValueFormat) return other;
  UserValue value;
  value.user.id = reader.get<uint64_t>();
  value.user.first_number = reader.get<uint64_t>();
  value.user.number = reader.get<uint64_t>();
  value.user.generation = reader.get<uint64_t>();
  value.user.is_used = true;
  value.user.observations = reader.observations();
  const auto count = reader.get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.is_valid(); ++i) {
    UserValue::OfTable of{.table = reader.get<uint64_t>()};
    of.start = reader.get<uint64_t>();
    of.kept = get_weights(reader);
    value.tables.push_back(std::move(of));
  }
  if (!reader.is_at_end() || value.user.id != user) return other;
  return value;
}

std::vector<std::byte> encode_note(const UserNote& note) {
  std::vector<std::byte> bytes;
  RecordWriter writer(bytes);
  writer.put(kNoteFormat);
  writer.put(note.salt);
  writer.put(note.number);
  writer.put(note.users);
  writer.put(note.start);
  writer.put(static_cast<uint8_t>(note.counts_items ? 1 : 0));
  writer.put(note.fingerprint);
  writer.put(note.table);
  writer.put(note.mean.users());
  writer.put_all(note.mean.sums());
  writer.put(static_cast<uint32_t>(note.pool.size()));
  for (const UserNote::PoolPlace& place : note.pool) {
    writer.put(place.user);
    writer.put(place.first_number);
    writer.put(place.index);
  }
  writer.put_all(std::span(note.forgotten));
  return bytes;
}

std::optional<UserNote> decode_note(std::span<const std::byte> bytes) {
  RecordReader reader(bytes);
  if (reader.get<uint32_t>() != kNoteFormat) return std::nullopt;
  UserNote note;
  note.salt = reader.get<uint64_t>();
  note.number = reader.get<uint64_t>();
  note.users = reader.get<uint64_t>();
  note.start = reader.get<uint64_t>();
  note.counts_items = reader.get<uint8_t>() != 0;
  note.fingerprint = reader.get<uint64_t>();
  note.table = reader.get<uint64_t>();
  const auto users = reader.get<uint64_t>();
  note.mean = RunningMean(reader.all<double>(), users);
  const auto count = reader.get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.is_valid(); ++i) {
    UserNote::PoolPlace place{.user = reader.get<uint64_t>()};
    place.first_number = reader.get<uint64_t>();
    place.index = reader.get<uint64_t>();
    note.pool.push_back(place);
  }
  note.forgotten = reader.all<uint64_t>();
  return reader.is_at_end() ? std::optional(std::move(note)) : std::nullopt;
}

}  // namespace foliot
