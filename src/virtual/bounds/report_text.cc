#include "virtual/bounds/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace foliot {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<const char*, double>, 5> kQuantiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}}};
constexpr size_t kTalliesInText = 20;

Json histogram_json(const Histogram& histogram) {
  Json json{{"count", histogram.count()}};
  for (const auto& [name, quantile] : kQuantiles) json[name] = histogram.quantile(quantile).to_milliseconds();
  json["max"] = histogram.max().to_milliseconds();
  json["mean"] = histogram.mean().to_milliseconds();
  return json;
}

Json tally_json(const RequestTally& tally) {
  Json json{{"name", tally.name},
            {"offered", tally.offered},
            {"good", tally.good},
            {"good_within", tally.good_within},
            {"attainment", tally.attainment()}};
  json["missed"] = Json::object();
  for (const auto& [reason, count] : tally.missed) json["missed"][std::string(to_string(reason))] = count;
  json["mispredicted"] = tally.mispredicted;
  json["cold_starts"] = tally.cold_starts;
  json["latency_milliseconds"] = histogram_json(tally.latency);
  return json;
}

Json error_json(const PredictionError& error) {
  return {{"overpredicted_milliseconds", histogram_json(error.over)},
          {"underpredicted_milliseconds", histogram_json(error.under)}};
}

std::string missed_text(const RequestTally& tally) {
  std::string text;
  for (const auto& [reason, count] : tally.missed) text += fmt::format("{} {}, ", to_string(reason), count);
  return text + fmt::format("of these by misprediction {}", tally.mispredicted);
}

// Empty where nothing was refused.
std::string refusals_text(const RefusalTally& refusals) {
  if (refusals.refused_after.count() == 0) return "";
  return fmt::format(
      "  refused after p50 {:.3f}, p90 {:.3f} of their time; of {} admitted {:.2f} % were not answered in time\n",
      refusals.refused_after_share(0.5), refusals.refused_after_share(0.9), refusals.admitted,
      100 * refusals.broken_share());
}

Json refusals_json(const RefusalTally& refusals) {
  Json json{{"count", refusals.refused_after.count()}};
  for (const auto& [name, quantile] : kQuantiles) json[name] = refusals.refused_after_share(quantile);
  json["admitted"] = refusals.admitted;
  json["admitted_missed"] = refusals.admitted_missed;
  return json;
}

// Over- and underprediction, "144/55".
std::string error_text(const PredictionError& error) {
  return fmt::format("{:.0f}/{:.0f}", error.over.quantile(0.99).to_microseconds(),
                     error.under.quantile(0.99).to_microseconds());
}

std::string report_line(const SimulationReport& report) {
  const Histogram& latency = report.all.latency;
  return fmt::format("{:<28}{:>10.1f}{:>10.1f}{:>11.4f}{:>9.2f}{:>9.2f}{:>9.2f}{:>8.2f}{:>8.1f}{:>10}{:>12}{:>12.0f}\n",
                     report.policy, report.offered_rate(), report.goodput(), 100 * report.all.attainment(),
                     latency.quantile(0.5).to_milliseconds(), latency.quantile(0.99).to_milliseconds(),
                     latency.max().to_milliseconds(), report.batch_size_mean(), 100 * report.device_busy(),
                     report.loads, error_text(report.infer_duration), report.requests_per_real_second());
}

// " in 0.50 s of real time (120.0 times as fast)"; empty where no clock was read.
std::string real_text(const SimulationReport& report) {
  if (report.real <= Duration()) return "";
  return fmt::format(" in {:.2f} s of real time ({:.1f} times as fast)", report.real.to_seconds(),
                     report.simulated.to_seconds() / report.real.to_seconds());
}

std::string faults_text(const FaultReport& faults) {
  return fmt::format(
      "  faults: {}; in their windows {} of {} requests were met, {} could have been: {:.3f} %; recovered in {:.1f} "
      "s\n",
      faults.faults.size(), faults.met.good, faults.met.offered, faults.meetable.good, 100 * faults.attainment(),
      faults.recovery_max().to_seconds());
}

