// ModelHost: brings models into service and out of it: preloads on the workers of all
// devices, adds to the controller, and shows in the catalog, in this order, and the other
// way round.
//
// A model is served as soon as its smallest batch size is ready, if the controller
// takes it in parts. The others are made meanwhile, in ascending order, and the
// controller is notified of each when it is ready, so it never plans one that is not.
//
// A model that leaves is first taken out of the catalog. Requests that came
// before are still served; when the last of them is answered it leaves the
// controller, and then the worker. Nothing is refused because of an update.
//
// A container model runs on devices of its own, its replicas (node/repository/container_model.h); it
// comes and goes in the same order.
#ifndef FOLIOT_NODE_REPOSITORY_MODEL_HOST_H_
#define FOLIOT_NODE_REPOSITORY_MODEL_HOST_H_

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/worker/engine.h"
#include "engine/worker/worker.h"
#include "foundation/base/mutex.h"
#include "foundation/core/catalog.h"
#include "foundation/core/model_sink.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"
#include "node/devices/compiled_model.h"
#include "node/repository/container_model.h"

namespace foliot {

// Threading: any; add() and remove() of one model at a time.
class ModelHost {
 public:
  // All run every model.
  struct Device {
    Engine& engine;
    Worker& worker;
    // Makes the worker's memory large enough for a program, before it is added.
    std::function<Status(const Program&)> make_room{};
  };
  struct Parts {
    Catalog& catalog;
    ModelSink& planner;
    std::vector<Device> devices;                 // at least one
    std::string kind{kDefaultKind};              // of all of them
    const ContainerParts* containers = nullptr;  // null: container models are not served here
    // Called with each compiled model that is served from now on, by the thread that adds it.
    std::function<void(const ModelInfo&)> on_served{};
  };
  // All references outlive this. `page_count`: of each device.
  ModelHost(const Parts& parts, uint64_t page_bytes, uint32_t page_count, uint32_t models_max);
  ~ModelHost() {
    set_on_progress({});
    set_on_damage({});
  }

  // Serves this model from now on; returns when all of its batch sizes are ready. An
  // earlier one of that name then leaves, and serves until then, so that the new one
  // can do all that it could. Does nothing if that is the very same. Errors, which name
  // the batch size if one could not be made ready, leave the earlier one in place, or
  // none.
  // `columns`: CompiledModel::columns.
  Status add(const ModelFolder& folder, const Package& package,
             const std::optional<std::vector<std::string>>& columns = {});
  // Returns where container models are served; nullptr: none are.
  const ContainerParts* containers() const { return parts_.containers; }
  // Starts a container model; nullptr if that is served already. May take as long as it takes
  // to load, and needs nothing of this meanwhile. Errors: ContainerModel::start()'s;
  // kUnimplemented where none are served.
  Result<std::unique_ptr<ContainerModel>> start_container(const ModelFolder& folder,
                                                          const std::function<bool()>& cancelled);
  // As for a compiled model.
  Status add(std::unique_ptr<ContainerModel> container);
  using Gone = std::function<void(const Status&)>;
  // Stops serving it. `gone` is called by sweep() when nothing of it is left.
  // Errors: kNotFound, and `gone` is dropped.
  Status remove(const std::string& name, Gone gone);

  // Takes the model out of service, as remove() does, if its package is damaged; its entry says so, and that it is
  // loading. Returns what it was made of; nullopt: it is not served, or whole.
  std::optional<ModelFolder> withdraw_damaged(const std::string& name);

  // Takes those that leave as far as they can go. True if any are left: call again after
  // on_progress.
  bool sweep();
  // Called, from any thread, when one of those that leave may be able to go further: it has
  // lost its last lease, or the controller has forgotten it. Not after this was destroyed.
  // Must not call back.
  void set_on_progress(std::function<void()> on_progress);
  // Called, from any thread, when the package of a model that is served is found to be damaged. Not after this was
  // destroyed. Must not call back.
  void set_on_damage(std::function<void(const std::string& model)> on_damage);
  // Ends the waits for models to leave.
  void abandon();
  // Ends the processes of all container models. REQUIRES: no other call is in progress, and
  // the controller's loop runs.
  void stop_containers();

 private:
  // What the front end holds is a lease: when it expires, no request for the
  // model is on its way or under way.
  struct Served {
    ModelId id;
    std::weak_ptr<const ModelInfo> lease;
    std::weak_ptr<const Program> program{};
    std::shared_ptr<PackageFile> file{};          // null: it is in none
    std::shared_ptr<const ModelFolder> folder{};  // of a compiled model
    std::shared_ptr<ContainerModel> container{};  // null: it is compiled
  };
  // Outlives this: leases notify it.
  struct Progress {
    Mutex mutex;
    std::function<void()> notify GUARDED_BY(mutex);
    std::function<void(const std::string&)> on_damage GUARDED_BY(mutex);
    void made();
    void found_damage(const std::string& model);
  };
  struct Leaving {
    Served served;
    Gone gone;
    bool asked = false;  // the controller, to forget it
    std::atomic<bool> forgotten{false};
  };

  bool serves(const ModelFolder& folder, const Package& package);
  bool serves(const ModelFolder& folder, const std::string& content);
  Result<ModelId> take_id();
  void give_back(ModelId id);
  bool has(const std::string& name);
  Status start(const CompiledModel& model, ModelId id);
  // Adds the model to the engines and makes the `ready` smallest batch sizes ready.
  // Returns what the workers' tables need.
  Result<std::vector<WorkerModel>> add(const EngineModel& model, size_t ready);
  Status prepare(ModelId id, size_t batch_index);
  void serve(const EngineModel& model, const ModelFolder& folder, std::vector<WorkerModel> added, size_t ready);
  using Lease = std::shared_ptr<const ModelInfo>;
  Lease lease(const std::shared_ptr<const ModelInfo>& info) const;
  // Shows it to clients, in place of an earlier version, which then leaves.
  void show(const Lease& lease, Served served);
  ModelSink& planner_of(const Served& served) const;
  void end(const Served& served);
  void leave(Served served, Gone gone) REQUIRES(mutex_);
  bool left(Leaving& leaving);

  Parts parts_;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  uint64_t page_bytes_;
  uint32_t page_count_;
  uint32_t models_max_;

  Mutex mutex_;
  std::map<std::string, Served> served_ GUARDED_BY(mutex_);
  std::list<Leaving> leaving_ GUARDED_BY(mutex_);
  std::vector<ModelId> free_ids_ GUARDED_BY(mutex_);
  uint32_t next_id_ GUARDED_BY(mutex_) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_MODEL_HOST_H_
