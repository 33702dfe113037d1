#include "app/commands/top_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/commands/exit_code.h"
#include "app/commands/server_call.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "observe/monitor/feed.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

constexpr auto kTopInterval = std::chrono::seconds(1);
constexpr size_t kTopModelsMax = 40;
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

struct TopFlags {
  ServerPlace server{.url = "localhost:8002"};
  bool once = false;
  bool json = false;
};

struct TopCounts {
  uint64_t served = 0;
  uint64_t refused = 0;  // or late
};

TopCounts counts_of(const Json& outcomes) {
  TopCounts counts;
  for (const auto& [outcome, count] : outcomes.items()) {
    (outcome == "served" ? counts.served : counts.refused) += count.get<uint64_t>();
  }
  return counts;
}

// Counts of one answer, by model.
struct TopSample {
  double at_seconds = 0;
  std::string process;
  TopCounts all;
  std::map<std::string, TopCounts> models;
};

TopSample sample_of(const Json& answer) {
  TopSample sample{.at_seconds = answer.at("now").get<double>() * 1e-9,
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

std::string share(TopCounts counts) {
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

std::string models_text(const Json& answer, const TopSample& now, const TopSample* before) {
  const double seconds = before == nullptr ? 0 : now.at_seconds - before->at_seconds;
  const auto latencies = latencies_of(answer);
  std::string text =
      fmt::format("{:<32} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}\n", "MODEL", "IN TIME", "REFUSED",
                  "ATTAINED", "IN TIME/s", "REFUSED/s", "P50 ms", "P99 ms", "WAITING", "COPIES");
  size_t shown = 0;
  for (const Json& model : answer.at("models")) {
    if (++shown > kTopModelsMax) break;
    const std::string name = model.at("name").get<std::string>();
    const TopCounts counts = now.models.at(name);
    std::optional<TopCounts> earlier;
    if (before != nullptr) earlier = before->models.contains(name) ? before->models.at(name) : TopCounts();
    const auto sorted = latencies.contains(name) ? latencies.at(name) : std::vector<double>();
    fmt::format_to(std::back_inserter(text), "{:<32} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}\n",
                   escaped(name), counts.served, counts.refused, share(counts),
                   rate(earlier ? std::optional(earlier->served) : std::nullopt, counts.served, seconds),
                   rate(earlier ? std::optional(earlier->refused) : std::nullopt, counts.refused, seconds),
                   quantile_ms(sorted, 0.5), quantile_ms(sorted, 0.99), model.at("waiting").get<uint64_t>(),
                   model.at("copies").get<uint64_t>());
  }
  const uint64_t hidden = answer.at("models").size() - std::min(answer.at("models").size(), kTopModelsMax) +
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

std::string top_text(const Json& answer, const TopSample& now, const TopSample* before) {
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

// Until it is interrupted, or once.
Status top(const TopFlags& flags) {
  std::string next;
  std::optional<TopSample> before;
  for (;;) {
    FOLIOT_ASSIGN_OR_RETURN(const std::string body,
                            ask_server(flags.server, {.path = "/monitor/feed?since=" + next, .headers = {}}));
    const Json answer = Json::parse(body, nullptr, false);
    if (!answer.is_object() || answer.value("version", 0) != MonitorFeed::kVersion) {
      return Status::unavailable(fmt::format(
          "{} has no monitor feed of version {}: give the metrics port of `foliot serve` or `foliot controller`",
          flags.server.url, MonitorFeed::kVersion));
    }
    TopSample now = sample_of(answer);
    if (before && before->process != now.process) before.reset();
    const std::string text = flags.json ? body + '\n' : top_text(answer, now, before ? &*before : nullptr);
    fmt::print("{}{}", !flags.json && !flags.once && isatty(STDOUT_FILENO) == 1 ? kClearScreen : "", text);
    std::fflush(stdout);
    if (flags.once) return Status();
    before = std::move(now);
    next = answer.at("next").get<std::string>();
    std::this_thread::sleep_for(kTopInterval);
  }
}

// What is no feed may have any shape.
Status run(const TopFlags& flags) {
  try {
    return top(flags);
  } catch (const Json::exception& error) {
    return Status::unavailable(
        fmt::format("{} answers with another feed than this version reads: {}", flags.server.url, error.what()));
  }
}

}  // namespace

void add_top_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("top", "Show what a running server does, once a second");
  command->footer(
      "Reads the feed of the monitor page, at the metrics port of `foliot serve` or `foliot controller`. Counts are "
      "of\n"
      "all since that process began; rates of the last second; quantiles of the requests that the answer lists.\n\n"
      "  foliot top                            of localhost:8002\n"
      "  foliot top --once controller:8102\n"
      "  foliot top --once --json | jq .models");
  auto flags = std::make_shared<TopFlags>();
  command->add_option("url,--url", flags->server.url, "metrics port of the server, HOST:PORT")->capture_default_str();
  command->add_option("--key-file", flags->server.key_file, "file with the API key")->type_name("FILE");
  command->add_flag("--once", flags->once, "show it once");
  command->add_flag("--json", flags->json, "print the feed's answers, one in each line");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot top: {}\n", status.message());
    exit_code = status.ok() ? 0 : kExitFailed;
  });
}

}  // namespace foliot
