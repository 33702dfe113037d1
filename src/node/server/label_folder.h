// LabelFolder: the labels and splits of a cluster's models, which a front end reads from NAME/model.toml in its folder
// of applications, as both say which model a call gets. Which versions there are the workers say: what names another
// one waits for it (answer/versions/served_versions.h).
//
// Threading: one owner, one call at a time. Blocks on files.
#ifndef FOLIOT_NODE_SERVER_LABEL_FOLDER_H_
#define FOLIOT_NODE_SERVER_LABEL_FOLDER_H_

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "answer/versions/served_versions.h"
#include "foundation/base/status.h"

namespace foliot {

class LabelFolder {
 public:
  // `versions` outlives this.
  LabelFolder(std::filesystem::path folder, ServedVersions& versions)
      : folder_(std::move(folder)), versions_(versions) {}

  // Takes what the files say now. Returns what of it is broken, as sentences: then the earlier labels hold. Errors:
  // list_repository()'s.
  Result<std::vector<std::string>> read();

 private:
  const std::filesystem::path folder_;
  ServedVersions& versions_;
  std::set<std::string> named_;  // models that have labels or a split
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_LABEL_FOLDER_H_
