// Reads the config.pbtxt of a model of Triton.
//
// protobuf's own parser reads the text, by a schema that has only what Foliot heeds (triton_config.proto): other fields
// are skipped, and are notes.
#ifndef FOLIOT_MODELS_FOREIGN_TRITON_SETTINGS_H_
#define FOLIOT_MODELS_FOREIGN_TRITON_SETTINGS_H_

#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "models/foreign/foreign_settings.h"

namespace foliot {

// `file`: the path, for errors. `folder_name`: which the name must be. Any thread.
// Errors: kInvalidArgument naming file, line and, for what is no such text, column; kUnimplemented for what Foliot
// cannot serve, with what to do.
Result<ForeignSettings> parse_triton_settings(std::string_view text, const std::string& file,
                                              const std::string& folder_name);

}  // namespace foliot

#endif  // FOLIOT_MODELS_FOREIGN_TRITON_SETTINGS_H_
