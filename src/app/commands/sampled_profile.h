// SampledProfile: the profiles of a pipeline's stages on sample calls (InferLine, section 4.4, Profiler): runs the
// calls through the stages, as a server would, records the inputs of each visit, and measures each stage on these, in
// batches of rows that are drawn from them.
//
// Threading: one thread.
#ifndef FOLIOT_APP_COMMANDS_SAMPLED_PROFILE_H_
#define FOLIOT_APP_COMMANDS_SAMPLED_PROFILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/progress_bar.h"
#include "app/commands/stage_runner.h"
#include "edge/jobs/npy_file.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/core/pipeline_info.h"
#include "planning/pipelines/profile_file.h"

namespace foliot {

class SampledProfile {
 public:
  // `served`: the pipeline, as resolve() makes it of the runners' models; `runners`: by stages. All outlive this. What
  // `bar` shows at last is left to be cleared.
  SampledProfile(const ModelInfo& served, std::vector<StageRunner*> runners, ProgressBar& bar);

  // `calls`: arrays by the pipeline's inputs, with a call a row; `file` is what errors call them. P50 and P99 of each
  // stage, and how often calls visit it. Errors: kInvalidArgument: an array that is missing, or has
  // another type, shape or number of rows than the others; a stage that no call visits; a count of elements that is
  // none. Else those of the runners.
  Result<StageProfiles> measure(const std::map<std::string, NpyArray>& calls, const std::string& file);

 private:
  Status take_calls(const std::map<std::string, NpyArray>& calls, const std::string& file);
  Status check_array(const TensorSpec& input, const NpyArray& array, const std::string& file) const;
  Status choose_bucket(const std::map<std::string, NpyArray>& calls, const std::string& file);
  // How often the call visits the stage; nullopt: it skips it.
  std::optional<uint32_t> visits_of(uint32_t stage, size_t call) const;
  // The inputs of one of these visits.
  StageRow inputs_of(uint32_t stage, size_t call, uint32_t element) const;
  Status run_stage(uint32_t stage);
  Status run_call(uint32_t stage, size_t call, uint32_t visits);
  // Notes what it counts and which conditions hold.
  Status read(uint32_t stage, size_t call, const StageRow& outputs);
  // How probable 0, 1, 2, ... visits are. REQUIRES: a stage that is visited for each element.
  std::vector<double> visits_shares(uint32_t stage) const;
  Result<std::vector<DurationQuantile>> measure_stage(uint32_t stage, const std::vector<uint32_t>& batch_sizes);
  void forget_what_none_takes(uint32_t stage);
  BucketId bucket_of(uint32_t stage) const { return pipeline_.stages[stage].bucket.value_or(bucket_); }

  const ModelInfo& served_;
  const PipelineInfo& pipeline_;
  const std::vector<StageRunner*> runners_;
  ProgressBar& bar_;
  Random random_{18};
  BucketId bucket_;
  size_t count_ = 0;              // of calls
  std::vector<StageRow> calls_;   // by calls
  std::vector<StageRow> inputs_;  // of the stage that is measured: those of the calls that visit it
  // By stages and calls; none: it was skipped. Of a stage whose outputs no later one takes they are empty.
  std::vector<std::vector<std::unique_ptr<StageRow>>> outputs_;
  std::vector<std::vector<ConditionSet>> conditions_;  // likewise: those that hold
  std::vector<std::vector<uint32_t>> counts_;          // likewise: the elements that it counts
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_SAMPLED_PROFILE_H_
