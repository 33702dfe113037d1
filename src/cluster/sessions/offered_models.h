// OfferedModels: the models that a worker can run, by the worker's and the controller's
// ids. Each is offered; named, once all workers have it; withdrawn, when it leaves the
// repository or another of its name comes; and released, when the controller has no
// more use of it and no page holds it. Then it is forgotten (cluster/transport/message.h).
//
// With the controller go the names. What is withdrawn is not offered to the next one.
//
// Threading: none.
#ifndef FOLIOT_CLUSTER_SESSIONS_OFFERED_MODELS_H_
#define FOLIOT_CLUSTER_SESSIONS_OFFERED_MODELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster/sessions/staging_area.h"
#include "cluster/transport/message.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"

namespace foliot {

class OfferedModels {
 public:
  using Gone = std::function<void()>;

  // Ids are the worker's own, below `models_max`. Returns the one to withdraw in its
  // favour. REQUIRES: its id is not in use.
  std::optional<ModelId> add(std::shared_ptr<const ModelInfo> model);
  // It is not to be served here any more. `gone` is called when it is forgotten, at
  // once if it was released before. True if it is to be withdrawn now, and was not
  // before. REQUIRES: there is such a model.
  bool remove(ModelId model, Gone gone);

  // The list for a registration, in the order of names() and its Welcome: those that
  // were named last come first. Ends what there was of an earlier session.
  const std::vector<ModelId>& begin();
  const ModelInfo& info(ModelId model) const { return *models_.at(model).info; }
  // Errors: kInvalidArgument if they are not as many as were sent.
  Status welcome(std::span<const ModelId> names);
  // Errors of both: kInvalidArgument if there is no such model, or it is not so far.
  Status name(ModelId model, ModelId name);
  Status release(ModelId model);
  void lose_names();

  // nullopt: the controller does not use such an id.
  std::optional<ModelId> named(ModelId name) const;
  bool is_named(ModelId model) const { return models_.at(model).name != kUnnamed; }
  // Those that pages may not hold when a session begins: withdrawn ones, and those
  // that the last controller had no name for.
  std::vector<ModelId> strays() const;
  // nullptr: there is no such bucket.
  const RowLayout* layout(ModelId model, BucketId bucket) const;

 private:
  struct Model {
    std::shared_ptr<const ModelInfo> info;
    std::vector<RowLayout> layouts;  // by bucket
    ModelId name = kUnnamed;
    uint64_t named_at = 0;   // the later, the more; 0: never
    bool nameless = false;   // the controller registered the worker without naming it
    bool withdrawn = false;  // not offered any more
    bool released = false;
    Gone gone;  // set once removed
  };

  Model* find(ModelId model);
  void forget_if_over(ModelId model);

  std::map<ModelId, Model> models_;
  std::unordered_map<ModelId, ModelId> by_name_;
  std::vector<ModelId> listed_;
  uint64_t namings_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_OFFERED_MODELS_H_
