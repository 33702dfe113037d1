#include <numeric>
#include <optional>
#include <utility>

#include "answer/selection/policies.h"

namespace foliot {
namespace {

class SplitPolicy final : public SelectionPolicy {
 public:
  explicit SplitPolicy(std::vector<double> weights)
      : SelectionPolicy(static_cast<uint32_t>(weights.size())), weights_(std::move(weights)) {}

  SelectionState init() const override { return {}; }

 private:
  // Those without a share are drawn only while no other is available.
  Selection choose(const SelectionState&, const Available& available, Random& random) const override {
    return draw(all_of(available, weights_).weights, random);
  }
  void learn(SelectionState&, const Selection&, Losses) const override {}

  const std::vector<double> weights_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_split(const PolicyParts& parts) {
  std::optional<TomlReader> table = parts.options.table("weights");
  std::vector<double> weights(parts.models.size(), table ? 0 : 1);
  if (table) {
    for (size_t model = 0; model < parts.models.size(); ++model) {
      table->not_negative(parts.models[model], weights[model]);
    }
    if (const Status status = table->finish(); !status.ok()) {
      parts.options.fail(
          "weights",
          "must have a number for some of the application's models, such as { a = 95, b = 5 }: " + status.message());
    } else if (std::accumulate(weights.begin(), weights.end(), 0.0) <= 0) {
      parts.options.fail("weights", "must have one above 0");
    }
  }
  return std::make_unique<SplitPolicy>(std::move(weights));
}

}  // namespace foliot
