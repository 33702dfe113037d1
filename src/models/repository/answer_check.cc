#include "models/repository/answer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/program_runner.h"

namespace foliot {
namespace {

constexpr double kRelative = 1e-5;
constexpr double kOfMedian = 1e-6;

// Rows of one input or output, dense.
struct Rows {
  const TensorSpec* spec;
  size_t row_bytes;
  std::span<const std::byte> bytes;
  std::span<const std::byte> row(size_t index) const { return bytes.subspan(index * row_bytes, row_bytes); }
};

// The content of the file.
class Answers {
 public:
  static Result<Answers> read(const std::filesystem::path& file, const Program& program) {
    std::ifstream in(file, std::ios::binary);
    Answers answers;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    answers.content_.assign(bytes.begin(), bytes.end());
    if (in && answers.divide(program)) return answers;
    return Status::invalid_argument(
        fmt::format("{} does not have the answers of this model: its size is {}", file.string(), text.size()));
  }

  uint32_t rows() const { return rows_; }
  bool fails(size_t row) const { return fails_[row] != std::byte{0}; }
  const std::vector<Rows>& inputs() const { return inputs_; }
  const std::vector<Rows>& outputs() const { return outputs_; }

 private:
  bool divide(const Program& program) {
    std::span<const std::byte> rest(content_);
    if (rest.size() < sizeof(rows_)) return false;
    std::memcpy(&rows_, rest.data(), sizeof(rows_));
    rest = rest.subspan(sizeof(rows_));
    if (rest.size() < rows_) return false;
    fails_ = rest.first(rows_);
    rest = rest.subspan(rows_);
    for (const bool is_input : {true, false}) {
      for (const TensorSpec& spec : is_input ? program.inputs : program.outputs) {
        const size_t row_bytes = byte_size(spec.type, spec.shape);
        if (row_bytes > 0 && rest.size() / row_bytes < rows_) return false;
        (is_input ? inputs_ : outputs_).push_back({&spec, row_bytes, rest.first(row_bytes * rows_)});
        rest = rest.subspan(row_bytes * rows_);
      }
    }
    return rest.empty();
  }

  std::vector<std::byte> content_;
  uint32_t rows_ = 0;
  std::span<const std::byte> fails_;
  std::vector<Rows> inputs_, outputs_;
};

std::vector<double> numbers_of(const TensorSpec& spec, std::span<const std::byte> row) {
  return to_doubles(make_constant(spec.type, spec.shape, {row.begin(), row.end()}));
}

double median_of(const Answers& answers, const Rows& output) {
  std::vector<double> found;
  for (size_t row = 0; row < answers.rows(); ++row) {
    if (answers.fails(row)) continue;
    for (const double number : numbers_of(*output.spec, output.row(row))) {
      if (std::isfinite(number)) found.push_back(std::fabs(number));
    }
  }
  if (found.empty()) return 0;
  const auto middle = found.begin() + static_cast<ptrdiff_t>(found.size() / 2);
  std::ranges::nth_element(found, middle);
  return *middle;
}

bool agrees(double expected, double actual, double median) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (expected == actual) return true;
  return std::fabs(expected - actual) <= kRelative * std::fabs(expected) + kOfMedian * median;
}

class Checking {
 public:
  Checking(const Answers& answers, const Program& program, ProgramRunner& runner)
      : answers_(answers), program_(program), runner_(runner) {
    for (const Rows& output : answers.outputs()) {
      medians_.push_back(is_floating(output.spec->type) ? median_of(answers, output) : 0);
    }
  }

  Status run(size_t plan_index) {
    const Plan& plan = program_.plans[plan_index];
    std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes);
    for (uint32_t first = 0; first < answers_.rows(); first += plan.batch_size) {
      const uint32_t count = std::min(plan.batch_size, answers_.rows() - first);
      for (size_t i = 0; i < plan.inputs.size(); ++i) {
        const Rows& rows = answers_.inputs()[i];
        const auto bytes = rows.bytes.subspan(first * rows.row_bytes, count * rows.row_bytes);
        std::ranges::copy(bytes, input.begin() + static_cast<ptrdiff_t>(plan.tensors[plan.inputs[i]].offset));
      }
      FOLIOT_RETURN_IF_ERROR(runner_.run(plan_index, input, output).status());
      for (uint32_t row = 0; row < count; ++row) FOLIOT_RETURN_IF_ERROR(compare(plan, output, first, row));
    }
    return Status();
  }

 private:
  Status compare(const Plan& plan, std::span<const std::byte> output, uint32_t first, uint32_t row) const {
    const bool fails = runner_.failed_rows().test(row);
    if (fails != answers_.fails(first + row)) {
      return Status::invalid_argument(fmt::format("row {} of those tried {} by its library, and {} compiled{}",
                                                  first + row, fails ? "is answered" : "is refused",
                                                  fails ? "is refused" : "is answered", describe_input(first + row)));
    }
    for (size_t i = 0; !fails && i < plan.outputs.size(); ++i) {
      const Rows& expected = answers_.outputs()[i];
      const auto actual =
          output.subspan(plan.tensors[plan.outputs[i]].offset + row * expected.row_bytes, expected.row_bytes);
      const auto wanted = expected.row(first + row);
      if (std::ranges::equal(wanted, actual)) continue;
      const std::vector<double> a = numbers_of(*expected.spec, wanted), b = numbers_of(*expected.spec, actual);
      for (size_t k = 0; k < a.size(); ++k) {
        const bool is_last = k + 1 == a.size();
        if (is_floating(expected.spec->type) ? agrees(a[k], b[k], medians_[i]) : a[k] == b[k] && !is_last) continue;
        return Status::invalid_argument(
            fmt::format("output '{}' of row {} of those tried is {} by its library, and {} "
                        "compiled{}",
                        expected.spec->name, first + row, a[k], b[k], describe_input(first + row)));
      }
    }
    return Status();
  }

  // The first numbers of the row.
  std::string describe_input(size_t row) const {
    constexpr size_t kShown = 4;
    std::vector<double> numbers = numbers_of(*answers_.inputs().front().spec, answers_.inputs().front().row(row));
    const bool cut = numbers.size() > kShown;
    numbers.resize(std::min(numbers.size(), kShown));
    std::string text;
    for (const double number : numbers) text += fmt::format("{}{}", text.empty() ? ": " : ", ", number);
    return text + (cut ? " ..." : "");
  }

  const Answers& answers_;
  const Program& program_;
  ProgramRunner& runner_;
  std::vector<double> medians_;  // of the magnitudes, by output
};

}  // namespace

std::filesystem::path answers_of(const std::filesystem::path& model) {
  std::filesystem::path answers = model;
  answers += ".answers";
  std::error_code error;
  return std::filesystem::is_regular_file(answers, error) ? answers : std::filesystem::path();
}

Status check_answers(const CompiledProgram& compiled, Device& device, const std::filesystem::path& answers) {
  const Program& program = compiled.program;
  if (!program.batching) return Status::invalid_argument("its rows cannot be computed as a batch");
  FOLIOT_ASSIGN_OR_RETURN(const Answers expected, Answers::read(answers, program));
  FOLIOT_ASSIGN_OR_RETURN(const auto runner, ProgramRunner::create(device, program, compiled.weights));
  Checking checking(expected, program, *runner);
  for (size_t plan = 0; plan < program.plans.size(); ++plan) FOLIOT_RETURN_IF_ERROR(checking.run(plan));
  return Status();
}

}  // namespace foliot
