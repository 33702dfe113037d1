// The policies that an application can have, by name, each with its options.
//
// Those that learn forget, by default, so that a model that was broken and recovers is used
// again; each header line says how to switch that off. With it off, Exp3 and Exp4 are those of
// the thesis. K is the number of models.
#ifndef FOLIOT_ANSWER_SELECTION_POLICIES_H_
#define FOLIOT_ANSWER_SELECTION_POLICIES_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "answer/selection/selection_policy.h"
#include "foundation/base/status.h"
#include "foundation/config/toml_reader.h"

namespace foliot {

// What a policy is made from. Errors of the options are the reader's.
struct PolicyParts {
  std::span<const std::string> models;  // of the application, by position
  TomlReader& options;
};

// One model, always: model = "a" (the first). While it is not available, the first that is.
std::unique_ptr<SelectionPolicy> make_static(const PolicyParts& parts);
// By fixed shares: weights = { a = 95, b = 5 } (equal).
std::unique_ptr<SelectionPolicy> make_split(const PolicyParts& parts);
// The model of the least mean loss, but any with probability epsilon (0.1). discount (0.999; beyond five
// models 1 - 1 / (200 K)): of what was observed before, with each feedback; 1: none.
std::unique_ptr<SelectionPolicy> make_epsilon_greedy(const PolicyParts& parts);
// The model of the least lower confidence bound of its mean loss (Auer et al., 2002), over
// discounted means (Garivier and Moulines, 2011). exploration (0.25): a factor of the bound's
// width, 1 in the theory; discount as above.
std::unique_ptr<SelectionPolicy> make_ucb1(const PolicyParts& parts);
// The model of the least loss among draws from the Beta posteriors. discount as above.
std::unique_ptr<SelectionPolicy> make_thompson(const PolicyParts& parts);
// One model, by exponential weights of importance-weighted losses (Clipper, section 3.5.1).
// eta (sqrt(ln K / (K t)) after t losses, up to 50 K: Auer et al., 2002); floor (0.01 / K): each model's
// least probability; share (eta / 500): of all weight that is spread evenly with each feedback (Herbster
// and Warmuth, 1998); 0: none.
std::unique_ptr<SelectionPolicy> make_exp3(const PolicyParts& parts);
// All models, weighted by exponential weights of their losses (Clipper, section 3.5.2).
// eta (0.12), discount (1 - 1 / (556 ln K)): of the logarithms of the weights; 1: none. By default it loses at
// most 0.03 more than the best model.
std::unique_ptr<SelectionPolicy> make_exp4(const PolicyParts& parts);
// All models, with equal weights.
std::unique_ptr<SelectionPolicy> make_majority(const PolicyParts& parts);

struct RegisteredSelectionPolicy {
  std::string_view name;
  bool asks_several;  // models for one call
  std::unique_ptr<SelectionPolicy> (*make)(const PolicyParts& parts);
};
// In the order of their documentation.
std::span<const RegisteredSelectionPolicy> selection_policies();
// Errors: kNotFound naming those that there are.
Result<RegisteredSelectionPolicy> find_selection_policy(std::string_view name);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_POLICIES_H_
