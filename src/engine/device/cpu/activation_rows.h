// Functions of float32 values for the widest vectors that the processor has and ONEDNN_MAX_CPU_ISA allows. They are
// within 4 units in the last place, and pass NaN on.
//
// Threading: thread-safe.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_ACTIVATION_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_ACTIVATION_ROWS_H_

#include <oneapi/dnnl/dnnl.hpp>

#include "engine/device/cpu/vector_functions.h"

namespace foliot {

struct ActivationRows {
  VectorFunction relu, exp, softplus;
  VectorParameter elu;
};

// Those of the best instruction set that `set` includes, which has AVX2; the processor has FMA.
ActivationRows find_activation_rows(dnnl::cpu_isa set);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_ACTIVATION_ROWS_H_
