// TaskRegistry: the tasks that a cluster serves (cluster/sessions/definition_registry.h, decision 0205): each with
// those of its variants that are served, while there is one.
#ifndef FOLIOT_CLUSTER_SESSIONS_TASK_REGISTRY_H_
#define FOLIOT_CLUSTER_SESSIONS_TASK_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "answer/tasks/task_spec.h"
#include "cluster/sessions/definition_registry.h"
#include "cluster/transport/message.h"
#include "foundation/core/catalog.h"
#include "foundation/core/task_info.h"

namespace foliot {

struct TaskKind {
  using Message = Tasks;
  using Definition = Tasks::Task;
  using Id = ServedTaskId;
  using Info = TaskInfo;
  using Spec = TaskSpec;
  static constexpr EntryRole kRole = EntryRole::kTask;

  static std::vector<Definition>& list(Message& message) { return message.tasks; }
  static const std::vector<Definition>& list(const Message& message) { return message.tasks; }
  static std::shared_ptr<const Info> info_of(const ModelInfo& info) { return info.task; }
  static Spec parse(const Definition& definition);
  static bool equal(const Spec& a, const Spec& b);
  static std::string missing(const Spec& spec, const ModelsByName& models);
  static bool can_serve(const Spec& spec, const ModelsByName& models);
  static bool is_made_of(const ModelInfo& info, const Spec& spec, const ModelsByName& models);
  static std::vector<ModelId> models_of(const ModelInfo& info);
  static std::vector<std::string> model_names(const ModelInfo& info);
  static Result<std::shared_ptr<const ModelInfo>> make(const Spec& spec, const ModelsByName& models, Id id);
};

using TaskRegistry = DefinitionRegistry<TaskKind>;

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_TASK_REGISTRY_H_
