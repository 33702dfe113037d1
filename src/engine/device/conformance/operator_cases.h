// Small graphs that between them use every kind of operator, every attribute and
// the ways in which operators meet (fusion, layouts, aliases).
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_OPERATOR_CASES_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_OPERATOR_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "engine/device/conformance/case_graph_builder.h"
#include "foundation/base/random.h"

namespace foliot {

struct OperatorCase {
  std::string name;
  std::function<void(CaseGraphBuilder& graph, Random& random)> build;
  // Of the graph's inputs.
  Range range;
};

std::vector<OperatorCase> operator_cases();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_OPERATOR_CASES_H_
