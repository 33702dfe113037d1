#include "observe/monitor/feed_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "observe/monitor/feed.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

constexpr size_t kModelsShownMax = 40;

}  // namespace

struct FeedCounts {
  uint64_t served = 0;
  uint64_t refused = 0;  // or late
};

// Counts of one answer, by model.
struct FeedSample {
  double at_seconds = 0;
  std::string process;
  FeedCounts all;
  std::map<std::string, FeedCounts> models;
};

namespace {

FeedCounts counts_of(const Json& outcomes) {
  FeedCounts counts;
  for (const auto& [outcome, count] : outcomes.items()) {
    (outcome == "served" ? counts.served : counts.refused) += count.get<uint64_t>();
  }
  return counts;
}

FeedSample sample_of(const Json& answer) {
  FeedSample sample{.at_seconds = answer.at("now").get<double>() * 1e-9,
                    .process = answer.at("process").get<std::string>(),
                    .all = counts_of(answer.at("outcomes")),
                    .models = {}};
  for (const Json& model : answer.at("models")) {
    sample.models[model.at("name").get<std::string>()] = counts_of(model.at("outcomes"));
  }
  return sample;
}

// "12.3/s" between two samples; "-" without the first.
std::string rate(std::optional<uint64_t> before, uint64_t now, double seconds) {
  return !before || seconds <= 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(now - *before) / seconds);
}

std::string share(FeedCounts counts) {
  const uint64_t all = counts.served + counts.refused;
  return all == 0 ? "-"
                  : fmt::format("{:.1f} %", 100.0 * static_cast<double>(counts.served) / static_cast<double>(all));
}

std::string quantile_ms(const std::vector<double>& sorted, double share_below) {
  if (sorted.empty()) return "-";
  const auto at = static_cast<size_t>(share_below * static_cast<double>(sorted.size()));
  return fmt::format("{:.1f}", sorted[std::min(at, sorted.size() - 1)]);
}

// Of what the answer has, in ms.
std::map<std::string, std::vector<double>> latencies_of(const Json& answer) {
  std::map<std::string, std::vector<double>> latencies;
  for (const Json& request : answer.at("requests")) {
    if (request.at("outcome") != "served") continue;
    const double took = request.at("finished").get<double>() - request.at("arrival").get<double>();
    latencies[request.at("model").get<std::string>()].push_back(took * 1e-6);
  }
  for (auto& [model, sorted] : latencies) std::ranges::sort(sorted);
  return latencies;
}

std::string models_text(const Json& answer, const FeedSample& now, const FeedSample* before) {
  const double seconds = before == nullptr ? 0 : now.at_seconds - before->at_seconds;
  const auto latencies = latencies_of(answer);
  std::string text =
      fmt::format("{:<32} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}\n", "MODEL", "IN TIME", "REFUSED",
                  "ATTAINED", "IN TIME/s", "REFUSED/s", "P50 ms", "P99 ms", "WAITING", "COPIES");
  size_t shown = 0;
  for (const Json& model : answer.at("models")) {
    if (++shown > kModelsShownMax) break;
    const std::string name = model.at("name").get<std::string>();
    const FeedCounts counts = now.models.at(name);
    std::optional<FeedCounts> earlier;
    if (before != nullptr) earlier = before->models.contains(name) ? before->models.at(name) : FeedCounts();
    const auto sorted = latencies.contains(name) ? latencies.at(name) : std::vector<double>();
    fmt::format_to(std::back_inserter(text), "{:<32} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}\n",
                   escaped(name), counts.served, counts.refused, share(counts),
                   rate(earlier ? std::optional(earlier->served) : std::nullopt, counts.served, seconds),
                   rate(earlier ? std::optional(earlier->refused) : std::nullopt, counts.refused, seconds),
                   quantile_ms(sorted, 0.5), quantile_ms(sorted, 0.99), model.at("waiting").get<uint64_t>(),
                   model.at("copies").get<uint64_t>());
  }
  const uint64_t hidden = answer.at("models").size() - std::min(answer.at("models").size(), kModelsShownMax) +
                          answer.at("models_left_out").get<uint64_t>();
  if (hidden > 0) fmt::format_to(std::back_inserter(text), "and {} further models\n", hidden);
  return text;
}

std::string devices_text(const Json& answer) {
  std::string text = fmt::format("{:<6} {:<20} {:<18} {:>5} {:>14} {:>6} {:>7}\n", "DEVICE", "KIND", "STATE", "LANES",
                                 "PAGES USED", "MODELS", "ACTIONS");
  for (const Json& device : answer.at("devices")) {
    const std::string trouble = device.at("trouble").get<std::string>();
    fmt::format_to(std::back_inserter(text), "{:<6} {:<20} {:<18} {:>5} {:>14} {:>6} {:>7}\n",
                   device.at("id").get<uint64_t>(), escaped(device.at("kind").get<std::string>()),
                   device.at("state").get<std::string>() + (trouble == "none" ? "" : ": " + trouble),
                   device.at("lanes").get<uint64_t>(),
                   fmt::format("{} of {}", device.at("pages_used").get<uint64_t>(), device.at("pages").get<uint64_t>()),
                   device.at("residents").get<uint64_t>(), device.at("actions").get<uint64_t>());
  }
  return text;
}

std::string all_text(const Json& answer, const FeedSample& now, const FeedSample* before) {
  const double seconds = before == nullptr ? 0 : now.at_seconds - before->at_seconds;
  std::optional<uint64_t> served, refused;
  if (before != nullptr) {
    served = before->all.served;
    refused = before->all.refused;
  }
  std::string text = fmt::format("up {}   in time {} ({}/s)   refused {} ({}/s)   attained {}\n",
                                 format_duration(Duration::seconds(static_cast<int64_t>(now.at_seconds))),
                                 now.all.served, rate(served, now.all.served, seconds), now.all.refused,
                                 rate(refused, now.all.refused, seconds), share(now.all));
  if (now.all.refused > 0) {
    text += "refused:";
    for (const auto& [reason, count] : answer.at("outcomes").items()) {
      if (reason != "served") fmt::format_to(std::back_inserter(text), " {} {}", reason, count.get<uint64_t>());
    }
    text += '\n';
  }
  return text + '\n' + models_text(answer, now, before) + '\n' + devices_text(answer);
}

}  // namespace

FeedText::FeedText() = default;
FeedText::~FeedText() = default;

Result<std::string> FeedText::show(const std::string& body) {
  const Json answer = Json::parse(body, nullptr, false);
  if (!answer.is_object()) return Status::invalid_argument("it is no object");
  try {
    if (answer.value("version", 0) != MonitorFeed::kVersion) return Status::invalid_argument("it has another version");
    auto now = std::make_unique<FeedSample>(sample_of(answer));
    if (before_ != nullptr && before_->process != now->process) before_.reset();
    std::string text = all_text(answer, *now, before_.get());
    next_ = answer.at("next").get<std::string>();
    before_ = std::move(now);
    return text;
  } catch (const Json::exception& error) {
    return Status::invalid_argument(error.what());
  }
}

}  // namespace foliot
