#include "node/server/shared_calls.h"

#include <string>
#include <string_view>
#include <utility>

#include "foundation/core/request.h"

namespace foliot {
namespace {

constexpr uint8_t kAnswer = 0;
constexpr uint8_t kError = 1;
constexpr size_t kObservationBytes = 4 * sizeof(uint64_t);
constexpr size_t kSlotBytes = 2 * sizeof(uint64_t) + sizeof(float) + 1;

void put(WireWriter& writer, const std::vector<uint64_t>& numbers) {
  writer.put(static_cast<uint32_t>(numbers.size()));
  for (const uint64_t number : numbers) writer.put(number);
}

void get(WireReader& reader, std::vector<uint64_t>& numbers) {
  numbers.resize(reader.get_count(sizeof(uint64_t)));
  for (uint64_t& number : numbers) reader.get(number);
}

void put(WireWriter& writer, const std::optional<Duration>& duration) {
  writer.put(static_cast<uint8_t>(duration.has_value()));
  writer.put(duration.value_or(Duration()));
}

void get(WireReader& reader, std::optional<Duration>& duration) {
  bool given = false;
  Duration value;
  reader.get(given);
  reader.get(value);
  if (given) duration = value;
}

void put(WireWriter& writer, const PersonalList& list) {
  writer.put(list.query);
  writer.put(static_cast<uint32_t>(list.slots.size()));
  for (const PersonalSlot& slot : list.slots) {
    writer.put(slot.item);
    writer.put(slot.score);
    writer.put(static_cast<uint8_t>(slot.is_drawn));
    writer.put(slot.probability);
  }
}

void get(WireReader& reader, PersonalList& list) {
  reader.get(list.query);
  list.slots.resize(reader.get_count(kSlotBytes));
  for (PersonalSlot& slot : list.slots) {
    reader.get(slot.item);
    reader.get(slot.score);
    reader.get(slot.is_drawn);
    reader.get(slot.probability);
  }
}

// A view that lasts: names of refusals are constants.
std::string_view reason_named(std::string_view name) {
  for (uint8_t i = 1; i <= static_cast<uint8_t>(kRefusalLast); ++i) {
    const std::string_view known = to_string(static_cast<Refusal>(i));
    if (known == name) return known;
  }
  return {};
}

}  // namespace

WireBytes encode(const SharedCall& call) {
  WireBytes bytes;
  WireWriter writer(bytes);
  writer.put(call.method);
  writer.put(call.k);
  put(writer, call.items);
  writer.put(static_cast<uint32_t>(call.observations.size()));
  for (const ItemObservation& observation : call.observations) {
    writer.put(observation.item);
    writer.put(observation.value);
    writer.put(observation.id);
    writer.put(observation.query);
  }
  return bytes;
}

std::optional<SharedCall> decode_shared_call(uint64_t user, std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  SharedCall call;
  reader.get(call.method, SharedMethod::kForget);
  reader.get(call.k);
  get(reader, call.items);
  call.observations.resize(reader.get_count(kObservationBytes));
  for (ItemObservation& observation : call.observations) {
    observation.user = user;
    reader.get(observation.item);
    reader.get(observation.value);
    reader.get(observation.id);
    reader.get(observation.query);
  }
  return reader.complete() ? std::optional(std::move(call)) : std::nullopt;
}

WireBytes encode(const PersonalResult& result) {
  WireBytes bytes;
  WireWriter writer(bytes);
  if (const auto* const error = std::get_if<CallError>(&result)) {
    writer.put(kError);
    writer.put(static_cast<uint32_t>(error->http_status));
    writer.put(static_cast<int32_t>(error->grpc_code));
    writer.put(std::string_view(error->message));
    writer.put(error->reason);
    put(writer, error->earliest_completion);
    put(writer, error->retry_after);
    return bytes;
  }
  const auto& answer = std::get<PersonalAnswer>(result);
  writer.put(kAnswer);
  writer.put(std::string_view(answer.version));
  writer.put(static_cast<uint32_t>(answer.predictions.size()));
  for (const float prediction : answer.predictions) writer.put(prediction);
  writer.put(static_cast<uint32_t>(answer.lists.size()));
  for (const PersonalList& list : answer.lists) put(writer, list);
  return bytes;
}

std::optional<PersonalResult> decode_shared_result(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  uint8_t kind = kAnswer;
  reader.get(kind);
  if (kind == kError) {
    CallError error;
    uint32_t http_status = 0;
    int32_t grpc_code = 0;
    std::string reason;
    reader.get(http_status);
    reader.get(grpc_code);
    reader.get(error.message);
    reader.get(reason);
    get(reader, error.earliest_completion);
    get(reader, error.retry_after);
    error.http_status = http_status;
    error.grpc_code = static_cast<GrpcCode>(grpc_code);
    error.reason = reason_named(reason);
    return reader.complete() ? std::optional<PersonalResult>(std::move(error)) : std::nullopt;
  }
  PersonalAnswer answer;
  reader.get(answer.version);
  answer.predictions.resize(reader.get_count(sizeof(float)));
  for (float& prediction : answer.predictions) reader.get(prediction);
  answer.lists.resize(reader.get_count(sizeof(uint64_t) + sizeof(uint32_t)));
  for (PersonalList& list : answer.lists) get(reader, list);
  return reader.complete() && kind == kAnswer ? std::optional<PersonalResult>(std::move(answer)) : std::nullopt;
}

}  // namespace foliot
