// StoredPackages: a PackageShare in an object store. A package is the object KEY.foliot, which is written once.
//
// After a call that failed for now (kUnavailable), the store is not asked for kPause, so that a start does not wait for
// it once for each model. What is offered waits for a thread of its own, at most kOffersMax of it; more is not shared.
#ifndef FOLIOT_MODELS_MIRROR_STORED_PACKAGES_H_
#define FOLIOT_MODELS_MIRROR_STORED_PACKAGES_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "foundation/objectstore/object_store.h"
#include "foundation/platform/thread.h"
#include "models/repository/package_share.h"

namespace foliot {

struct StoredPackagesOptions {
  // As in MirrorOptions.
  std::function<std::unique_ptr<ObjectStore>(std::function<bool()> cancelled)> connect;
  std::function<void(Severity, const std::string&)> log;  // from any thread
  std::function<TimePoint()> now;
};

class StoredPackages : public PackageShare {
 public:
  static constexpr Duration kPause = Duration::seconds(30);
  static constexpr size_t kOffersMax = 1024;

  // Errors: as Thread::start().
  static Result<std::unique_ptr<StoredPackages>> start(StoredPackagesOptions options);
  // Ends a transfer under way; what waits is not shared.
  ~StoredPackages() override;

  bool fetch(const std::string& key, int output) override;
  void offer(const std::string& key, const std::filesystem::path& package) override;

 private:
  struct Offer {
    std::string key;
    std::filesystem::path package;
  };
  explicit StoredPackages(StoredPackagesOptions options) : options_(std::move(options)) {}
  void run();
  Status store(ObjectStore& store, const Offer& offer) const;
  Status fetch_now(const std::string& key, int output);
  void fail(const Status& status);

  const StoredPackagesOptions options_;
  std::atomic<bool> stopping_{false};
  Mutex fetching_;
  std::unique_ptr<ObjectStore> fetched_from_ GUARDED_BY(fetching_);
  Mutex mutex_;
  TimePoint paused_until_ GUARDED_BY(mutex_);
  std::deque<Offer> offers_ GUARDED_BY(mutex_);
  Condition changed_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_MIRROR_STORED_PACKAGES_H_
