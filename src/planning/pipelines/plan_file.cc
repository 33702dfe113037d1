#include "planning/pipelines/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include "foundation/base/folder_listing.h"
#include "foundation/base/toml_text.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "planning/pipelines/planner.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// Doubling from a nanosecond to a minute; there is no longer envelope.
constexpr size_t kWindowsMax = 64;

Status read_stage(TomlReader& reader, std::set<std::string>& names, TuningPlan& to) {
  TuningPlan::Stage stage;
  reader.text("name", stage.name);
  reader.text("model", stage.model);
  reader.text("kind", stage.kind);
  reader.whole("batch", stage.batch, 1);
  reader.whole("replicas", stage.replicas, 1, kPlannedReplicasMax);
  reader.not_negative("visited", stage.scale_factor);
  if (stage.scale_factor > kSlotsMax) {
    reader.fail("visited", fmt::format("is {}; a query has at most {} visits", stage.scale_factor, kSlotsMax));
  }
  reader.positive("throughput", stage.throughput);
  for (const char* key : {"name", "model", "kind", "batch", "replicas", "visited", "throughput"}) {
    if (!reader.has(key)) reader.fail(fmt::format("a stage needs '{}'", key));
  }
  reader.not_negative("price", stage.price);
  reader.ascending("batch_sizes", stage.batch_sizes);
  reader.durations("durations", stage.durations);
  if (reader.ok() && (reader.has("batch_sizes") || reader.has("durations"))) {
    const Status checked = KindProfile{stage.kind, stage.batch_sizes, {{1, stage.durations}}}.check();
    if (!checked.ok()) reader.fail("durations", checked.message());
    if (checked.ok() && stage.batch_sizes.back() < stage.batch)
      reader.fail("batch_sizes", fmt::format("end below 'batch', which is {}", stage.batch));
  }
  if (!std::isfinite(stage.price)) reader.fail("price", "must be finite");
  if (!std::isfinite(stage.throughput)) reader.fail("throughput", "must be finite");
  if (!names.insert(stage.name).second) reader.fail("name", fmt::format("is '{}', which is a stage above", stage.name));
  to.stages.push_back(std::move(stage));
  return reader.finish();
}

Status read_window(TomlReader& reader, Envelope& to) {
  Duration length;
  uint32_t queries = 0;
  reader.positive("length", length);
  reader.whole("queries", queries, 1);
  if (!reader.has("queries")) reader.fail("a window needs 'queries'");
  if (length > kEnvelopeWindowMax) reader.fail("length", "must be at most a minute");
  if (!to.windows.empty() && length <= to.windows.back())
    reader.fail("length", "must be above that of the window before");
  if (!to.most.empty() && queries < to.most.back())
    reader.fail("queries", "must not be below those of the window before");
  to.windows.push_back(length);
  to.most.push_back(queries);
  return reader.finish();
}

Status read(const std::string& pipeline, const fs::path& file, TuningPlan& plan) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  TomlReader reader(table, file.string());
  reader.text("pipeline", plan.pipeline);
  reader.text("content", plan.content);
  if (reader.has("slo")) reader.positive("slo", plan.goal.slo);
  reader.share("attainment", plan.goal.attainment);
  reader.positive("rate", plan.rate);
  if (!std::isfinite(plan.rate)) reader.fail("rate", "must be finite");
  if (plan.pipeline != pipeline) {
    reader.fail("pipeline", fmt::format("is '{}', and this is the plan of '{}'", plan.pipeline, pipeline));
  }
  std::set<std::string> names;
  for (TomlReader& stage : reader.tables("stage")) FOLIOT_RETURN_IF_ERROR(read_stage(stage, names, plan));
  for (TomlReader& window : reader.tables("window")) FOLIOT_RETURN_IF_ERROR(read_window(window, plan.envelope));
  if (plan.stages.empty() || plan.stages.size() > kStagesMax) {
    reader.fail(fmt::format("has {} [[stage]], and must have 1 to {}", plan.stages.size(), kStagesMax));
  }
  if (plan.envelope.windows.empty() || plan.envelope.windows.size() > kWindowsMax) {
    reader.fail(fmt::format("has {} [[window]], and must have 1 to {}", plan.envelope.windows.size(), kWindowsMax));
  }
  return reader.finish();
}

// Without a loss: in the largest unit of which it is a multiple.
std::string exact_text(Duration duration) {
  static constexpr std::array<std::pair<int64_t, const char*>, 3> kUnits{
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}};
  for (const auto& [unit, name] : kUnits) {
    if (duration.nanoseconds() % unit == 0) return fmt::format("{}{}", duration.nanoseconds() / unit, name);
  }
  return fmt::format("{}ns", duration.nanoseconds());
}

}  // namespace

SavedPlan read_plan_file(const std::string& pipeline, const fs::path& file) {
  SavedPlan saved{.file = file.string(), .status = Status(), .plan = {}};
  saved.status = read(pipeline, file, saved.plan);
  return saved;
}

Result<std::map<std::string, SavedPlan>> scan_plans(const fs::path& folder) {
  std::map<std::string, SavedPlan> plans;
  const auto entries = list_folder(folder);
  if (!entries.ok()) return Status::invalid_argument("plans in " + entries.status().message());
  for (const fs::path& entry : *entries) {
    const std::string name = entry.filename().string();
    const fs::path file = entry / kPlanFile;
    std::error_code ignored;
    if (!name.starts_with('.') && fs::is_regular_file(file, ignored)) plans.emplace(name, read_plan_file(name, file));
  }
  return plans;
}

std::string plan_file_text(const TuningPlan& plan) {
  std::string text = fmt::format("pipeline = {}\n", toml_text(plan.pipeline));
  if (!plan.content.empty()) text += fmt::format("content = {}\n", toml_text(plan.content));
  if (plan.goal.slo > Duration())
    text += fmt::format("slo = \"{}\"\nattainment = {}\n", exact_text(plan.goal.slo), plan.goal.attainment);
  text += fmt::format("rate = {}  # queries per second\n", plan.rate);
  for (const TuningPlan::Stage& stage : plan.stages) {
    text +=
        fmt::format("\n[[stage]]\nname = {}\nmodel = {}\nkind = {}\nbatch = {}\nreplicas = {}\n", toml_text(stage.name),
                    toml_text(stage.model), toml_text(stage.kind), stage.batch, stage.replicas);
    text += fmt::format("visited = {}\nthroughput = {}  # rows per second of one replica\n", stage.scale_factor,
                        stage.throughput);
    if (stage.batch_sizes.empty()) continue;
    std::vector<std::string> durations;
    for (const Duration each : stage.durations) durations.push_back(exact_text(each));
    text += fmt::format("price = {}  # dollars per hour of one replica\nbatch_sizes = [{}]\ndurations = {}\n",
                        stage.price, fmt::join(stage.batch_sizes, ", "), toml_texts(durations));
  }
  for (size_t i = 0; i < plan.envelope.windows.size(); ++i) {
    text += fmt::format("\n[[window]]\nlength = \"{}\"\nqueries = {}\n", exact_text(plan.envelope.windows[i]),
                        plan.envelope.most[i]);
  }
  return text;
}

}  // namespace foliot
