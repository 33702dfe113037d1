// CatalogFollower: carries out work each time that the catalog has changed, on a thread of its own; and again after
// `retry_after` as long as some is left to do.
//
// Threading: start() and stop() by its owner, the rest by any thread.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_CATALOG_FOLLOWER_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_CATALOG_FOLLOWER_H_

#include <functional>
#include <utility>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/thread.h"

namespace foliot {

class CatalogFollower {
 public:
  // `work`: false: something is left to do. The catalog outlives this.
  CatalogFollower(Catalog& catalog, std::function<bool()> work, Duration retry_after)
      : catalog_(catalog), work_(std::move(work)), retry_after_(retry_after) {}
  ~CatalogFollower() { stop(); }

  Status start();
  // Waits for the work that is being carried out.
  void stop();
  // As if the catalog had changed.
  void request();
  // Until what was requested so far is carried out, or `is_over` returns true.
  void wait_until_idle(const std::function<bool()>& is_over);

 private:
  void run();

  Catalog& catalog_;
  const std::function<bool()> work_;
  const Duration retry_after_;
  Mutex mutex_;
  Condition changed_;
  Condition idle_;
  bool is_wanted_ GUARDED_BY(mutex_) = true;
  bool is_working_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Catalog::Watch watch_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_CATALOG_FOLLOWER_H_
