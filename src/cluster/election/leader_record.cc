#include "cluster/election/leader_record.h"

#include <fmt/format.h>

#include <charconv>

#include "foundation/base/escaped_text.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

constexpr size_t kQuotedBytesMax = 80;

}  // namespace

// The instance is text, since readers of JSON may round numbers beyond 2^53.
std::string LeaderRecord::text() const {
  return nlohmann::json{{"address", address},
                        {"epoch", epoch},
                        {"instance", std::to_string(instance)},
                        {"renewal", renewal},
                        {"serves", serves}}
      .dump();
}

Result<LeaderRecord> LeaderRecord::parse(std::string_view text) {
  const auto foreign = [&] {
    return Status::invalid_argument(fmt::format("{} is no record of a leader; name a key that nothing else uses",
                                                in_quotes(text.substr(0, kQuotedBytesMax))));
  };
  const auto json = parse_bounded_json(text);
  if (!json.ok() || !json->is_object()) return foreign();
  LeaderRecord record;
  const auto number = [&](const char* name, uint64_t& value) {
    const auto found = json->find(name);
    if (found == json->end() || !found->is_number_unsigned()) return false;
    value = found->get<uint64_t>();
    return true;
  };
  const auto address = json->find("address");
  const auto instance = json->find("instance");
  if (!number("epoch", record.epoch) || !number("renewal", record.renewal) || record.epoch == 0 ||
      record.epoch > kEpochMax || address == json->end() || !address->is_string() || instance == json->end() ||
      !instance->is_string()) {
    return foreign();
  }
  record.address = address->get<std::string>();
  record.serves = json->value("serves", nlohmann::json(true)) != nlohmann::json(false);
  const std::string digits = instance->get<std::string>();
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), record.instance);
  if (error != std::errc() || end != digits.data() + digits.size()) return foreign();
  return record;
}

}  // namespace foliot
