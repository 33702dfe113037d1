// MirrorLayout: which objects make which folder of a repository, and which cannot.
#ifndef FOLIOT_MODELS_MIRROR_MIRROR_LAYOUT_H_
#define FOLIOT_MODELS_MIRROR_MIRROR_LAYOUT_H_

#include <map>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/objectstore/object_store.h"

namespace foliot {

// A folder of the repository, which is replaced as a whole: a model with all its versions, a pipeline, a task.
struct MirroredFolder {
  std::vector<StoredObject> objects;      // by key
  std::map<std::string, size_t> paths{};  // of the files below the repository: an index of `objects`
  Status status;                          // not ok: why it cannot be mirrored
};

// By name. The first part of a key is the folder's name. If an object directly under the prefix is a model, all objects
// are the one model `name`. Objects with a part that begins with '.', folders' own markers ("a/"), and others directly
// under the prefix are left out. A key that is no path (is_safe_key()), or that is both a file and a folder, refuses
// its folder.
std::map<std::string, MirroredFolder> lay_out(const std::vector<StoredObject>& objects, const std::string& name);

}  // namespace foliot

#endif  // FOLIOT_MODELS_MIRROR_MIRROR_LAYOUT_H_
