// StepOptions: reads the options of a pipeline's step, and collects what is wrong with them.
//
//   StepOptions options("decode", spec.options);
//   const int64_t width = options.integer("width", 1, 4096);
//   FOLIOT_RETURN_IF_ERROR(options.status());  // also of options that were not asked for
#ifndef FOLIOT_MODELS_STEPS_STEP_OPTIONS_H_
#define FOLIOT_MODELS_STEPS_STEP_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"

namespace foliot {

class StepOptions {
 public:
  // `options` must outlive it. `folder`: in which the files are that they name.
  StepOptions(std::string_view step, const std::map<std::string, StepOption>& options,
              std::filesystem::path folder = {})
      : step_(step), options_(options), folder_(std::move(folder)) {}

  bool has(const std::string& name) const { return options_.contains(name); }
  // Has to be there. `example`: what it may look like.
  std::string text(const std::string& name, std::string_view example);
  // Within [min, max]. Without a default: it has to be there.
  int64_t integer(const std::string& name, int64_t min, int64_t max, std::optional<int64_t> otherwise = std::nullopt);
  double real(const std::string& name, double min, double max, std::optional<double> otherwise = std::nullopt);
  // The content of a file within the folder; empty after an error.
  std::string file(const std::string& name, std::string_view example, size_t bytes_max);
  // One of `choices`; the first is the default.
  std::string choice(const std::string& name, std::span<const std::string_view> choices);
  std::vector<double> reals(const std::string& name, size_t count, double min, double max,
                            const std::vector<double>& otherwise);
  // Whole numbers, 1 to `count_max` of them. Empty: it is not there.
  std::vector<int64_t> integers(const std::string& name, size_t count_max, int64_t min, int64_t max);
  void fail(const std::string& what);

  // The first error: kInvalidArgument, "step 'decode': width 0: must be 1 to 4096".
  Status status() const;

 private:
  const StepOption* find(const std::string& name);
  std::optional<double> number(const std::string& name);

  const std::string_view step_;
  const std::map<std::string, StepOption>& options_;
  const std::filesystem::path folder_;
  std::set<std::string> read_;
  Status status_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_STEPS_STEP_OPTIONS_H_
