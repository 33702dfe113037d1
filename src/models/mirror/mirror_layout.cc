#include "models/mirror/mirror_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "foundation/base/escaped_text.h"
#include "foundation/objectstore/object_address.h"

namespace foliot {
namespace {

bool is_model_file(std::string_view key) {
  return key.find('/') == key.npos && (key.ends_with(".onnx") || key.starts_with("model.") || key == "MLmodel");
}

// Parts "." and ".." are no hidden files: they are refused.
bool is_hidden(std::string_view key) {
  for (size_t begin = 0; begin < key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    if (part.starts_with('.') && part != "." && part != "..") return true;
    begin = end + 1;
  }
  return false;
}

// The first key that has another one as a folder; empty: none.
std::string find_file_and_folder(const std::map<std::string, size_t>& paths) {
  for (const auto& [path, index] : paths) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      if (const std::string parent = path.substr(0, slash); paths.contains(parent)) return parent;
    }
  }
  return {};
}

}  // namespace

std::map<std::string, MirroredFolder> lay_out(const std::vector<StoredObject>& objects, const std::string& name) {
  const bool is_one_model = std::ranges::any_of(objects, is_model_file, &StoredObject::key);
  std::map<std::string, MirroredFolder> folders;
  for (const StoredObject& object : objects) {
    const std::string_view key = object.key;
    const bool is_directly_below = key.find('/') == key.npos;
    if (key.ends_with('/') || is_hidden(key) || (is_directly_below && !is_one_model)) continue;
    const std::string first(key.substr(0, key.find('/')));
    MirroredFolder& folder = folders[is_one_model ? name : first];
    if (!is_safe_key(key)) {
      folder.status = Status::invalid_argument(
          fmt::format("the key {} is no path of a file: an empty part, '.', '..', a backslash, a control character "
                      "or more than 1024 bytes; rename the object",
                      in_quotes(key)));
      continue;
    }
    if (object.etag.empty() || object.etag.find_first_of(" \t\r\n") != object.etag.npos) {
      folder.status = Status::invalid_argument(
          fmt::format("the object '{}' has no ETag, which distinguishes its versions", object.key));
      continue;
    }
    folder.paths.emplace(is_one_model ? name + "/" + object.key : object.key, folder.objects.size());
    folder.objects.push_back(object);
  }
  for (auto& [folder_name, folder] : folders) {
    const std::string both = find_file_and_folder(folder.paths);
    if (both.empty() || !folder.status.ok()) continue;
    folder.status =
        Status::invalid_argument(fmt::format("'{}' is an object and the folder of others; remove one", both));
  }
  return folders;
}

}  // namespace foliot
