// PersonalRepository: a repository of models, some of which are personal: a load of these takes
// their newest version.
//
// Threading: as ModelRepository. A load of a personal model occupies the caller's thread no longer
// than it takes to start a thread.
#ifndef FOLIOT_NODE_SERVER_PERSONAL_REPOSITORY_H_
#define FOLIOT_NODE_SERVER_PERSONAL_REPOSITORY_H_

#include <functional>
#include <mutex>
#include <string>

#include "answer/personal/service/personal_models.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/thread.h"

namespace foliot {

class PersonalRepository : public ModelRepository {
 public:
  // Both outlive it.
  PersonalRepository(ModelRepository& others, PersonalModels& personal) : others_(others), personal_(personal) {}

  void load(const std::string& name, std::function<void(Status)> done) override;
  void unload(const std::string& name, std::function<void(Status)> done) override;

 private:
  ModelRepository& others_;
  PersonalModels& personal_;
  std::mutex mutex_;
  Thread loader_;  // guarded by mutex_, as is is_loading_
  bool is_loading_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_PERSONAL_REPOSITORY_H_
