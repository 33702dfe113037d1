// ServedTasks: shows tasks in the catalog, and registers them with the part that chooses their
// variants, for as long as at least one of these is served.
//
// A task is served with the variants that are ready, and again, as another task with an id of
// its own, when one comes, goes or changes: new calls get that one, while those under way keep
// the old one, and by it the old models. With its last call the old one leaves the sink.
//
// Threading: any thread; changes are carried out by the thread that changes the catalog, one
// at a time. The sink is called by whichever thread ends the last call.
#ifndef FOLIOT_TASKS_SERVED_TASKS_H_
#define FOLIOT_TASKS_SERVED_TASKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/catalog.h"
#include "core/task_sink.h"
#include "tasks/task_spec.h"

namespace foliot {

class ServedTasks {
 public:
  // The catalog outlives this. The sink is not called after this is gone.
  ServedTasks(Catalog& catalog, TaskSink& sink);
  ~ServedTasks();
  ServedTasks(const ServedTasks&) = delete;
  ServedTasks& operator=(const ServedTasks&) = delete;

  // Once: shows these from now on; broken ones as unavailable. A model or pipeline of the same name
  // takes the place of a task.
  void serve(std::vector<TaskSpec> tasks);

 private:
  // Outlives this: the last call of a task ends its registration.
  struct Registration {
    std::shared_mutex mutex;  // exclusive: of what changes the pointer
    TaskSink* sink;           // guarded by it; null: this is gone
    void begin(const ModelInfo& info);
    void end(const ModelInfo& info);
  };

  void on_change(const std::string& name, const Catalog::EntryPtr& entry);
  // REQUIRES: mutex_ is held.
  void update(const TaskSpec& task);
  // What the catalog is to show; `shown` if that is right.
  CatalogEntry entry_of(const TaskSpec& task, const Catalog::EntryPtr& shown);
  std::shared_ptr<const ModelInfo> registered(const std::shared_ptr<const ModelInfo>& info) const;

  Catalog& catalog_;
  const std::shared_ptr<Registration> registration_ = std::make_shared<Registration>();
  // They do not change after serve().
  std::map<std::string, TaskSpec, std::less<>> tasks_;
  std::map<std::string, std::vector<const TaskSpec*>, std::less<>> by_model_;
  std::mutex mutex_;      // of the thread that changes entries of tasks
  uint32_t last_id_ = 0;  // guarded by it
  Catalog::Watch watch_;  // uses all of the above
};

}  // namespace foliot

#endif  // FOLIOT_TASKS_SERVED_TASKS_H_
