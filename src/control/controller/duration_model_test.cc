#include "control/controller/duration_model.h"

#include <gtest/gtest.h>

#include "control/controller/duration_model_conformance.h"
#include "control/controller/fake_duration_model.h"
#include "control/controller/rolling_duration_model.h"

namespace foliot {
namespace {

INSTANTIATE_TEST_SUITE_P(Rolling, DurationModelConformance,
                         testing::Values(DurationModelCase{"Rolling",
                                                           [] { return std::make_unique<RollingDurationModel>(); }}));
INSTANTIATE_TEST_SUITE_P(Fake, DurationModelConformance,
                         testing::Values(DurationModelCase{"Fake",
                                                           [] { return std::make_unique<FakeDurationModel>(); }}));

}  // namespace
}  // namespace foliot
