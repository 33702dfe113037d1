// VariantPolicy: chooses the variant and the device of a query that names a task and what it
// needs (the paper's getVariant, section 4.1). A policy reads the registry, and does not change it.
//
// Three are here:
//   infaas     the paper's: the cheapest Active one that matches, on its least loaded device;
//              else the one with the least LOAD and inference, on the least utilised device.
//   predicted  the cheapest that is predicted to answer in time, loaded or not. Predictions
//              take the place of states and thresholds.
//   scaled     accuracy scaling: the most accurate one that is predicted to answer in a share of
//              the time that there is; where that is none, so under overload, as predicted. The
//              time in queues decides the mix (Proteus, ASPLOS '24, solves for it every 30 s). The
//              share is at most half. A query that finds a wait of more than half of its time
//              halves it, and it doubles in a thousand without one, so such waits stay rare.
// Each answers with the nearest variant, as a suggestion, where none matches.
//
// Threading: that of the registry. Time is an argument. No allocation.
#ifndef FOLIOT_CONTROL_VARIANTS_VARIANT_POLICY_H_
#define FOLIOT_CONTROL_VARIANTS_VARIANT_POLICY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/variants/variant.h"
#include "control/variants/variant_index.h"
#include "control/variants/variant_registry.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

struct VariantRequirements {
  Duration latency = Duration::max();  // that is left of it
  double accuracy = 0;                 // at least; in [0, 1]
  // At most, of one query, in 1e-12 dollars.
  int64_t cost_picodollars = VariantIndex::kNoCostLimit;
  std::optional<VariantId> variant{};  // a query by model: this one, or none
};

struct VariantChoice {
  enum class Outcome : uint8_t {
    kLoaded,       // `variant` on `device`
    kToLoad,       // the same, after a LOAD
    kNoneInTime,   // variants match, and none is predicted in time (or none may run now)
    kNoneMatches,  // no variant matches; `variant` is the nearest, if there is any
    kBadAccuracy,  // outside [0, 1]
    kBadLatency,   // not above 0
  };
  Outcome outcome = Outcome::kNoneMatches;
  std::optional<VariantId> variant{};
  DeviceId device{};
  // When it will be answered, as far as is known; of kLoaded and kToLoad.
  TimePoint answered = TimePoint::infinite_future();

  bool chosen() const { return outcome == Outcome::kLoaded || outcome == Outcome::kToLoad; }
};

class VariantPolicy {
 public:
  virtual ~VariantPolicy() = default;
  virtual VariantChoice get_variant(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                                    TimePoint now) const = 0;
};

// "infaas", "predicted" or "scaled". Errors: kNotFound naming them.
Result<std::unique_ptr<VariantPolicy>> make_variant_policy(std::string_view name);

// What a client gets of a choice that is none. Errors: kInvalidArgument for a value outside its
// limits; kNotFound for kNoneMatches, with the nearest; kUnavailable for kNoneInTime.
Status status_of(const VariantChoice& choice, const VariantRegistry& registry, TaskId task,
                 const VariantRequirements& asked);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_VARIANT_POLICY_H_
