// ModelHost: brings models into service and out of it: compiles, preloads on the
// worker, tells the controller, and shows them in the catalog, in this order, and
// the other way round.
#ifndef FOLIOT_APP_MODEL_HOST_H_
#define FOLIOT_APP_MODEL_HOST_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/controller_loop.h"
#include "core/catalog.h"
#include "repository/model_folder.h"
#include "repository/package_store.h"
#include "worker/device_engine.h"
#include "worker/worker.h"

namespace foliot {

// Threading: one thread at a time (the server's own while it starts, then that of
// the repository's requests).
class ModelHost {
 public:
  struct Parts {
    Catalog& catalog;
    PackageStore& packages;
    DeviceEngine& engine;
    Worker& worker;
    ControllerLoop& controller;
  };
  // All references outlive the host.
  ModelHost(const Parts& parts, uint64_t page_bytes, uint32_t page_count, uint32_t models_max);

  // Serves this model from now on, in place of an earlier one of that name, which
  // is served until the new one is ready. Errors leave the earlier one in place.
  Status add(const ModelFolder& folder, const Package& package);
  // Stops serving it; returns when nothing of it is left. Errors: kNotFound.
  Status remove(const std::string& name);

 private:
  struct Served {
    ModelId id;
    std::weak_ptr<const ModelInfo> info;
  };

  Result<ModelId> free_id();
  Result<Served> start(const ModelFolder& folder, const Package& package, ModelId id);
  void retire(Served served);

  Parts parts_;
  uint64_t page_bytes_;
  uint32_t page_count_;
  uint32_t models_max_;
  std::map<std::string, Served> served_;
  // Removed models. Their ids are free again once nobody holds their info any
  // more, and so nobody can send a request in their name.
  std::vector<Served> retired_;
  uint32_t next_id_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_APP_MODEL_HOST_H_
