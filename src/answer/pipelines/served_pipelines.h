// ServedPipelines: the pipelines of a repository, shown in the catalog and registered with the part that runs
// them (foundation/core/served_definitions.h), each while all models of its stages are served. Where one is not, the
// reason of the pipeline names it.
#ifndef FOLIOT_ANSWER_PIPELINES_SERVED_PIPELINES_H_
#define FOLIOT_ANSWER_PIPELINES_SERVED_PIPELINES_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/core/catalog.h"
#include "foundation/core/pipeline_sink.h"
#include "foundation/core/served_definitions.h"

namespace foliot {

struct ServedPipelineKind {
  using Spec = PipelineSpec;
  using Sink = PipelineSink;
  static constexpr EntryRole kRole = EntryRole::kPipeline;
  static constexpr std::string_view kFile = "pipeline.toml";

  // Stages have no pipelines.
  static void check(Spec& pipeline, const std::set<std::string>& pipelines);
  static bool is_same(const Spec& a, const Spec& b);
  static std::set<std::string> model_names(const Spec& pipeline);
  static void describe(const Spec& pipeline, const Catalog& catalog, const std::shared_ptr<const ModelInfo>& shown,
                       uint32_t id, CatalogEntry& entry);
  static void add(Sink& sink, const ModelInfo& info) { sink.add_pipeline(info.pipeline); }
  static void remove(Sink& sink, const ModelInfo& info) { sink.remove_pipeline(info.pipeline->id); }
};

using ServedPipelines = ServedDefinitions<ServedPipelineKind>;

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PIPELINES_SERVED_PIPELINES_H_
