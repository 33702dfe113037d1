// PackageShare: where the servers of several machines find what one of them has compiled.
//
// Threading: any thread. Neither call may fail a model: what is not shared is compiled.
#ifndef FOLIOT_MODELS_REPOSITORY_PACKAGE_SHARE_H_
#define FOLIOT_MODELS_REPOSITORY_PACKAGE_SHARE_H_

#include <filesystem>
#include <string>

namespace foliot {

class PackageShare {
 public:
  virtual ~PackageShare() = default;

  // Writes the package of this key into the open, empty file `output`. False: there is none, or it cannot be had now.
  virtual bool fetch(const std::string& key, int output) = 0;
  // Shares a package that was compiled here, in its own time.
  virtual void offer(const std::string& key, const std::filesystem::path& package) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_PACKAGE_SHARE_H_
