#include <algorithm>

#include "answer/selection/policies.h"

namespace foliot {
namespace {

class StaticPolicy final : public SelectionPolicy {
 public:
  StaticPolicy(uint32_t models, uint32_t model) : SelectionPolicy(models), model_(model) {}

  SelectionState init() const override { return {}; }

 private:
  Selection choose(const SelectionState&, const Available& available, Random&) const override {
    const auto first = static_cast<uint32_t>(std::ranges::find(available, true) - available.begin());
    return only(available[model_] ? model_ : first, models());
  }
  void learn(SelectionState&, const Selection&, Losses) const override {}

  const uint32_t model_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_static(const PolicyParts& parts) {
  std::string model = parts.models.front();
  parts.options.text("model", model);
  const auto found = std::ranges::find(parts.models, model);
  if (found == parts.models.end()) {
    parts.options.fail("model", "must be one of the application's models");
    return nullptr;
  }
  return std::make_unique<StaticPolicy>(static_cast<uint32_t>(parts.models.size()),
                                        static_cast<uint32_t>(found - parts.models.begin()));
}

}  // namespace foliot
