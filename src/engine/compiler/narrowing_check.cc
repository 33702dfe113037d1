#include "engine/compiler/narrowing_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/compiler/example_input.h"
#include "engine/compiler/single_program.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr uint64_t kNarrowingSeed = 3;

}  // namespace

Result<std::vector<Example>> run_example(ProgramRunner& runner, const Plan& plan,
                                         std::span<const ExampleValues> values) {
  std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes);
  Random random(kNarrowingSeed);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor& tensor = plan.tensors[plan.inputs[i]];
    fill_random(random, tensor.type, values[i], plan.batch_size, std::span(input).subspan(tensor.offset, tensor.bytes));
  }
  FOLIOT_RETURN_IF_ERROR(runner.run(0, input, output).status());
  std::vector<Example> examples;
  for (TensorIndex index : plan.outputs) {
    const Tensor& tensor = plan.tensors[index];
    const auto begin = output.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
    examples.push_back(make_constant(
        tensor.type, tensor.shape, {begin, begin + static_cast<std::ptrdiff_t>(byte_size(tensor.type, tensor.shape))}));
  }
  return examples;
}

Result<std::vector<Example>> run_once(const Graph& graph, Device& device, std::span<const ExampleValues> values) {
  FOLIOT_ASSIGN_OR_RETURN(const SingleProgram single, lower_single(graph, device));
  FOLIOT_ASSIGN_OR_RETURN(const auto runner, ProgramRunner::create(device, single.program, single.weights));
  return run_example(*runner, single.program.plans.front(), values);
}

double largest_difference(std::span<const Example> expected, std::span<const Example> actual) {
  double result = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!is_floating(expected[i].type)) continue;
    const std::vector<double> wide = to_doubles(expected[i]), narrow = to_doubles(actual[i]);
    double largest = std::numeric_limits<double>::min(), difference = 0;
    for (size_t k = 0; k < wide.size(); ++k) {
      largest = std::max(largest, std::fabs(wide[k]));
      if (wide[k] != narrow[k]) difference = std::max(difference, std::fabs(wide[k] - narrow[k]));
    }
    result = std::max(result, difference / largest);
  }
  return result;
}

}  // namespace foliot
