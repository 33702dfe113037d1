// Application: a name that clients call like a model, and that stands for several models, among
// which a policy selects (Clipper, section 3.5).
//
// It is a folder of a repository with an application.toml in place of a model:
//
//   models = ["svm", "forest"]      # names of models, with equal inputs and outputs
//   policy = "exp4"                 # answer/selection/policies.h; or a table with its options:
//   [policy]
//   name = "exp4"
//   eta = 0.01
//
// or a file in Python beside it (answer/selection/own_policy.h):
//
//   policy = "policy.py"            # or a table with its options:
//   [policy]
//   name = "policy.py"
//   fallback = "exp3"               # which chooses while the file's code cannot; with `combines` "exp4"
//   combines = false                # asks several models for one call
//   python = "python3"
//
// Optional:
//
//   output = "label"                # what answers, and labels of feedback, are compared by (the first)
//   classes = true                  # that output has one number for each class (false)
//   tolerance = 0.1                 # numbers that differ by at most that agree
//   loss_scale = 1                  # a difference of numbers that is a loss of 1
//   confidence_min = 0.6            # rows with less confidence get the default output (0)
//   default_slo = "20ms"
//   feedback_window = "10m"         # after an answer
//   feedback_max = 100000           # answers that wait for feedback
//   contexts_max = 10000            # each with a state of its own
//   [default]                       # the default output: of each output a row, or one value for all
//   label = -1
#ifndef FOLIOT_ANSWER_SELECTION_APPLICATION_H_
#define FOLIOT_ANSWER_SELECTION_APPLICATION_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/selection/combiner.h"
#include "answer/selection/own_policy.h"
#include "answer/selection/selection_policy.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/config/toml_file.h"

namespace foliot {

struct Application {
  static constexpr size_t kModelsMax = 64;

  std::string name;
  Status status;        // not ok: why it cannot be served
  std::string content;  // a hash of what the file says; empty: it cannot be read
  std::vector<std::string> models;
  std::string policy_name;
  std::shared_ptr<const SelectionPolicy> policy;
  std::shared_ptr<const OwnPolicy> own;  // `policy`, if it is one of the user's own; else null
  bool asks_several = false;             // models for one call
  // Why its policy may not find the best model, as a sentence; empty: it does.
  std::string caution() const;
  AgreementRule agreement;
  double confidence_min = 0;
  std::map<std::string, std::vector<double>> defaults;  // by output; empty: none
  std::optional<Duration> default_slo;
  Duration feedback_window = Duration::seconds(600);
  uint64_t feedback_max = 100'000;
  uint64_t contexts_max = 10'000;

  // Of what was learned: another policy or other models begin anew.
  std::string learns_as() const;
};

// A policy and its options.
struct NamedPolicy {
  std::string name;
  std::shared_ptr<const SelectionPolicy> policy;
  std::shared_ptr<const OwnPolicy> own;  // `policy`, if it is one of the user's own; else null
  bool asks_several = false;             // models for one call
};
// The key `policy` of a table; a policy's own file is beside `file`. Errors: kInvalidArgument naming `file`, line and
// key.
Result<NamedPolicy> read_policy(const toml::table& table, const std::string& file,
                                const std::vector<std::string>& models);

// Errors: kInvalidArgument naming file, line and key, as the application's status.
Application read_application(const std::string& name, const std::filesystem::path& file);

// All applications of a repository, by name; broken ones with their status. Errors: kInternal
// if it cannot be read.
Result<std::vector<Application>> scan_applications(const std::filesystem::path& repository);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_APPLICATION_H_
