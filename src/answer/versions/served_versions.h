// ServedVersions: shows in the catalog, under the name that clients call, each model with several versions
// (foundation/core/version_table.h): which versions there are, of which the highest that is ready answers by default,
// and the labels and the split among them.
//
// The versions come and go as entries of their own. New rules are taken when every version that they name is ready:
// until then the earlier ones hold, so that a label that moves refuses nothing. The first rules are taken at once.
//
// A model that is one version alone and becomes one of several keeps its entry until a version as high is ready; the
// other way round it takes the name when it is ready.
//
// Threading: any thread; an entry is changed by the thread that changed one of its versions.
#ifndef FOLIOT_ANSWER_VERSIONS_SERVED_VERSIONS_H_
#define FOLIOT_ANSWER_VERSIONS_SERVED_VERSIONS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "foundation/base/mutex.h"
#include "foundation/core/catalog.h"
#include "foundation/core/version_table.h"

namespace foliot {

class ServedVersions {
 public:
  // The catalog outlives this.
  explicit ServedVersions(Catalog& catalog);
  ServedVersions(const ServedVersions&) = delete;
  ServedVersions& operator=(const ServedVersions&) = delete;

  // Sets the rules of a model, which may have no versions yet.
  void set_rules(const std::string& name, VersionRules rules);
  // Until its rules change, this version has no share of the split: what has most of it gets that. The index says why.
  // Labels keep naming it. Without effect on a version that has no share, or all of it.
  void take_out(const std::string& name, uint64_t version, const std::string& reason);
  // From now on, until set_rules(), one version alone has the name; others that still become ready do not take it.
  void set_one(const std::string& name);

 private:
  struct Model {
    std::set<uint64_t> versions{};
    VersionRules rules{};
    std::optional<VersionRules> next{};
    std::map<uint64_t, std::string> taken_out{};  // why
    bool has_rules = false;
    bool is_one = false;   // set_one()
    bool is_lone = false;  // one version alone has taken the name, later than any of these became ready
    std::shared_ptr<std::atomic<uint64_t>> split_count = std::make_shared<std::atomic<uint64_t>>(0);
  };

  void on_change(const std::string& name, const Catalog::EntryPtr& entry);
  void put_back(const std::string& name, Model& model) REQUIRES(mutex_);
  void set_reason(const std::string& name, uint64_t version, const std::string& reason) REQUIRES(mutex_);
  void update(const std::string& name, Model& model) REQUIRES(mutex_);
  CatalogEntry entry_of(const std::string& name, const Model& model) const REQUIRES(mutex_);
  bool is_ready(const std::string& name, uint64_t version) const;

  Catalog& catalog_;
  RecursiveMutex mutex_;  // changing an entry notifies this again
  std::map<std::string, Model, std::less<>> models_ GUARDED_BY(mutex_);
  Catalog::Watch watch_;  // uses all of the above
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_SERVED_VERSIONS_H_
