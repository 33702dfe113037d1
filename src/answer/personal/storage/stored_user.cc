#include "answer/personal/storage/stored_user.h"

#include <utility>

#include "answer/personal/storage/record_bytes.h"

namespace foliot {
namespace {

constexpr uint32_t kValueFormat = 2;
constexpr uint32_t kNoteFormat = 2;

void put(const KeptWeights& kept, RecordWriter& writer) {
  writer.put(kept.settled);
  writer.put(kept.revision);
  writer.put(kept.loss.count());
  writer.put(kept.loss.mean());
  writer.put(kept.loss.recent());
  writer.put_all(std::span(kept.weights));
}

KeptWeights get_weights(RecordReader& reader) {
  KeptWeights kept{.settled = reader.get<uint32_t>()};
  kept.revision = reader.get<uint64_t>();
  const auto count = reader.get<uint64_t>();
  const auto mean = reader.get<double>();
  kept.loss = RunningLoss(count, mean, reader.get<double>());
  kept.weights = reader.all<float>();
  return kept;
}

void put(const Population::Bins& bins, RecordWriter& writer) {
  writer.put(static_cast<uint32_t>(bins.size()));
  for (const auto& [bin, count] : bins) {
    writer.put(bin);
    writer.put(count);
  }
}

Population::Bins get_bins(RecordReader& reader) {
  Population::Bins bins;
  const auto size = reader.get<uint32_t>();
  for (uint32_t i = 0; i < size && reader.is_valid(); ++i) {
    const auto bin = reader.get<int32_t>();
    bins[bin] = reader.get<uint64_t>();
  }
  return bins;
}

void put(const Population::State& state, RecordWriter& writer) {
  writer.put(state.level);
  for (const uint64_t users : state.users) writer.put(users);
  put(state.lows, writer);
  put(state.highs, writer);
  writer.put(static_cast<uint32_t>(state.sampled.size()));
  for (const auto& [user, sampled] : state.sampled) {
    writer.put(user);
    writer.put_all(std::span(sampled.items));
    writer.put_all(std::span(sampled.values));
  }
}

Population::State get_population(RecordReader& reader) {
  Population::State state{.level = reader.get<uint32_t>()};
  uint64_t users = 0;
  for (uint64_t& each : state.users) users += each = reader.get<uint64_t>();
  state.lows = get_bins(reader);
  state.highs = get_bins(reader);
  const auto size = reader.get<uint32_t>();
  for (uint32_t i = 0; i < size && reader.is_valid(); ++i) {
    Population::Sampled& sampled = state.sampled[reader.get<uint64_t>()];
    sampled.items = reader.all<uint64_t>();
    sampled.values = reader.all<float>();
    if (sampled.items.size() != sampled.values.size()) reader.fail();
  }
  const auto has_all = [users](const Population::Bins& bins) {
    uint64_t count = 0;
    for (const auto& [bin, in_it] : bins) count += in_it;
    return count == users;
  };
  if (!has_all(state.lows) || !has_all(state.highs)) reader.fail();
  return state;
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
  put(note.population, writer);
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
  note.population = get_population(reader);
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
