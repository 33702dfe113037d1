#include "load/workload/workload_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "foundation/core/model_info.h"
#include "foundation/core/request.h"
#include "load/workload/arrival_trace.h"
#include "load/workload/azure_like_trace.h"
#include "load/workload/azure_trace.h"

namespace foliot {
namespace {

// As the file says it, seen from the folder that the file is in.
std::string path_beside(const TomlReader& reader, const std::string& path) {
  return (std::filesystem::path(reader.file()).parent_path() / path).string();
}

// One of [[profiles]]: a table, a package, or a profile written out.
Status add_profiles(TomlReader& reader, const PackageProfileReader& read_package, ProfileTable& to) {
  ModelProfile profile;
  std::string file, package;
  reader.text("file", file);
  if (file.empty()) {
    reader.text("name", profile.name);
    if (profile.name.empty()) reader.fail("needs 'file', or 'name' and 'package', or 'name' and durations");
    reader.text("package", package);
  }
  if (file.empty() && package.empty()) {
    reader.bytes("input", profile.input_bytes);
    reader.bytes("output", profile.output_bytes);
    reader.bytes("weights", profile.weights_bytes);
    reader.positive("load", profile.load);
    reader.ascending("batch_sizes", profile.batch_sizes);
    reader.durations("exec", profile.exec);
    uint32_t operators = 1;
    reader.whole("operators", operators, 1, kOperatorEndsMax);
    for (uint32_t i = 1; operators > 1 && i <= operators; ++i) {
      profile.operator_ends.push_back(static_cast<double>(i) / operators);
    }
    if (profile.batch_sizes.empty() || profile.batch_sizes.front() != 1) {
      reader.fail("batch_sizes", "must begin with 1");
    }
    if (profile.exec.size() != profile.batch_sizes.size()) {
      reader.fail("exec",
                  fmt::format("has {} durations for {} batch sizes", profile.exec.size(), profile.batch_sizes.size()));
    }
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());

  std::vector<ModelProfile> profiles;
  if (!file.empty()) {
    auto table = read_profile_table(path_beside(reader, file));
    if (!table.ok()) reader.fail("file", "is wrong: " + table.status().message());
    if (table.ok()) profiles = table->profiles();
  } else if (!package.empty()) {
    auto read = read_package(path_beside(reader, package));
    if (!read.ok()) reader.fail("package", "is wrong: " + read.status().message());
    if (read.ok()) {
      read->name = profile.name;
      profiles.push_back(*std::move(read));
    }
  } else {
    profiles.push_back(std::move(profile));
  }
  for (ModelProfile& each : profiles) {
    const Status added = to.add(std::move(each));
    if (!added.ok()) reader.fail(added.message());
  }
  return reader.finish();
}

Result<ModelGroup> read_group(TomlReader& reader, const ProfileTable* profiles) {
  ModelGroup group;
  reader.text("profile", group.profile);
  group.name = group.profile;
  reader.text("name", group.name);
  if (profiles != nullptr && !reader.has("profile")) reader.fail("needs a 'profile'");
  if (profiles != nullptr && profiles->find(group.profile) == nullptr) {
    reader.fail("profile", fmt::format("is none of {}", profiles->names()));
  }
  if (group.name.empty()) reader.fail("needs a 'name'");
  reader.whole("count", group.count, 1, 1'000'000);
  reader.positive("slo", group.slo);
  reader.positive("weight", group.weight);
  reader.duration_or_auto("batch_delay", group.batch_delay);
  for (TomlReader& each : reader.tables("runs_on")) {
    ModelGroup::RunsOn runs_on;
    each.text("kind", runs_on.kind);
    each.text("profile", runs_on.profile);
    if (!is_kind_name(runs_on.kind)) each.fail("needs a 'kind' of letters, digits and .:_-");
    if (profiles != nullptr && !runs_on.profile.empty() && profiles->find(runs_on.profile) == nullptr) {
      each.fail("profile", fmt::format("is none of {}", profiles->names()));
    }
    FOLIOT_RETURN_IF_ERROR(each.finish());
    group.runs_on.push_back(std::move(runs_on));
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return group;
}

Result<PipelineLoad> read_pipeline(TomlReader& reader) {
  PipelineLoad pipeline;
  reader.text("name", pipeline.name);
  reader.positive("slo", pipeline.slo);
  for (TomlReader& each : reader.tables("stages")) {
    PipelineLoad::Stage& stage = pipeline.stages.emplace_back();
    each.text("models", stage.models);
    stage.name = stage.models;
    each.text("name", stage.name);
    each.texts("after", stage.after);
    each.texts("first_of", stage.first_of);
    each.positive("share", stage.share);
    each.text("for_each", stage.for_each);
    each.weights("elements", stage.elements);
    FOLIOT_RETURN_IF_ERROR(each.finish());
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return pipeline;
}

// Only the keys that the kind of arrivals knows.
void read_arrivals(TomlReader& reader, ArrivalOptions& arrivals) {
  std::string kind(to_string(arrivals.kind));
  reader.text("arrivals", kind);
  const std::optional<ArrivalKind> parsed = parse_arrival_kind(kind);
  if (!parsed) {
    reader.fail("arrivals", fmt::format("is none of poisson, gamma, uniform, on-off, spike, ramp, replay: '{}'", kind));
    return;
  }
  arrivals.kind = *parsed;
  switch (arrivals.kind) {
    case ArrivalKind::kReplay: {
      std::string file;
      reader.text("instants", file);
      if (file.empty()) return reader.fail("arrivals \"replay\" need 'instants', a file");
      auto instants = read_arrival_trace(path_beside(reader, file));
      if (!instants.ok()) return reader.fail("instants", "are wrong: " + instants.status().message());
      arrivals.instants = *std::move(instants);
      return;
    }
    case ArrivalKind::kRamp:
      reader.not_negative("rate", arrivals.rate);
      reader.not_negative("ramp_rate", arrivals.ramp_rate);
      reader.positive("ramp_length", arrivals.ramp_length);
      return;
    case ArrivalKind::kGamma: reader.positive("coefficient_of_variation", arrivals.coefficient_of_variation); break;
    case ArrivalKind::kOnOff:
      reader.positive("mean_on", arrivals.mean_on);
      reader.duration("mean_off", arrivals.mean_off);
      break;
    case ArrivalKind::kSpike:
      reader.duration("spike_start", arrivals.spike_start);
      reader.duration("spike_rise", arrivals.spike_rise);
      reader.duration("spike_length", arrivals.spike_length);
      reader.not_negative("spike_factor", arrivals.spike_factor);
      break;
    case ArrivalKind::kPoisson:
    case ArrivalKind::kUniform: break;
  }
  reader.positive("rate", arrivals.rate);
}

std::shared_ptr<const FunctionTrace> read_azure_like(TomlReader& reader) {
  AzureLikeOptions options;
  reader.whole("functions", options.functions, 1, 10'000'000);
  reader.positive("rate", options.rate);
  reader.whole("seed", options.seed);
  reader.duration("from", options.from);
  if (!reader.finish().ok()) return nullptr;
  return std::make_shared<AzureLikeTrace>(options);
}

std::shared_ptr<const FunctionTrace> read_recorded(TomlReader& reader, const std::string& kind) {
  std::vector<std::string> files;
  TraceOptions options;
  reader.texts("files", files);
  reader.duration("from", options.from);
  reader.positive("length", options.length);
  reader.not_negative("rate", options.rate);
  const bool one = kind == "azure-2021";
  if (files.empty() || (one && files.size() > 1)) reader.fail(one ? "needs 'files', a single one" : "needs 'files'");
  if (!reader.finish().ok()) return nullptr;
  for (std::string& file : files) file = path_beside(reader, file);
  auto trace = one ? read_azure_2021(files.front(), options) : read_azure_2019(files, options);
  if (trace.ok()) return *std::move(trace);
  reader.fail("files", "are wrong: " + trace.status().message());
  return nullptr;
}

Result<std::shared_ptr<const FunctionTrace>> read_trace(TomlReader& reader) {
  std::string kind;
  reader.text("kind", kind);
  std::shared_ptr<const FunctionTrace> trace;
  if (kind == "azure-like") {
    trace = read_azure_like(reader);
  } else if (kind == "azure-2019" || kind == "azure-2021") {
    trace = read_recorded(reader, kind);
  } else {
    reader.fail("kind", "must be azure-2019, azure-2021 or azure-like");
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return trace;
}

Result<Stream> read_stream(TomlReader& reader, size_t number) {
  Stream stream;
  stream.name = fmt::format("stream {}", number);
  reader.text("name", stream.name);
  reader.texts("models", stream.models);
  reader.text("pipeline", stream.pipeline);
  if (auto trace = reader.table("trace")) {
    FOLIOT_ASSIGN_OR_RETURN(stream.trace, read_trace(*trace));
  } else if (reader.has("concurrency")) {
    reader.whole("concurrency", stream.concurrency, 1, 65'536);
    reader.positive("think_time", stream.think_time);
    reader.duration("activate_every", stream.activate_every);
  } else {
    read_arrivals(reader, stream.arrivals);
    reader.flag("per_model", stream.per_model);
    reader.not_negative("zipf", stream.zipf);
    reader.whole("popularity_seed", stream.popularity_seed);
    reader.duration("activate_every", stream.activate_every);
  }
  reader.positive("slo", stream.slo);
  reader.flag("best_effort", stream.best_effort);
  reader.duration("start", stream.start);
  reader.duration("stop", stream.stop);
  reader.text("tenant", stream.tenant);
  if (!stream.tenant.empty()) reader.whole("weight", stream.weight, 1, kTenantWeightMax);
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return stream;
}

}  // namespace

Result<ProfileTable> read_profiles(TomlReader& file, const PackageProfileReader& read_package) {
  ProfileTable table = ProfileTable::v100();
  for (TomlReader& reader : file.tables("profiles")) FOLIOT_RETURN_IF_ERROR(add_profiles(reader, read_package, table));
  return table;
}

Result<Workload> read_workload(TomlReader& file, const ProfileTable* profiles) {
  Workload workload;
  for (TomlReader& reader : file.tables("models")) {
    FOLIOT_ASSIGN_OR_RETURN(workload.groups.emplace_back(), read_group(reader, profiles));
    FOLIOT_RETURN_IF_ERROR(workload.check_groups().with_context(reader.where()));
  }
  for (TomlReader& reader : file.tables("pipelines")) {
    if (profiles == nullptr) reader.fail("describes what a simulation plays; name the pipeline under [[models]]");
    FOLIOT_ASSIGN_OR_RETURN(workload.pipelines.emplace_back(), read_pipeline(reader));
    FOLIOT_RETURN_IF_ERROR(workload.check_pipelines().with_context(reader.where()));
  }
  for (TomlReader& reader : file.tables("streams")) {
    FOLIOT_ASSIGN_OR_RETURN(workload.streams.emplace_back(), read_stream(reader, workload.streams.size() + 1));
    FOLIOT_RETURN_IF_ERROR(workload.check_stream(workload.streams.back()).with_context(reader.where()));
  }
  FOLIOT_RETURN_IF_ERROR(workload.check().with_context(file.file()));
  return workload;
}

void read_run(TomlReader& file, WorkloadRun& run) {
  file.whole("seed", run.seed);
  file.positive("duration", run.duration);
  file.duration("warm_up", run.warm_up);
  file.flag("preload", run.preload);
  if (run.warm_up >= run.duration) file.fail("warm_up", "must be shorter than duration");
}

}  // namespace foliot
