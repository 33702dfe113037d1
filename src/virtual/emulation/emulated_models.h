// Emulated models: the models that emulated workers serve, from their text form.
#ifndef FOLIOT_VIRTUAL_EMULATION_EMULATED_MODELS_H_
#define FOLIOT_VIRTUAL_EMULATION_EMULATED_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/model_info.h"

namespace foliot {

// "resnet50": that profile of the V100 table. "resnet50:15,resnet18": several, the
// first as fifteen models, resnet50-0 to resnet50-14. "v100": the whole table.
// "profiles.csv" (anything with a dot or a slash): all profiles of a file
// (load/workload/profile_table.h). Ids count from 0.
// Errors: kInvalidArgument or kNotFound, naming what is wrong.
Result<std::vector<ModelInfo>> parse_emulated_models(const std::string& text, uint64_t page_bytes);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EMULATION_EMULATED_MODELS_H_
