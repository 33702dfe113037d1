#include "engine/compiler/batch_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/compiler/constant.h"
#include "engine/compiler/example_input.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr uint64_t kBatchSeed = 1;

// The bytes of one row of each input (or output) of a plan.
using Row = std::vector<std::vector<std::byte>>;

uint64_t row_bytes(const Plan& plan, TensorIndex index) { return plan.tensors[index].bytes / plan.batch_size; }

Row contrary_row(const Plan& plan, std::span<const ExampleValues> values, size_t position, Random& random) {
  Row row;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    row.emplace_back(row_bytes(plan, plan.inputs[i]));
    fill_contrary(random, plan.tensors[plan.inputs[i]].type, values[i], position, row.back());
  }
  return row;
}

// Runs as many rows as the plan takes and returns its results, row by row.
Result<std::vector<Row>> run_rows(ProgramRunner& runner, const Plan& plan, size_t position,
                                  const std::vector<const Row*>& rows) {
  std::vector<std::byte> input(plan.input_bytes);
  std::vector<std::byte> output(plan.output_bytes);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const std::vector<std::byte>& part = (*rows[r])[i];
      const uint64_t offset = plan.tensors[plan.inputs[i]].offset + r * part.size();
      std::ranges::copy(part, input.begin() + static_cast<std::ptrdiff_t>(offset));
    }
  }
  FOLIOT_RETURN_IF_ERROR(runner.run(position, input, output).status());
  std::vector<Row> results(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    for (TensorIndex index : plan.outputs) {
      const uint64_t bytes = row_bytes(plan, index);
      const auto from = output.begin() + static_cast<std::ptrdiff_t>(plan.tensors[index].offset + r * bytes);
      results[r].emplace_back(from, from + static_cast<std::ptrdiff_t>(bytes));
    }
  }
  return results;
}

// Reals up to a share of the row's largest; everything else exactly. Rows of
// different sizes, as of a model whose channels are a batch, do not.
bool agree(DataType type, const std::vector<std::byte>& a, const std::vector<std::byte>& b, double tolerance) {
  if (a.size() != b.size()) return false;
  if (!is_floating(type)) return a == b;
  const Shape shape{static_cast<int64_t>(a.size() / size_of(type))};
  const std::vector<double> left = to_doubles(make_constant(type, shape, a));
  const std::vector<double> right = to_doubles(make_constant(type, shape, b));
  double largest = 1e-3;
  for (double value : left) largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  for (size_t i = 0; i < left.size(); ++i) {
    const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
    if (!same && !(std::fabs(left[i] - right[i]) <= tolerance * largest)) return false;
  }
  return true;
}

}  // namespace

Result<std::string> check_batches(ProgramRunner& runner, const Program& program, size_t bucket, uint32_t own_batch_size,
                                  std::span<const ExampleValues> values, double tolerance) {
  const size_t count = program.batch_sizes.size();
  const auto own =
      static_cast<size_t>(std::ranges::find(program.batch_sizes, own_batch_size) - program.batch_sizes.begin());
  FOLIOT_CHECK(own < count);
  const Plan& reference = program.plans[bucket * count + own];
  Random random(kBatchSeed);
  std::vector<Row> rows;
  for (uint32_t i = 0; i < program.batch_sizes.back(); ++i) rows.push_back(contrary_row(reference, values, i, random));

  // Row r first and others behind it in another order than in the batch, so that
  // a model that mixes rows is found even where it was written for several.
  std::vector<Row> expected;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<const Row*> chunk;
    for (size_t i = 0; i < own_batch_size; ++i)
      chunk.push_back(&rows[(r + rows.size() * own_batch_size - i) % rows.size()]);
    FOLIOT_ASSIGN_OR_RETURN(std::vector<Row> results, run_rows(runner, reference, bucket * count + own, chunk));
    expected.push_back(std::move(results.front()));
  }
  for (size_t i = 0; i < count; ++i) {
    if (i == own && own_batch_size == 1) continue;  // each row was alone
    const Plan& plan = program.plans[bucket * count + i];
    std::vector<const Row*> chunk;
    for (size_t r = 0; r < plan.batch_size; ++r) chunk.push_back(&rows[r]);
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<Row> results, run_rows(runner, plan, bucket * count + i, chunk));
    for (size_t r = 0; r < results.size(); ++r) {
      for (size_t o = 0; o < plan.outputs.size(); ++o) {
        if (agree(plan.tensors[plan.outputs[o]].type, expected[r][o], results[r][o], tolerance)) continue;
        return fmt::format("row {} of '{}' comes out differently in a batch of {}", r, program.outputs[o].name,
                           plan.batch_size);
      }
    }
  }
  return std::string();
}

}  // namespace foliot
