#include "answer/pipelines/pipeline_spec.h"

namespace foliot {

std::string to_string(const TensorName& name) {
  return (name.stage.empty() ? name.tensor : name.stage + "." + name.tensor) + (name.each ? "[]" : "");
}

}  // namespace foliot
