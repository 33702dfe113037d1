// Catalog: the models that are served, as the front end sees them, and the port
// through which a client may load and unload them.
#ifndef FOLIOT_CORE_CATALOG_H_
#define FOLIOT_CORE_CATALOG_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/model_info.h"

namespace foliot {

enum class ModelState : uint8_t { kUnavailable, kLoading, kReady, kUnloading };
std::string_view to_string(ModelState state);  // "UNAVAILABLE", "LOADING", "READY", "UNLOADING"

struct CatalogEntry {
  std::string name;
  std::string version;
  ModelState state = ModelState::kUnavailable;
  // Why it is unavailable; of one that is ready: why another version is not served
  // in its place.
  std::string reason;
  std::shared_ptr<const ModelInfo> info;  // set when kReady
};

// Name -> entry. In this version one version per name is served.
//
// Threading: any thread. Readers take an immutable snapshot, and never wait for a
// writer that makes the next one.
class Catalog {
 public:
  using Entries = std::map<std::string, CatalogEntry, std::less<>>;

  void put(CatalogEntry entry);
  void remove(std::string_view name);
  std::shared_ptr<const Entries> snapshot() const;
  // True from set_ready() on: every model that should be served at the start is
  // compiled and profiled, or is known to be broken. What is loaded later does not
  // make a server unready.
  bool ready() const;
  // False again: whoever serves them is lost.
  void set_ready(bool ready = true);

 private:
  void change(const std::function<void(Entries&)>& by);

  std::mutex writers_;        // held while the next snapshot is made
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();
  bool ready_ = false;
};

// Loads and unloads models at run time; calls may take as long as a compilation.
class ModelRepository {
 public:
  virtual ~ModelRepository() = default;
  // `done` is called exactly once, from any thread.
  virtual void load(const std::string& name, std::function<void(Status)> done) = 0;
  virtual void unload(const std::string& name, std::function<void(Status)> done) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CORE_CATALOG_H_
