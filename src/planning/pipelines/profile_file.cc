#include "planning/pipelines/profile_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/toml_text.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {
namespace {

constexpr std::string_view kDurationsKey = "durations";
constexpr std::array<std::pair<std::string_view, double>, 3> kQuantileKeys{{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}};

std::string_view quantile_key(const KindProfile& kind, const DurationQuantile& quantile) {
  if (kind.quantiles.size() == 1) return kDurationsKey;
  const auto* const found =
      std::ranges::find(kQuantileKeys, quantile.quantile, &std::pair<std::string_view, double>::second);
  FOLIOT_CHECK(found != kQuantileKeys.end());
  return found->first;
}

std::string durations_text(const std::vector<Duration>& durations) {
  std::vector<std::string> texts;
  for (const Duration each : durations) {
    texts.push_back(fmt::format("{:.3f}us", static_cast<double>(each.nanoseconds()) / 1e3));
  }
  return toml_texts(texts);
}

void read_quantile(TomlReader& reader, std::string_view key, double quantile, KindProfile& to) {
  std::vector<Duration> durations;
  reader.durations(key, durations);
  if (!durations.empty()) to.quantiles.push_back({quantile, std::move(durations)});
}

// A number, or the shares of 0, 1, 2, ... visits.
void read_visits(TomlReader& reader, std::string_view stage, const toml::node& value, StageProfile& to) {
  to.has_visits = true;
  if (!value.is_array()) {
    reader.not_negative(stage, to.scale_factor);
    if (to.scale_factor > kSlotsMax) {
      reader.fail(stage, fmt::format("is {}; a query has at most {} visits", to.scale_factor, kSlotsMax));
    }
    return;
  }
  std::vector<double>& shares = to.visits_shares;
  reader.weights(stage, shares);
  if (shares.size() > kSlotsMax) {
    reader.fail(stage,
                fmt::format("has shares of up to {} visits; a query has at most {}", shares.size() - 1, kSlotsMax - 1));
  }
  to.scale_factor = mean_of_shares(shares);
}

Status read_profile(TomlReader& reader, StageProfiles& to) {
  std::string stage;
  KindProfile profile;
  reader.text("stage", stage);
  reader.text("kind", profile.kind);
  reader.ascending("batch_sizes", profile.batch_sizes);
  if (reader.has(kDurationsKey)) {
    read_quantile(reader, kDurationsKey, 1, profile);
  } else {
    for (const auto& [key, quantile] : kQuantileKeys) read_quantile(reader, key, quantile, profile);
  }
  if (stage.empty()) reader.fail("needs 'stage'");
  if (profile.kind.empty()) reader.fail("needs 'kind'");
  if (profile.quantiles.empty()) reader.fail("needs 'durations', or some of 'p50', 'p90' and 'p99'");
  const Status checked = profile.check();
  const std::string name = fmt::format("profile of stage '{}' on '{}'", stage, profile.kind);
  if (!checked.ok()) reader.fail(fmt::format("{}: {}", name, checked.message()));
  StageProfile& all = to[stage];
  all.stage = stage;
  if (all.find(profile.kind) != nullptr) reader.fail(name + " is given twice");
  all.kinds.push_back(std::move(profile));
  return reader.finish();
}

}  // namespace

Result<StageProfiles> read_profile_file(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  TomlReader reader(table, file.string());
  StageProfiles profiles;
  for (TomlReader& each : reader.tables("profile")) FOLIOT_RETURN_IF_ERROR(read_profile(each, profiles));
  if (profiles.empty()) reader.fail("has no [[profile]]");
  if (std::optional<TomlReader> visits = reader.table("visits")) {
    for (const auto& [key, value] : *table["visits"].as_table()) {
      const auto found = profiles.find(std::string_view(key.str()));
      if (found == profiles.end()) {
        visits->fail(key.str(), "is a stage without a [[profile]]");
        break;
      }
      read_visits(*visits, key.str(), value, found->second);
    }
    FOLIOT_RETURN_IF_ERROR(visits->finish());
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return profiles;
}

std::string profile_file_text(const StageProfiles& profiles) {
  std::string text;
  std::string visits;
  for (const auto& [name, profile] : profiles) {
    for (const KindProfile& kind : profile.kinds) {
      text += fmt::format("[[profile]]\nstage = {}\nkind = {}\nbatch_sizes = [{}]\n", toml_text(name),
                          toml_text(kind.kind), fmt::join(kind.batch_sizes, ", "));
      for (const DurationQuantile& quantile : kind.quantiles) {
        text += fmt::format("{} = {}\n", quantile_key(kind, quantile), durations_text(quantile.of_batches));
      }
      text += "\n";
    }
    if (!profile.visits_shares.empty()) {
      visits += fmt::format("{} = [{}]\n", toml_key(name), fmt::join(profile.visits_shares, ", "));
    } else if (profile.scale_factor != 1) {
      visits += fmt::format("{} = {}\n", toml_key(name), profile.scale_factor);
    }
  }
  return visits.empty() ? text : text + "[visits]\n" + visits;
}

}  // namespace foliot