Json faults_json(const FaultReport& report) {
  Json json{{"offered", report.met.offered},
            {"good", report.met.good},
            {"meetable", report.meetable.good},
            {"attainment_of_meetable", report.attainment()}};
  json["faults"] = Json::array();
  for (size_t i = 0; i < report.faults.size(); ++i) {
    const Fault& fault = report.faults[i];
    json["faults"].push_back({{"kind", to_string(fault.kind)},
                              {"device", fault.device},
                              {"at_seconds", fault.at.to_seconds()},
                              {"length_seconds", fault.length.to_seconds()},
                              {"recovery_seconds", report.recovery(i).to_seconds()}});
  }
  return json;
}

void append_tally(std::string& line, const IntervalTally& tally) {
  line += fmt::format(",{},{},{},{},{:.4f},{:.4f},{:.4f}", tally.offered, tally.good, tally.missed, tally.cold_starts,
                      tally.latency_p50.to_milliseconds(), tally.latency_p99.to_milliseconds(),
                      tally.latency_max.to_milliseconds());
}

void append_tallies(std::string& text, const std::vector<RequestTally>& tallies) {
  for (size_t i = 0; i < std::min(tallies.size(), kTalliesInText); ++i) {
    const RequestTally& tally = tallies[i];
    text += fmt::format("  {:<26} offered {:>10}  attained {:>9.4f} %  p99 {:>8.2f} ms  max {:>8.2f} ms\n", tally.name,
                        tally.offered, 100 * tally.attainment(), tally.latency.quantile(0.99).to_milliseconds(),
                        tally.latency.max().to_milliseconds());
  }
  if (tallies.size() > kTalliesInText) text += fmt::format("  and {} more\n", tallies.size() - kTalliesInText);
}

void append_columns(std::string& line, std::string_view prefix) {
  for (const char* name :
       {"offered", "good", "missed", "cold_starts", "latency_p50_ms", "latency_p99_ms", "latency_max_ms"}) {
    line += fmt::format(",{}{}", prefix, name);
  }
}

}  // namespace

std::string report_table(const std::vector<SimulationReport>& reports, const FluidEstimate* estimate,
                         const ClairvoyantBound* bound) {
  std::string text = fmt::format("{:<28}{:>10}{:>10}{:>11}{:>9}{:>9}{:>9}{:>8}{:>8}{:>10}{:>12}{:>12}\n", "policy",
                                 "offered/s", "good/s", "attained %", "p50 ms", "p99 ms", "max ms", "batch", "busy %",
                                 "loads", "error us", "simulated/s");
  for (const SimulationReport& report : reports) text += report_line(report);
  if (estimate != nullptr) {
    text += fmt::format("{:<28}{:>10}{:>10}{:>11.4f}   devices needed {:.2f}, highest rate {:.1f}/s (x {:.3f})\n",
                        "fluid estimate", "", "", 100 * estimate->attainment, estimate->devices_needed, estimate->rate,
                        estimate->rate_scale);
  }
  if (bound != nullptr) {
    text += fmt::format("{:<28}{:>10}{:>10.1f}{:>11.4f}   at most\n", "clairvoyant bound", "", bound->goodput(),
                        100 * bound->attainment());
  }
  text += "\nerror: of predicted EXEC durations, p99 of over-/underprediction\n";
  for (const SimulationReport& report : reports) {
    text += fmt::format("\n{}: seed {}, events {:016x}, {:.1f} s{}\n  missed: {}\n", report.policy, report.seed,
                        report.event_hash, report.simulated.to_seconds(), real_text(report), missed_text(report.all));
    text += refusals_text(report.refusals);
    if (report.faults) text += faults_text(*report.faults);
    append_tallies(text, report.pipelines);
    if (report.groups.size() > 1) append_tallies(text, report.groups);
    append_tallies(text, report.tenants);
  }
  return text;
}

