#include "load/workload/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Error texts come from outside; only so many different ones are counted separately.
constexpr size_t kReasonsMax = 32;
constexpr size_t kReasonLengthMax = 160;
// Of more models than this the text shows the worst ones only; JSON has all.
constexpr size_t kLinesInText = 20;

struct Quantile {
  const char* name;
  double value;
};
constexpr std::array<Quantile, 5> kQuantiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}}};

void count_reason(std::map<std::string, uint64_t>& reasons, std::string_view reason) {
  std::string key(reason.empty() ? "unknown" : reason.substr(0, kReasonLengthMax));
  if (reasons.size() >= kReasonsMax && !reasons.contains(key)) key = "other";
  ++reasons[key];
}

void tally(LoadTally& to, const LoadSample& sample, bool good) {
  ++to.offered;
  if (sample.outcome != LoadOutcome::kUnsent) ++to.sent;
  switch (sample.outcome) {
    case LoadOutcome::kAnswered:
      ++(good ? to.good : to.late);
      to.latency.record(sample.finished - sample.scheduled);
      break;
    case LoadOutcome::kRefused: ++to.refused; break;
    case LoadOutcome::kFailed: ++to.failed; break;
    case LoadOutcome::kUnsent: break;
  }
}

std::string histogram_line(std::string_view name, const Histogram& histogram) {
  std::string line = fmt::format("{:<14}", name);
  for (const Quantile& quantile : kQuantiles) {
    line += fmt::format("{:>10.3f}", histogram.quantile(quantile.value).to_milliseconds());
  }
  return line +
         fmt::format("{:>10.3f}{:>10.3f}\n", histogram.max().to_milliseconds(), histogram.mean().to_milliseconds());
}

nlohmann::ordered_json histogram_json(const Histogram& histogram) {
  nlohmann::ordered_json json{{"count", histogram.count()}};
  for (const Quantile& quantile : kQuantiles) {
    json[quantile.name] = histogram.quantile(quantile.value).to_milliseconds();
  }
  json["max"] = histogram.max().to_milliseconds();
  json["mean"] = histogram.mean().to_milliseconds();
  return json;
}

nlohmann::ordered_json tally_json(const LoadTally& tally) {
  return {{"offered", tally.offered},
          {"sent", tally.sent},
          {"good", tally.good},
          {"late", tally.late},
          {"refused", tally.refused},
          {"failed", tally.failed},
          {"attainment", tally.attainment()}};
}

std::string reasons_line(std::string_view name, const std::map<std::string, uint64_t>& reasons) {
  if (reasons.empty()) return "";
  std::string line = fmt::format("{}:", name);
  for (const auto& [reason, count] : reasons) line += fmt::format("\n  {:>10}  {}", count, reason);
  return line + "\n";
}

std::string tally_line(std::string_view name, const LoadTally& tally) {
  return fmt::format("{:<24}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11.3f}{:>10.3f}{:>10.3f}\n", name, tally.offered,
                     tally.good, tally.late, tally.refused, tally.failed, 100 * tally.attainment(),
                     tally.latency.quantile(0.5).to_milliseconds(), tally.latency.quantile(0.99).to_milliseconds());
}

std::string tally_table(std::string_view what, const std::vector<std::string>& names,
                        const std::vector<LoadTally>& tallies) {
  std::vector<size_t> order(tallies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tallies[a].attainment() < tallies[b].attainment(); });
  std::string text =
      fmt::format("\n{:<24}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}{:>10}{:>10}\n", fmt::format("{} (worst first)", what),
                  "offered", "good", "late", "refused", "failed", "attained %", "p50 ms", "p99 ms");
  for (size_t i = 0; i < std::min(order.size(), kLinesInText); ++i)
    text += tally_line(names[order[i]], tallies[order[i]]);
  if (order.size() > kLinesInText) text += fmt::format("and {} more\n", order.size() - kLinesInText);
  return text;
}

nlohmann::ordered_json named_json(const std::string& name, const LoadTally& tally) {
  nlohmann::ordered_json json{{"name", name}};
  json.update(tally_json(tally));
  json["latency_milliseconds"] = histogram_json(tally.latency);
  return json;
}

}  // namespace

double LoadTally::attainment() const {
  return offered == 0 ? 1 : static_cast<double>(good) / static_cast<double>(offered);
}

LoadReport::LoadReport(LoadReportOptions options)
    : options_(std::move(options)), models_(options_.models.size()), streams_(options_.streams.size()) {
  FOLIOT_CHECK(!models_.empty());
}

