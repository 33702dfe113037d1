// ServedTasks: the tasks of a repository, shown in the catalog and registered with the part that chooses their
// variants (foundation/core/served_definitions.h), each with those of its variants that are ready, while there is one.
#ifndef FOLIOT_ANSWER_TASKS_SERVED_TASKS_H_
#define FOLIOT_ANSWER_TASKS_SERVED_TASKS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "answer/tasks/task_spec.h"
#include "foundation/core/catalog.h"
#include "foundation/core/served_definitions.h"
#include "foundation/core/task_sink.h"

namespace foliot {

struct ServedTaskKind {
  using Spec = TaskSpec;
  using Sink = TaskSink;
  static constexpr EntryRole kRole = EntryRole::kTask;
  static constexpr std::string_view kFile = "task.toml";

  static void check(Spec& task, const std::set<std::string>& tasks);
  static bool is_same(const Spec& a, const Spec& b);
  static std::set<std::string> model_names(const Spec& task);
  static void describe(const Spec& task, const Catalog& catalog, const std::shared_ptr<const ModelInfo>& shown,
                       uint32_t id, CatalogEntry& entry);
  static void add(Sink& sink, const ModelInfo& info) { sink.add_task(info.task); }
  static void remove(Sink& sink, const ModelInfo& info) { sink.remove_task(info.task->id); }
};

using ServedTasks = ServedDefinitions<ServedTaskKind>;

}  // namespace foliot

#endif  // FOLIOT_ANSWER_TASKS_SERVED_TASKS_H_
