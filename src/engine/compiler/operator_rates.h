// OperatorRates: how fast a device multiplies and how fast it moves bytes, measured on two
// plain operators, and how long each operator of a plan should take by that: the longer of
// what its products and what its bytes take. By an operator that takes ten times as long a
// slow kernel is noticed.
//
// Threading: thread-safe.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATOR_RATES_H_
#define FOLIOT_ENGINE_COMPILER_OPERATOR_RATES_H_

#include "engine/device/device.h"
#include "engine/device/plan.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct OperatorRates {
  double products_per_second = 0;  // multiplications, each with its addition
  double bytes_per_second = 0;     // read and written

  // The least time of the operator; zero where its kind does neither evenly (recurrent
  // networks, trees, sorting).
  Duration expect(const Plan& plan, const Operator& operation) const;
};

// Takes some tens of milliseconds. `device` must be fresh. Errors: those of the device.
Result<OperatorRates> measure_rates(Device& device);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATOR_RATES_H_
