// VersionList: the versions of a personal model, as operators see them; and VersionRequest, what a load of it may ask
// for (docs/LEARNING.md).
#ifndef FOLIOT_FOUNDATION_CORE_VERSION_LIST_H_
#define FOLIOT_FOUNDATION_CORE_VERSION_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foliot {

// Of one version with the one that was served then, on observations that are withheld from trainers. Losses are mean
// squared errors, in which each user counts alike; 0 without observations.
struct VersionComparison {
  std::string with{};
  uint64_t observations = 0;
  uint64_t users = 0;
  double loss = 0;
  double loss_with = 0;  // of the other version
};

struct VersionEntry {
  std::string name{};
  std::string reason{};                           // why it was not taken; empty: it was, or was not tried
  std::optional<VersionComparison> comparison{};  // the last one since the server started
};

struct VersionList {
  std::string served{};
  std::string before{};  // what a rollback takes; empty: there is none
  bool is_chosen =
      false;  // an operator took what is served: of those that were there then, no other is taken by itself
  std::vector<VersionEntry> versions{};  // by number; then what was tried and is not there any more
};

struct VersionRequest {
  std::string version{};   // empty: the newest
  bool compare = true;     // it is taken only if it is better
  bool take = true;        // false: it is only compared
  bool roll_back = false;  // to the version before
  std::string unknown{};   // a parameter that is none of these, which a load of a personal model refuses

  bool is_plain() const { return version.empty() && compare && take && !roll_back; }
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_VERSION_LIST_H_
