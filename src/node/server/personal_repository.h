// PersonalRepository: a repository of models, some of which are personal: a load of these takes
// their newest version, or another one, and their versions are listed.
//
// Bounded: one load and one list of personal models at a time; others meanwhile are refused (kUnavailable).
//
// Threading: as ModelRepository. A call for a personal model occupies the caller's thread no longer
// than it takes to start a thread.
#ifndef FOLIOT_NODE_SERVER_PERSONAL_REPOSITORY_H_
#define FOLIOT_NODE_SERVER_PERSONAL_REPOSITORY_H_

#include <array>
#include <functional>
#include <string>

#include "answer/personal/service/personal_models.h"
#include "foundation/base/mutex.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/thread.h"

namespace foliot {

class PersonalRepository : public ModelRepository {
 public:
  // Both outlive it.
  PersonalRepository(ModelRepository& others, PersonalModels& personal) : others_(others), personal_(personal) {}

  void load(const std::string& name, std::function<void(Status)> done) override;
  void load_version(const std::string& name, const VersionRequest& request, std::function<void(Status)> done) override;
  void list_versions(const std::string& name, std::function<void(Result<VersionList>)> done) override;
  void unload(const std::string& name, std::function<void(Status)> done) override;

 private:
  // A thread for one piece of work at a time.
  enum Role : size_t { kLoader, kLister, kRoles };
  struct Worker {
    Thread thread{};
    bool is_busy = false;
  };
  // Returns what answers its call, when the next one may come.
  using Work = std::function<std::function<void()>()>;
  // Errors: why `work` is not carried out.
  Status start(Role role, Work work);

  ModelRepository& others_;
  PersonalModels& personal_;
  Mutex mutex_;
  std::array<Worker, kRoles> workers_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_PERSONAL_REPOSITORY_H_
