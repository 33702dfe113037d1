// ServedNames: what clients can call, by the catalog: the model that a name and a version
// stand for, and whether calls should be sent here at all.
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_INFERENCE_SERVED_NAMES_H_
#define FOLIOT_ANSWER_INFERENCE_SERVED_NAMES_H_

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/catalog.h"
#include "foundation/core/model_info.h"

namespace foliot {

class ServedNames {
 public:
  // `strict_readiness`: ready only while all models are served, not one at least. The
  // catalog outlives this.
  explicit ServedNames(const Catalog& catalog, bool strict_readiness = false)
      : catalog_(catalog), strict_readiness_(strict_readiness) {}

  // A model, a pipeline or an application that is ready. `version`: a number or a label; empty: the highest that is
  // ready. Errors: kNotFound, kUnavailable (not ready; what is loading is loaded before others from now on).
  Result<std::shared_ptr<const ModelInfo>> find(std::string_view name, std::string_view version) const;
  // The same for what makes Requests of calls: models and pipelines. Errors: kNotFound for an
  // application, too, kInvalidArgument for a personal model.
  Result<std::shared_ptr<const ModelInfo>> find_model(std::string_view name, std::string_view version) const;

  // All versions of it that are ready, ascending; of what has no versions, itself. Errors as of find().
  Result<std::vector<std::shared_ptr<const ModelInfo>>> find_all(std::string_view name) const;
  struct ChosenVersion {
    Catalog::EntryPtr entry{};                          // null: the name alone decides
    std::shared_ptr<const VersionTable> split_among{};  // null: the call names its version
  };
  // Returns what a call gets which names this: of a model with several versions, one of them. `split_key`:
  // VersionTable::pick(). Errors: kNotFound.
  Result<ChosenVersion> choose_version(std::string_view name, std::string_view version,
                                       std::string_view split_key) const;
  // Its versions; null: it has none, or is not known.
  std::shared_ptr<const VersionTable> versions_of(std::string_view name) const;

  // Returns whether clients see it, ready or not.
  bool knows(std::string_view name) const { return catalog_.find(name) != nullptr; }
  // Every call from now on is to be refused (kDraining).
  void drain() { draining_.store(true, std::memory_order_relaxed); }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  // Whether calls should be sent here: Catalog::can_serve(), and not draining.
  bool ready() const { return !draining() && catalog_.can_serve(strict_readiness_); }
  Catalog::Entries snapshot() const { return catalog_.snapshot(); }

 private:
  Result<std::shared_ptr<const ModelInfo>> ready_info(std::string_view name, std::string_view version,
                                                      const Catalog::EntryPtr& found) const;
  Result<Catalog::EntryPtr> version_of(const CatalogEntry& model, std::string_view version) const;

  const Catalog& catalog_;
  const bool strict_readiness_;
  std::atomic<bool> draining_{false};
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_SERVED_NAMES_H_
