// ModelTemplate: a model.toml to begin with, whose comments explain its settings and the
// model: inputs and outputs, the batch, the dimensions that need sizes.
//
// The sizes of these are tried: the model is compiled for its smallest batch sizes with
// each of a few guesses, until one goes.
#ifndef FOLIOT_MODELS_REPOSITORY_MODEL_TEMPLATE_H_
#define FOLIOT_MODELS_REPOSITORY_MODEL_TEMPLATE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"
#include "foundation/base/status.h"

namespace foliot {

struct ModelTemplate {
  std::string text;
  // Not ok: it is not known how the model can be compiled, and the text leaves that open.
  Status compiled;
};

// `make_device`: one for each attempt. `step` is called before each. Errors: kNotFound,
// kInvalidArgument, kUnimplemented if the file is no model that could be served.
Result<ModelTemplate> make_model_template(const std::filesystem::path& model,
                                          const std::function<std::unique_ptr<Device>()>& make_device,
                                          const std::function<void(const std::string& step)>& step = {});

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_MODEL_TEMPLATE_H_
