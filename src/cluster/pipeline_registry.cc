#include "cluster/pipeline_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "pipeline/pipeline_file.h"

namespace foliot {
namespace {

// Why a stage has no model; empty: all have one.
std::string missing_models(const PipelineSpec& spec, const ModelsByName& models) {
  std::string reason;
  for (const StageSpec& stage : spec.stages) {
    if (models.contains(stage.model)) continue;
    reason += fmt::format("{}stage '{}' needs model '{}', which is not served", reason.empty() ? "" : "; ", stage.name,
                          stage.model);
  }
  return reason;
}

bool is_made_of(const PipelineInfo& pipeline, const PipelineSpec& spec, const ModelsByName& models) {
  return std::ranges::equal(pipeline.stages, spec.stages, [&](const PipelineStage& stage, const StageSpec& named) {
    return stage.model == models.at(named.model);
  });
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

PipelineSpec spec_of(const Pipelines::Pipeline& pipeline) {
  return parse_pipeline(pipeline.name, pipeline.name + "/pipeline.toml",
                        fmt::format("{}\n", fmt::join(pipeline.lines, "\n")));
}

void PipelineRegistry::offer(WorkerId worker, const Pipelines& pipelines) {
  std::map<std::string, Offer>& own = offers_[worker];
  own.clear();
  for (const Pipelines::Pipeline& pipeline : pipelines.pipelines) {
    own.emplace(pipeline.name, Offer{pipeline, spec_of(pipeline)});
  }
  changed_ = true;
}

void PipelineRegistry::lose(WorkerId worker) { changed_ = offers_.erase(worker) > 0 || changed_; }

const PipelineRegistry::Offer* PipelineRegistry::agreed(const std::string& name, std::string& reason) const {
  const Offer* first = nullptr;
  for (const auto& [worker, own] : offers_) {
    const auto found = own.find(name);
    if (found == own.end()) continue;
    const Offer& offer = found->second;
    if (!offer.spec.status.ok()) {
      reason = offer.spec.status.message();
      return nullptr;
    }
    if (first != nullptr && first->spec.content != offer.spec.content) {
      reason = fmt::format("the workers have different files {}; copy the same file to all", offer.spec.file);
      return nullptr;
    }
    if (first == nullptr) first = &offer;
  }
  return first;
}

PipelineRegistry::Decisions PipelineRegistry::decide(const ModelsByName& models, TimePoint now) {
  changed_ = false;
  Decisions decisions;
  std::set<std::string> names;
  for (const auto& [worker, own] : offers_) {
    for (const auto& [name, offer] : own) names.insert(name);
  }
  const std::map<std::string, PipelineId> before = served_;
  for (const auto& [name, id] : before) {
    if (!names.contains(name)) retire(name, decisions, now);
  }
  std::map<std::string, std::string> unserved;
  for (const std::string& name : names) {
    std::string reason = serve(name, models, decisions, now);
    if (reason.empty()) continue;
    const auto known = unserved_.find(name);
    if (known == unserved_.end() || known->second != reason) decisions.unserved.emplace(name, reason);
    unserved.emplace(name, std::move(reason));
  }
  decisions.news = decisions.news || unserved != unserved_;
  unserved_ = std::move(unserved);
  return decisions;
}

// Empty: it is served; else why not.
std::string PipelineRegistry::serve(const std::string& name, const ModelsByName& models, Decisions& decisions,
                                    TimePoint now) {
  std::string reason;
  const Offer* offer = agreed(name, reason);
  if (offer != nullptr && models.contains(name)) reason = "a model has its name; rename the folder of one of them";
  if (offer != nullptr && reason.empty()) reason = missing_models(offer->spec, models);
  const auto shown = served_.find(name);
  if (reason.empty() && shown != served_.end()) {
    const Entry& entry = entries_.at(shown->second);
    if (entry.content == offer->spec.content && is_made_of(*entry.info->pipeline, offer->spec, models)) return {};
  }
  retire(name, decisions, now);
  if (!reason.empty()) return reason;
  const PipelineId id(last_id_ + 1);
  const Result<std::shared_ptr<const ModelInfo>> resolved = resolve(offer->spec, models, id);
  if (!resolved.ok()) return std::string(resolved.status().message());
  ++last_id_;
  entries_[id] = {name, offer->file.lines, offer->spec.content, *resolved};
  served_[name] = id;
  decisions.added.push_back((*resolved)->pipeline);
  decisions.served.push_back(name);
  decisions.news = true;
  return {};
}

void PipelineRegistry::retire(const std::string& name, Decisions& decisions, TimePoint now) {
  const auto shown = served_.find(name);
  if (shown == served_.end()) return;
  Entry& entry = entries_.at(shown->second);
  entry.retiring = true;
  entry.since = now;
  served_.erase(shown);
  decisions.news = true;
}

std::vector<PipelineId> PipelineRegistry::take_retired(TimePoint now) {
  std::vector<PipelineId> retired;
  for (const auto& [id, entry] : entries_) {
    if (entry.retiring && entry.in_flight == 0 && now >= entry.since + ModelRegistry::kNotificationTime)
      retired.push_back(id);
  }
  for (const PipelineId id : retired) entries_.erase(id);
  return retired;
}

TimePoint PipelineRegistry::next() const {
  TimePoint next = TimePoint::infinite_future();
  for (const auto& [id, entry] : entries_) {
    if (entry.retiring && entry.in_flight == 0) next = std::min(next, entry.since + ModelRegistry::kNotificationTime);
  }
  return next;
}

Pipelines PipelineRegistry::served() const {
  Pipelines served;
  for (const auto& [name, id] : served_) {
    if (served.pipelines.size() == kPipelinesMax) break;
    served.pipelines.push_back({id, name, entries_.at(id).lines});
  }
  return served;
}

bool PipelineRegistry::uses(ModelId model) const {
  return std::ranges::any_of(entries_, [model](const auto& entry) {
    return entry.second.in_flight > 0 &&
           std::ranges::any_of(entry.second.info->pipeline->stages,
                               [model](const PipelineStage& stage) { return stage.model->id == model; });
  });
}

const PipelineInfo* PipelineRegistry::count(PipelineId pipeline, int64_t change) {
  const auto found = entries_.find(pipeline);
  if (found == entries_.end()) return nullptr;
  found->second.in_flight += static_cast<uint64_t>(change);
  return found->second.info->pipeline.get();
}

const PipelineInfo* PipelineRegistry::on_request(PipelineId pipeline) { return count(pipeline, 1); }
const PipelineInfo* PipelineRegistry::on_answer(PipelineId pipeline) { return count(pipeline, -1); }

}  // namespace foliot
