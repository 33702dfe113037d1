// PersonalSpec: a personal model as its folder of a repository describes it:
//
//   NAME/personal.toml                settings
//   NAME/VERSION/items.features ...   its versions (personal_version.h); the highest is served
//
// personal.toml, all of it optional:
//
//   features = "items"          # the items.features of a version; else the served model that computes them
//   features_output = ""        # of that model; empty: its only one
//   prior = "mean"              # of a user's weights: the "mean" of all users' (pooled_prior.h) or "zero"
//   lambda = 1.0                # how much the prior counts, where the version brings none
//   durability = "disk"         # an observation is answered when the disk has it; "async": at once
//   default_slo = "20ms"        # deadline of calls that bring none
//   replicas = 2                # on how many front ends of a cluster each user is: 1 or 2
//   [exploration]
//   name = "thompson"           # exploration.h
//   epsilon = 0.05
//   alpha = 0.5
//   deviation = 0.5
//   pool = 0.01
//   [limits]
//   users = 10000000
//   observations_per_user = 4096
//   value_min = -1e6            # values are clipped to this range; without both, to the one that is learned
//   value_max = 1e6             # (population.h)
//   factors = 1024              # matrices that are kept
//   observations_per_snapshot = 1000000
//   snapshot_after = "24h"
//   lists = "16MiB"             # of the best of all items that are kept, where exploration draws no weights
//   feature_cache = "64MiB"     # of computed features, beside those of observed items
//   inputs = "1GiB"             # of observed items, where features are computed
//   users_memory = "1GiB"       # of users in memory and of RocksDB, which has all others; without it all are in memory
//   [retrain]                   # when the metrics say that it is to be retrained; 0: never
//   loss_max = 0                # of the last observations, squared errors
//   observations_max = 0        # since training
//   on_drift = false            # the server retrains it (retrain_triggers.h): when the metrics say so,
//   every = "24h"               # so long after the last time,
//   after_observations = 10000  # and after so many since then; without these three never
//   command = ["foliot", "retrain", "{folder}", "--state", "{state}"]   # by this, within time_limit
//   time_limit = "2h"
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_FILE_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/personal/service/feature_source.h"
#include "answer/personal/service/personal_model.h"
#include "answer/personal/service/retrain_triggers.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct PersonalSpec {
  std::string name;
  Status status;  // not ok: why it cannot be served
  std::filesystem::path folder;
  PersonalModel::Options options{};
  std::optional<Duration> default_slo{};
  uint32_t replicas = 2;                             // on how many front ends of a cluster each user is
  std::optional<FeatureSource::Options> features{};  // nullopt: in the table of a version
  // Of RocksDB, beside options.users_bytes_max for users in memory; 0: there is none.
  uint64_t store_bytes = 0;
  RetrainTriggers retrain{};
};

// Errors: kInvalidArgument naming file, line and key, as the spec's status.
PersonalSpec read_personal(const std::filesystem::path& folder);

// All personal models of a repository, by name; broken ones with their status. Errors: kInternal if it cannot
// be read.
Result<std::vector<PersonalSpec>> scan_personal(const std::filesystem::path& repository);

// Returns the number in a version's name; nullopt: it is no such name.
std::optional<uint64_t> version_number(std::string_view name);
// Folders with a number for a name, by number. Errors: kInternal if they cannot be listed.
Result<std::vector<std::filesystem::path>> version_folders(const std::filesystem::path& folder);
// The folder with the highest number for a name. Errors: kNotFound.
Result<std::filesystem::path> newest_version(const std::filesystem::path& folder);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_FILE_H_
