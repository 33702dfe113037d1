#include "answer/selection/policies.h"

namespace foliot {
namespace {

class MajorityPolicy final : public SelectionPolicy {
 public:
  using SelectionPolicy::SelectionPolicy;
  SelectionState init() const override { return {}; }

 private:
  Selection choose(const SelectionState&, const Available& available, Random&) const override {
    return all_of(available, std::vector<double>(models(), 1));
  }
  void learn(SelectionState&, const Selection&, Losses) const override {}
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_majority(const PolicyParts& parts) {
  return std::make_unique<MajorityPolicy>(static_cast<uint32_t>(parts.models.size()));
}

}  // namespace foliot
