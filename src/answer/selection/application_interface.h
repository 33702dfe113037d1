// ApplicationInterface: what an application is while its models are as they are: whether it can
// be served, by which of them, and its inputs and outputs.
//
// It is served while one of its models is, at least, and all that are served have equal inputs
// and outputs: names, types and shapes.
//
// Pure functions.
#ifndef FOLIOT_ANSWER_SELECTION_APPLICATION_INTERFACE_H_
#define FOLIOT_ANSWER_SELECTION_APPLICATION_INTERFACE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "answer/selection/application.h"
#include "foundation/core/catalog.h"
#include "foundation/core/model_info.h"

namespace foliot {

struct ApplicationInterface {
  ModelState state = ModelState::kUnavailable;
  std::string reason;  // why it is not served, or not by all of its models
  std::vector<bool> available;
  std::shared_ptr<const ModelInfo> info;  // set when kReady
};

// `models`: the entries of its models, in their order; null: there is no such model.
ApplicationInterface interface_of(const Application& application, std::span<const Catalog::EntryPtr> models);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_APPLICATION_INTERFACE_H_
