// OwnPolicy: a policy of the user's own, a file in Python, beside a compiled-in one as its fallback.
//
// The file's code runs in a process (answer/own_policies/policy_process.h), which is asked after feedback and
// not by calls: its select() is a function of the state alone, so that its numbers are kept in the state with
// what it learned, and a call draws from them here. The fallback learns from the same feedback, and
// chooses while the state has no such numbers, or all of them are of models that are not available.
//
// A state's values: the fallback's, then, once the process has answered, a number for each model and the
// numbers that the file's code made.
//
// Threading: as SelectionPolicy.
#ifndef FOLIOT_ANSWER_SELECTION_OWN_POLICY_H_
#define FOLIOT_ANSWER_SELECTION_OWN_POLICY_H_

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "answer/selection/selection_policy.h"

namespace foliot {

// What its process is started with.
struct OwnPolicyOptions {
  std::filesystem::path file;
  std::string content;  // its hash
  std::string python = "python3";
  std::string fallback;   // its name
  bool combines = false;  // asks several models for one call
  std::vector<std::string> models;

  bool operator==(const OwnPolicyOptions&) const = default;
};

class OwnPolicy final : public SelectionPolicy {
 public:
  static constexpr size_t kStateMax = 4096;  // numbers of the file's code

  // What the file's code made of a state.
  struct Part {
    std::vector<double> weights;  // of each model, with the sum 1
    std::vector<double> state;
  };

  OwnPolicy(OwnPolicyOptions options, std::shared_ptr<const SelectionPolicy> fallback);

  const OwnPolicyOptions& options() const { return options_; }
  SelectionState init() const override { return fallback_->init(); }
  std::string caution() const override { return fallback_->caution(); }

  // Chosen by the fallback, whatever else is in the state. REQUIRES: as select().
  Selection select_by_fallback(const SelectionState& state, const Available& available, Random& random) const;
  // The fallback's part of a state, which is a state too.
  SelectionState fallback_state(const SelectionState& state) const;
  // The numbers that the file's code made; empty: none yet.
  std::span<const double> own_state(const SelectionState& state) const;
  bool has_part(const SelectionState& state) const { return state.values.size() > fallback_values_; }
  // Replaces them.
  void set_part(SelectionState& state, const Part& part) const;
  // `to` gets the part that `from` has.
  void keep_part(const SelectionState& from, SelectionState& to) const;

 private:
  bool is_size(size_t values) const override;
  Selection choose(const SelectionState& state, const Available& available, Random& random) const override;
  void learn(SelectionState& state, const Selection& selected, Losses losses) const override;

  const OwnPolicyOptions options_;
  const std::shared_ptr<const SelectionPolicy> fallback_;
  const size_t fallback_values_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_OWN_POLICY_H_
