// Report text: the output of simulations: a table over policies, JSON, and the series
// as CSV.
#ifndef FOLIOT_VIRTUAL_BOUNDS_REPORT_TEXT_H_
#define FOLIOT_VIRTUAL_BOUNDS_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "virtual/bounds/clairvoyant_bound.h"
#include "virtual/bounds/fluid_estimate.h"
#include "virtual/simulation/simulation_report.h"

namespace foliot {

// A line per policy; then what was missed and why, and prediction errors. The
// estimate and the bound are left out where they are null.
std::string report_table(const std::vector<SimulationReport>& reports, const FluidEstimate* estimate,
                         const ClairvoyantBound* bound = nullptr);

// All of one report but its series.
std::string report_json(const SimulationReport& report, const FluidEstimate* estimate,
                        const ClairvoyantBound* bound = nullptr);

// A line per interval; columns of a group bear its name.
std::string series_csv(const SimulationReport& report);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_REPORT_TEXT_H_
