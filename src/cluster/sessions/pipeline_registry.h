// PipelineRegistry: the pipelines that a cluster serves (cluster/sessions/definition_registry.h, decision 0121): each
// while the models of all of its stages are served.
#ifndef FOLIOT_CLUSTER_SESSIONS_PIPELINE_REGISTRY_H_
#define FOLIOT_CLUSTER_SESSIONS_PIPELINE_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "answer/pipelines/resolve.h"
#include "cluster/sessions/definition_registry.h"
#include "cluster/transport/message.h"
#include "foundation/core/catalog.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {

// A file as messages carry it, and back.
std::vector<std::string> lines_of(std::string_view text);
std::string text_of(const std::vector<std::string>& lines);

struct PipelineKind {
  using Message = Pipelines;
  using Definition = Pipelines::Pipeline;
  using Id = PipelineId;
  using Info = PipelineInfo;
  using Spec = PipelineSpec;
  static constexpr EntryRole kRole = EntryRole::kPipeline;

  static std::vector<Definition>& list(Message& message) { return message.pipelines; }
  static const std::vector<Definition>& list(const Message& message) { return message.pipelines; }
  static std::shared_ptr<const Info> info_of(const ModelInfo& info) { return info.pipeline; }
  static Spec parse(const Definition& definition);
  static bool equal(const Spec& a, const Spec& b) { return a.content == b.content; }
  static std::string missing(const Spec& spec, const ModelsByName& models);
  static bool can_serve(const Spec& spec, const ModelsByName& models) { return missing(spec, models).empty(); }
  static bool is_made_of(const ModelInfo& info, const Spec& spec, const ModelsByName& models);
  static std::vector<ModelId> models_of(const ModelInfo& info);
  static std::vector<std::string> model_names(const ModelInfo& info);
  static Result<std::shared_ptr<const ModelInfo>> make(const Spec& spec, const ModelsByName& models, Id id) {
    return resolve(spec, models, id);
  }
};

using PipelineRegistry = DefinitionRegistry<PipelineKind>;

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_PIPELINE_REGISTRY_H_