std::string report_json(const SimulationReport& report, const FluidEstimate* estimate, const ClairvoyantBound* bound) {
  Json json{{"policy", report.policy},
            {"seed", report.seed},
            {"event_hash", fmt::format("{:016x}", report.event_hash)},
            {"devices", report.devices},
            {"warm_up_seconds", report.warm_up.to_seconds()},
            {"measured_seconds", report.measured.to_seconds()},
            {"simulated_seconds", report.simulated.to_seconds()},
            {"real_seconds", report.real.to_seconds()},
            {"requests", report.requests},
            {"events", report.events},
            {"requests_per_real_second", report.requests_per_real_second()},
            {"offered_per_second", report.offered_rate()},
            {"goodput_per_second", report.goodput()}};
  if (report.dollars_per_hour) json["dollars_per_hour"] = *report.dollars_per_hour;
  json["all"] = tally_json(report.all);
  json["refused_after_share_of_time"] = refusals_json(report.refusals);
  json["groups"] = Json::array();
  for (const RequestTally& group : report.groups) json["groups"].push_back(tally_json(group));
  if (!report.pipelines.empty()) json["pipelines"] = Json::array();
  for (const RequestTally& pipeline : report.pipelines) json["pipelines"].push_back(tally_json(pipeline));
  if (!report.tenants.empty()) json["tenants"] = Json::array();
  for (const RequestTally& tenant : report.tenants) json["tenants"].push_back(tally_json(tenant));
  json["infer_duration_error"] = error_json(report.infer_duration);
  json["load_duration_error"] = error_json(report.load_duration);
  json["infer_completion_error"] = error_json(report.infer_completion);
  json["batch_sizes"] = Json::object();
  for (size_t size = 1; size < report.batch_sizes.size(); ++size) {
    if (report.batch_sizes[size] > 0) json["batch_sizes"][std::to_string(size)] = report.batch_sizes[size];
  }
  json["batch_size_mean"] = report.batch_size_mean();
  json["execs"] = report.execs;
  json["loads"] = report.loads;
  json["unloads"] = report.unloads;
  json["actions_refused"] = report.actions_refused;
  json["exec_seconds"] = report.exec_time.to_seconds();
  json["load_seconds"] = report.load_time.to_seconds();
  json["device_busy"] = report.device_busy();
  json["proposals_rejected"] = report.proposals_rejected;
  if (report.faults) json["faults"] = faults_json(*report.faults);
  if (estimate != nullptr) {
    json["fluid_estimate"] = {{"attainment", estimate->attainment},
                              {"devices_needed", estimate->devices_needed},
                              {"rate_per_second", estimate->rate},
                              {"rate_scale", estimate->rate_scale}};
  }
  if (bound != nullptr) {
    json["clairvoyant_bound"] = {{"offered", bound->offered},           {"good", bound->good},
                                 {"attainment", bound->attainment()},   {"goodput_per_second", bound->goodput()},
                                 {"noise_allowance", bound->allowance}, {"exec_price", bound->exec_price},
                                 {"load_price", bound->load_price},     {"memory_price", bound->memory_price}};
  }
  return json.dump(2) + "\n";
}

std::string series_csv(const SimulationReport& report) {
  std::string text = "begin_s";
  append_columns(text, "");
  text += ",loads,active_models,cold_models,batch_size_mean,device_busy,load_busy";
  for (const RequestTally& group : report.groups) append_columns(text, group.name + ".");
  text += "\n";
  for (const SimulationInterval& row : report.series) {
    text += fmt::format("{:.3f}", row.begin.to_seconds());
    append_tally(text, row.all);
    text += fmt::format(",{},{},{},{:.4f},{:.4f},{:.4f}", row.loads, row.active_models, row.cold_models,
                        row.batch_size_mean, row.device_busy, row.load_busy);
    for (const IntervalTally& group : row.groups) append_tally(text, group);
    text += "\n";
  }
  return text;
}

}  // namespace foliot
