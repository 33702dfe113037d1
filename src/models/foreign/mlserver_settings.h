// Reads the model-settings.json of a model of MLServer.
#ifndef FOLIOT_MODELS_FOREIGN_MLSERVER_SETTINGS_H_
#define FOLIOT_MODELS_FOREIGN_MLSERVER_SETTINGS_H_

#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "models/foreign/foreign_settings.h"

namespace foliot {

// `file`: the path, for errors. Any thread. What a runtime of MLServer's would serve, and Foliot does not, is
// ForeignSettings::otherwise: there may be a model.onnx or model.py beside it.
// Errors: kInvalidArgument naming file and line and, for what is no JSON, column.
Result<ForeignSettings> parse_mlserver_settings(std::string_view text, const std::string& file);

}  // namespace foliot

#endif  // FOLIOT_MODELS_FOREIGN_MLSERVER_SETTINGS_H_
