#include "models/repository/repository_watch.h"

#include <utility>

namespace foliot {

RepositoryWatch::RepositoryWatch(const std::vector<ModelFolder>& served) {
  for (const ModelFolder& folder : served) {
    Known& known = known_[folder.name];
    known.reported = known.seen = signature_of(folder);
  }
}

RepositoryWatch::Changes RepositoryWatch::look(const std::vector<ModelFolder>& folders) {
  std::map<std::string, std::string> present;
  for (const ModelFolder& folder : folders) present[folder.name] += signature_of(folder);
  for (const auto& [name, signature] : present) known_.try_emplace(name);

  Changes changes;
  for (auto next = known_.begin(); next != known_.end();) {
    const auto entry = next++;
    Known& known = entry->second;
    const std::string seen = std::exchange(known.seen, std::move(present[entry->first]));
    if (known.seen != seen) continue;
    if (known.seen != known.reported) {
      std::vector<std::string>& list = known.seen.empty() ? changes.unload : changes.load;
      if (list.size() == kChangesMax) continue;
      list.push_back(entry->first);
      known.reported = known.seen;
    }
    if (known.seen.empty()) known_.erase(entry);
  }
  return changes;
}

void RepositoryWatch::report_again(const std::string& name) {
  if (const auto found = known_.find(name); found != known_.end()) found->second.reported = "?";
}

}  // namespace foliot
