// SelectionPolicy: which models of an application answer a call, with which weights their
// answers are combined, and what is learned from feedback (Clipper, section 3.5, listing 3.2:
// init, select, combine, observe). Combining is the same for all policies, by the weights
// (answer/selection/combiner.h).
//
// A policy is immutable; its state is a value, so that an application may have many of them
// (one per context), keep and restore them. Models are positions in the application's list.
// Losses are in [0, 1], 0 for a prediction that was right.
//
// Threading: any thread; random numbers and the state are the caller's.
#ifndef FOLIOT_ANSWER_SELECTION_SELECTION_POLICY_H_
#define FOLIOT_ANSWER_SELECTION_SELECTION_POLICY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/status.h"

namespace foliot {

struct SelectionState {
  std::vector<double> values;  // what they mean is the policy's

  bool operator==(const SelectionState&) const = default;
};

// Little-endian, 8 bytes each.
std::string to_bytes(const SelectionState& state);

struct Selection {
  std::vector<uint32_t> models;  // those that are asked, ascending; at least one
  // Of each of the application's models: the probability with which it was selected, or, where
  // several are asked, the weight of its answer. Their sum is 1.
  std::vector<double> weights;
  // Which of these could have been asked.
  std::vector<bool> available{};
};

class SelectionPolicy {
 public:
  using Available = std::vector<bool>;                    // of each model
  using Losses = std::span<const std::optional<double>>;  // of each model; nullopt: unknown

  // `models`: how many the application has, at least one.
  explicit SelectionPolicy(uint32_t models);
  virtual ~SelectionPolicy() = default;

  virtual SelectionState init() const = 0;
  // The state that to_bytes() wrote. Errors: kInvalidArgument if it is not one of this policy
  // with so many models.
  Result<SelectionState> parse(std::string_view bytes) const;

  // REQUIRES: at least one model is available. Others are not selected.
  Selection select(const SelectionState& state, const Available& available, Random& random) const;
  // Learns from the losses of what was selected earlier. Losses beyond [0, 1] count as 0 or 1;
  // those of models that were not asked are ignored. Errors: kInvalidArgument for NaN, and
  // the state is as before.
  Status observe(SelectionState& state, const Selection& selected, Losses losses) const;
  // Why options that it was given keep it from finding the best of so many models, as a sentence; empty: they
  // do not.
  virtual std::string caution() const { return ""; }

 protected:
  uint32_t models() const { return models_; }

  // Whether a state may have so many values: as many as init() has.
  virtual bool is_size(size_t values) const { return values == init().values.size(); }
  virtual Selection choose(const SelectionState& state, const Available& available, Random& random) const = 0;
  // `losses` are in [0, 1].
  virtual void learn(SelectionState& state, const Selection& selected, Losses losses) const = 0;

 private:
  const uint32_t models_;
};

// One model, drawn by these probabilities, whose sum is 1.
Selection draw(std::vector<double> probabilities, Random& random);
// This model alone.
Selection only(uint32_t model, size_t models);
// All that are available, with these weights, which are made to have the sum 1.
Selection all_of(const SelectionPolicy::Available& available, std::vector<double> weights);
// exp(log_weights) of the models that are available, made to have the sum 1; 0 of others.
std::vector<double> normalised(std::span<const double> log_weights, const SelectionPolicy::Available& available);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_SELECTION_POLICY_H_
