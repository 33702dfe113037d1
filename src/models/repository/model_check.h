// ModelCheck: finds out whether a model of a repository can be served, without serving
// it: it was compiled before, or its smallest batch size can be compiled now. The
// result is discarded, so that a check changes nothing in the repository.
#ifndef FOLIOT_MODELS_REPOSITORY_MODEL_CHECK_H_
#define FOLIOT_MODELS_REPOSITORY_MODEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "models/repository/compile_process.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"

namespace foliot {

// Threading: one thread.
class ModelCheck {
 public:
  struct Finding {
    bool is_compiled = false;        // else it can be
    std::vector<std::string> notes;  // Program::notes, of one that is compiled
  };

  // `threads`: of one EXEC. Both references outlive this.
  ModelCheck(PackageStore& packages, CompileProcess& compiler, uint32_t threads)
      : packages_(packages), compiler_(compiler), threads_(threads) {}

  // Errors: the reason why it cannot be served.
  Result<Finding> check(const ModelFolder& model);

 private:
  PackageStore& packages_;
  CompileProcess& compiler_;
  const uint32_t threads_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_MODEL_CHECK_H_
