// RepositoryWatch: the changes in a repository from one look at it to the next. A
// change is reported once, and only when two looks in a row saw the same files: a file
// that is still being written, copied or unpacked waits until it is whole.
#ifndef FOLIOT_MODELS_REPOSITORY_REPOSITORY_WATCH_H_
#define FOLIOT_MODELS_REPOSITORY_REPOSITORY_WATCH_H_

#include <map>
#include <string>
#include <vector>

#include "models/repository/model_folder.h"

namespace foliot {

// Threading: one thread.
class RepositoryWatch {
 public:
  // `served`: what is known already.
  explicit RepositoryWatch(const std::vector<ModelFolder>& served);

  struct Changes {
    std::vector<std::string> load;    // new, or other than before
    std::vector<std::string> unload;  // gone
  };
  // At most so many of each; the others are reported at the next look.
  static constexpr size_t kChangesMax = 64;
  Changes look(const std::vector<ModelFolder>& folders);
  // Reports this model's change once more, since it had no effect.
  void report_again(const std::string& name);

 private:
  struct Known {
    std::string reported;  // signature_of() as last reported; empty: never
    std::string seen;      // at the last look; empty: it was not there
  };
  std::map<std::string, Known> known_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_REPOSITORY_WATCH_H_
