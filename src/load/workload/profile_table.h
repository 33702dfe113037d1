// ProfileTable: the durations of the models of a simulation or of an emulated worker. A
// profile has all by which a policy can distinguish models: bytes in and out, bytes of
// weights, the duration of LOAD and of EXEC per batch size.
//
// Threading: immutable once filled; any thread.
#ifndef FOLIOT_LOAD_WORKLOAD_PROFILE_TABLE_H_
#define FOLIOT_LOAD_WORKLOAD_PROFILE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"

namespace foliot {

struct ModelProfile {
  std::string name;
  uint64_t input_bytes = 0;  // of one row
  uint64_t output_bytes = 0;
  uint64_t weights_bytes = 0;
  Duration load;
  std::vector<uint32_t> batch_sizes;  // ascending, from 1
  std::vector<Duration> exec;         // exec[i] is of batch_sizes[i]; never falls
  std::vector<double> operator_ends;  // Runnable's: where EXECs can be cut
};

// A model with this profile as devices of one kind run it, where a page of the page cache
// has `page_bytes`.
Runnable make_runnable(const ModelProfile& profile, std::string kind, uint64_t page_bytes);

// The ModelInfo of a model with this profile on devices of kDefaultKind, where a page of the page cache has
// `page_bytes`.
std::shared_ptr<ModelInfo> make_model_info(const ModelProfile& profile, ModelId id, std::string name,
                                           uint64_t page_bytes);

class ProfileTable {
 public:
  // The models of Clockwork, Table 1, on a V100.
  static const ProfileTable& v100();

  // Errors: kInvalidArgument naming the profile and what is wrong with it;
  // kAlreadyExists.
  Status add(ModelProfile profile);
  // nullptr if there is none of this name. The pointer holds until the next add().
  const ModelProfile* find(std::string_view name) const;
  const std::vector<ModelProfile>& profiles() const { return profiles_; }
  // For error messages: "densenet169, inceptionv3, ...".
  std::string names() const;

 private:
  std::vector<ModelProfile> profiles_;
};

// A CSV table with a line of column names:
//
//   model,input_bytes,output_bytes,weights_bytes,load_ms,b1_ms,b2_ms,b4_ms
//
// where b1 and as many other batch sizes as wanted, ascending, are columns.
// Errors: kInvalidArgument naming line and column, also where a duration is missing.
Result<ProfileTable> parse_profile_table(std::string_view csv);

// The same from a file. Errors name it; also kNotFound.
Result<ProfileTable> read_profile_table(const std::string& path);

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_PROFILE_TABLE_H_
