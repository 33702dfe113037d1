// PipelineSpec: what a pipeline.toml says, by names: stages, where their inputs come from,
// conditions, and outputs. Nothing is known of the models yet (answer/pipelines/resolve.h).
// docs/PIPELINES.md has the whole format.
//
//   NAME/pipeline.toml in a repository:
//
//   default_slo = "150ms"
//
//   [[stage]]
//   name = "decode"
//   step = "decode"                        # built in: docs/PIPELINES.md lists them
//   width = 224                            # ... and their options
//   height = 224
//
//   [[stage]]
//   name = "cheap"
//   model = "mobilenet"                    # a model or a container of the repository
//   inputs = { image = "decode.image" }    # STAGE.OUTPUT; a plain name is an input of the call
//
//   [[stage]]
//   name = "fine"
//   model = "resnet"
//   inputs = { image = "decode.image" }
//   when = [{ output = "cheap.scores", value = "maximum", below = 0.8 }]
//
//   [[output]]
//   name = "scores"
//   from = ["fine.scores", "cheap.scores"] # the first that was visited
//
// A stage that is visited for each element that an earlier one counts has
//
//   for_each = { count = "detect.count", at_most = 16 }
//   inputs = { image = "detect.images[]" } # the visit's own element
#ifndef FOLIOT_ANSWER_PIPELINES_PIPELINE_SPEC_H_
#define FOLIOT_ANSWER_PIPELINES_PIPELINE_SPEC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {

// "STAGE.TENSOR", or "TENSOR" of the call; with "[]" behind it, one element of its first dimension.
struct TensorName {
  std::string stage;  // empty: an input of the call
  std::string tensor;
  bool each = false;

  bool operator==(const TensorName&) const = default;
};
std::string to_string(const TensorName& name);

using StepOption = std::variant<bool, int64_t, double, std::string, std::vector<double>>;

struct StageSpec {
  struct When {
    TensorName output;
    StageCondition condition;  // but for `output`
    int line = 0;
  };
  struct ForEach {
    TensorName count;
    uint32_t at_most = 0;
    int line = 0;
  };

  std::string name;
  std::string model;                          // what computes it; of a step, the name of the model that is made of it
  std::string step;                           // its kind, one of models/steps/step_kinds.h; empty: none
  std::map<std::string, StepOption> options;  // of the step, as they are in the file
  std::map<std::string, std::vector<TensorName>> inputs;  // by the model's inputs
  std::vector<When> when;
  std::optional<ForEach> for_each;
  int line = 0;  // of the file, where it begins
};

struct PipelineSpec {
  struct Output {
    std::string name;
    std::vector<TensorName> from;
    std::optional<double> fill;
    int line = 0;
  };

  std::string name;
  std::string file;     // for messages
  std::string content;  // a hash of what the file says; empty: unknown
  Status status;        // not ok: why it cannot be served
  std::optional<Duration> default_slo;
  bool cache = false;
  std::vector<StageSpec> stages;  // each after those that it takes inputs from
  std::vector<Output> outputs;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PIPELINES_PIPELINE_SPEC_H_