void LoadReport::record(const LoadSample& sample) {
  const bool good = sample.finished - sample.scheduled <= sample.slo;
  slo_min_ = std::min(slo_min_, sample.slo);
  tally(total_, sample, good);
  // One model's tally would only repeat the total.
  if (models_.size() > 1) tally(models_.at(sample.model), sample, good);
  if (!streams_.empty()) tally(streams_.at(sample.stream), sample, good);
  if (sample.outcome != LoadOutcome::kUnsent) send_lag_.record(sample.sent - sample.scheduled);
  if (sample.outcome == LoadOutcome::kRefused) {
    refusal_latency_.record(sample.finished - sample.scheduled);
    count_reason(refusals_, sample.reason);
  }
  if (sample.outcome == LoadOutcome::kFailed) count_reason(failures_, sample.reason);
}

double LoadReport::per_second(uint64_t count) const {
  return duration_ > Duration() ? static_cast<double>(count) / duration_.to_seconds() : 0;
}

bool LoadReport::generator_lagged() const {
  const Duration tolerated =
      slo_min_ == Duration::max() ? Duration::milliseconds(1) : std::max(slo_min_ / 10, Duration::microseconds(100));
  return total_.sent < total_.offered || send_lag_.quantile(0.99) > tolerated;
}

std::string LoadReport::to_text() const {
  std::string text;
  for (const auto& [name, value] : options_.settings) text += fmt::format("{:<14}{}\n", name, value);
  const uint64_t answered = total_.good + total_.late;
  text += fmt::format("\n{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "requests", "offered", "sent", "good", "late",
                      "refused", "failed");
  text += fmt::format("{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", total_.offered, total_.sent, total_.good,
                      total_.late, total_.refused, total_.failed);
  text += fmt::format("{:<14}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}\n\n", "per second",
                      per_second(total_.offered), per_second(total_.sent), per_second(total_.good),
                      per_second(total_.late), per_second(total_.refused), per_second(total_.failed));
  text += fmt::format("goodput {:.1f}/s   attainment {:.3f} %", goodput(), 100 * total_.attainment());
  if (options_.rows_per_request > 1) {
    text += fmt::format("   inferences {:.1f}/s", per_second(answered * options_.rows_per_request));
  }
  text += fmt::format("\n\n{:<14}", "milliseconds");
  for (const Quantile& quantile : kQuantiles) text += fmt::format("{:>10}", quantile.name);
  text += fmt::format("{:>10}{:>10}\n", "max", "mean");
  text += histogram_line("answered", total_.latency);
  if (refusal_latency_.count() > 0) text += histogram_line("refused", refusal_latency_);
  text += histogram_line("send lag", send_lag_);
  if (!refusals_.empty()) text += "\n" + reasons_line("refused because", refusals_);
  if (!failures_.empty()) text += "\n" + reasons_line("failed because", failures_);

  if (streams_.size() > 1) text += tally_table("stream", options_.streams, streams_);
  if (models_.size() > 1) text += tally_table("model", options_.models, models_);
  if (generator_lagged()) {
    text +=
        "\nWARNING: the generator fell behind its own schedule (see 'send lag' and 'sent'): the latency above is\n"
        "partly its own. Lower the rate, or run it on a machine or cores of its own.\n";
  }
  return text;
}

std::string LoadReport::to_json() const {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : options_.settings) json["settings"][name] = value;
  json["duration_seconds"] = duration_.to_seconds();
  if (slo_min_ != Duration::max()) json["deadline_milliseconds"] = slo_min_.to_milliseconds();
  json["rows_per_request"] = options_.rows_per_request;
  json.update(tally_json(total_));
  json["goodput_per_second"] = goodput();
  json["answered_per_second"] = per_second(total_.good + total_.late);
  json["latency_milliseconds"] = histogram_json(total_.latency);
  json["refusal_latency_milliseconds"] = histogram_json(refusal_latency_);
  json["send_lag_milliseconds"] = histogram_json(send_lag_);
  json["generator_lagged"] = generator_lagged();
  json["refusals"] = refusals_;
  json["failures"] = failures_;
  for (size_t i = 0; i < streams_.size(); ++i) json["streams"].push_back(named_json(options_.streams[i], streams_[i]));
  for (size_t i = 0; i < models_.size(); ++i) {
    json["models"].push_back(named_json(options_.models[i], models_.size() > 1 ? models_[i] : total_));
  }
  // Error texts come from outside and need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace foliot
