#include "node/server/shared_retraining.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <utility>

namespace foliot {
namespace {

// Longer than UserShards waits for an answer.
constexpr std::chrono::seconds kAnswerMax{11};

// What the loop's thread gives; nullopt: it does not answer.
template <typename T>
std::optional<T> from_loop(HomeLinks& links, std::function<void(std::function<void(T)> give, TimePoint now)> ask) {
  auto given = std::make_shared<std::promise<T>>();
  std::future<T> answer = given->get_future();
  links.post([ask = std::move(ask), given](TimePoint now) {
    ask([given](T value) { given->set_value(std::move(value)); }, now);
  });
  if (answer.wait_for(kAnswerMax) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace

std::optional<std::vector<std::string>> SharedRetraining::led() {
  using Led = std::optional<std::vector<std::string>>;
  return from_loop<Led>(links_, [this](const auto& give, TimePoint /*now*/) { give(shards_.led()); }).value_or(Led());
}

Result<ShardStore::Exported> SharedRetraining::ask(const std::string& peer, HomeCallKind kind, const std::string& model,
                                                   uint64_t pass) {
  using Given = std::optional<ShardStore::Exported>;
  const std::optional<Given> answer = from_loop<Given>(links_, [=, this](const auto& give, TimePoint now) {
    shards_.ask_for_training(peer, kind, model, pass, give, now);
  });
  if (answer && *answer) return **answer;
  return Status::unavailable(fmt::format(
      "front end '{}' does not give the users that it keeps: it cannot be reached, or users are being moved", peer));
}

Result<RetrainPeers::Facts> SharedRetraining::facts(const std::string& peer, const std::string& model) {
  FOLIOT_ASSIGN_OR_RETURN(const ShardStore::Exported answer, ask(peer, HomeCallKind::kFacts, model, 0));
  std::optional<Facts> facts = decode_retrain_facts(answer.copies);
  if (facts) return *std::move(facts);
  return Status::unavailable(fmt::format("front end '{}' does not serve '{}'", peer, model));
}

Result<RetrainPeers::Copies> SharedRetraining::copies(const std::string& peer, const std::string& model,
                                                      uint64_t pass) {
  FOLIOT_ASSIGN_OR_RETURN(const ShardStore::Exported answer, ask(peer, HomeCallKind::kExport, model, pass));
  std::optional<std::vector<std::vector<std::byte>>> copies = decode_copies(answer.copies);
  if (copies) return Copies{.copies = *std::move(copies), .pass = answer.pass};
  return Status::internal(fmt::format("front end '{}' has sent copies of users that cannot be read", peer));
}

WireBytes encode(const RetrainPeers::Facts& facts) {
  WireBytes bytes;
  WireWriter writer(bytes);
  writer.put(std::string_view(facts.version));
  writer.put(std::string_view(facts.quality));
  writer.put(facts.observations);
  writer.put(facts.of_version);
  return bytes;
}

std::optional<RetrainPeers::Facts> decode_retrain_facts(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  RetrainPeers::Facts facts;
  reader.get(facts.version);
  reader.get(facts.quality);
  reader.get(facts.observations);
  reader.get(facts.of_version);
  return reader.complete() ? std::optional(std::move(facts)) : std::nullopt;
}

WireBytes encode(const std::vector<std::vector<std::byte>>& copies) {
  WireBytes bytes;
  WireWriter writer(bytes);
  writer.put(static_cast<uint32_t>(copies.size()));
  for (const std::vector<std::byte>& copy : copies) writer.put(std::span<const std::byte>(copy));
  return bytes;
}

std::optional<std::vector<std::vector<std::byte>>> decode_copies(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  std::vector<std::vector<std::byte>> copies(reader.get_count(sizeof(uint64_t)));
  for (std::vector<std::byte>& copy : copies) {
    std::span<const std::byte> one;
    reader.get(one);
    copy.assign(one.begin(), one.end());
  }
  return reader.complete() ? std::optional(std::move(copies)) : std::nullopt;
}

}  // namespace foliot
