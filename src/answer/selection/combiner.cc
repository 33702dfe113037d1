#include "answer/selection/combiner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "answer/selection/tensor_values.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

using Output = Prediction::Output;

bool is_like(const Prediction& prediction, const Prediction& other) {
  return std::ranges::equal(prediction.outputs, other.outputs, [](const Output& a, const Output& b) {
    return a.spec.name == b.spec.name && a.spec.type == b.spec.type && a.shape == b.shape &&
           a.bytes.size() == b.bytes.size();
  });
}

// Those that count; weights that are all 0 are equal.
std::vector<MemberAnswer> comparable(std::span<const MemberAnswer> answers) {
  std::vector<MemberAnswer> kept(answers.begin(), answers.end());
  const auto first =
      std::ranges::find_if(kept, [](const MemberAnswer& answer) { return answer.prediction != nullptr; });
  FOLIOT_CHECK(first != kept.end());
  double sum = 0;
  for (MemberAnswer& answer : kept) {
    if (answer.prediction != nullptr && !is_like(*answer.prediction, *first->prediction)) answer.prediction = nullptr;
    if (answer.prediction != nullptr) sum += answer.weight;
  }
  for (MemberAnswer& answer : kept) answer.weight = sum > 0 ? answer.weight : 1;
  return kept;
}

// The bytes with the most weight at each place; of equals, those that came first.
std::string vote(std::span<const MemberAnswer> answers, size_t index) {
  struct Candidate {
    std::string_view value;
    double weight = 0;
  };
  std::string elected;
  std::vector<Candidate> candidates;
  const Output* some = nullptr;
  for (const MemberAnswer& answer : answers) {
    if (answer.prediction != nullptr) some = &answer.prediction->outputs[index];
  }
  const size_t size = size_of(some->spec.type);
  elected.reserve(some->bytes.size());
  for (size_t at = 0; at < some->bytes.size(); at += size) {
    candidates.clear();
    for (const MemberAnswer& answer : answers) {
      if (answer.prediction == nullptr) continue;
      const auto value = std::string_view(answer.prediction->outputs[index].bytes).substr(at, size);
      auto found = std::ranges::find(candidates, value, &Candidate::value);
      if (found == candidates.end()) found = candidates.insert(found, {value, 0});
      found->weight += answer.weight;
    }
    elected += std::ranges::max_element(candidates, {}, &Candidate::weight)->value;
  }
  return elected;
}

// What is not finite is left out, while anything else is there.
std::string mean(std::span<const MemberAnswer> answers, size_t index, const Output& like, uint64_t rows) {
  const size_t count = like.bytes.size() / size_of(like.spec.type);
  const size_t row = rows == 0 ? 0 : count / rows;
  std::vector<double> sums(count);
  std::vector<double> weights(count);
  const auto add = [&](double weight, const auto& value_at) {
    for (size_t i = 0; i < count; ++i) {
      const double value = value_at(i);
      if (!std::isfinite(value)) continue;
      sums[i] += weight * value;
      weights[i] += weight;
    }
  };
  for (const MemberAnswer& answer : answers) {
    if (answer.prediction != nullptr) {
      const std::vector<double> values = to_doubles(like.spec.type, answer.prediction->outputs[index].bytes);
      add(answer.weight, [&](size_t i) { return values[i]; });
    } else if (const auto* means = answer.means != nullptr ? answer.means->find(like.spec.name, row) : nullptr) {
      add(answer.weight, [&](size_t i) { return (*means)[i % row]; });
    }
  }
  for (size_t i = 0; i < count; ++i) sums[i] = weights[i] > 0 ? sums[i] / weights[i] : NAN;
  return from_doubles(like.spec.type, sums);
}

size_t largest_of(std::span<const double> values) {
  return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

bool rows_agree(const AgreementRule& rule, DataType type, std::span<const double> a, std::span<const double> b) {
  if (rule.classes && !a.empty()) return largest_of(a) == largest_of(b);
  const double tolerance = is_label(type) ? 0 : rule.tolerance;
  return std::ranges::equal(a, b, [&](double x, double y) { return std::abs(x - y) <= tolerance; });
}

}  // namespace

bool can_combine(const TensorSpec& output) { return is_label(output.type) || is_number(output.type); }

uint64_t row_count(const Prediction& prediction, bool batching) {
  if (!batching || prediction.outputs.empty() || prediction.outputs.front().shape.empty()) return 1;
  return static_cast<uint64_t>(prediction.outputs.front().shape.front());
}

const Prediction::Output* compared_output(const AgreementRule& rule, const Prediction& prediction) {
  for (const Output& output : prediction.outputs) {
    if (rule.output.empty() || output.spec.name == rule.output) return &output;
  }
  return nullptr;
}

Combination combine(const AgreementRule& rule, bool batching, std::span<const MemberAnswer> all) {
  const std::vector<MemberAnswer> answers = comparable(all);
  const auto some =
      std::ranges::find_if(answers, [](const MemberAnswer& answer) { return answer.prediction != nullptr; });
  Combination combined{*some->prediction, {}};
  const uint64_t rows = row_count(combined.prediction, batching);
  combined.confidence.assign(rows, 1);
  if (answers.size() == 1) return combined;
  for (size_t i = 0; i < combined.prediction.outputs.size(); ++i) {
    Output& output = combined.prediction.outputs[i];
    output.bytes = is_label(output.spec.type) ? vote(answers, i) : mean(answers, i, output, rows);
  }
  const Output* compared = compared_output(rule, combined.prediction);
  if (compared == nullptr || rows == 0) return combined;
  const DataType type = compared->spec.type;
  const std::vector<double> result = to_doubles(type, compared->bytes);
  const size_t row = result.size() / rows;
  combined.confidence.assign(rows, 0);
  for (const MemberAnswer& answer : answers) {
    if (answer.prediction == nullptr) continue;
    const std::vector<double> values = to_doubles(type, compared_output(rule, *answer.prediction)->bytes);
    for (uint64_t i = 0; i < rows; ++i) {
      const bool agree =
          rows_agree(rule, type, std::span(values).subspan(i * row, row), std::span(result).subspan(i * row, row));
      if (agree) combined.confidence[i] += 1 / static_cast<double>(answers.size());
    }
  }
  return combined;
}

Result<double> loss_of(const AgreementRule& rule, const Prediction::Output& output, std::span<const double> label) {
  if (!can_combine(output.spec)) {
    return Status::invalid_argument(fmt::format("output '{}' is {}, which no label is compared with; send a loss",
                                                output.spec.name, to_string(output.spec.type)));
  }
  const std::vector<double> values = to_doubles(output.spec.type, output.bytes);
  const bool classes = rule.classes && !output.shape.empty() && output.shape.back() > 0;
  const size_t row = classes ? static_cast<size_t>(output.shape.back()) : 1;
  const size_t wanted = values.size() / row;
  if (label.size() != wanted || wanted == 0) {
    return Status::invalid_argument(fmt::format("the label has {} values; output '{}' of the call needs {}",
                                                label.size(), output.spec.name, wanted));
  }
  double lost = 0;
  for (size_t i = 0; i < wanted; ++i) {
    if (std::isnan(label[i])) return Status::invalid_argument("the label has a value that is NaN");
    if (classes) {
      lost += static_cast<double>(largest_of(std::span(values).subspan(i * row, row))) == label[i] ? 0 : 1;
    } else if (is_label(output.spec.type)) {
      lost += values[i] == label[i] ? 0 : 1;
    } else {
      const double difference = std::abs(values[i] - label[i]) / rule.loss_scale;
      lost += std::isfinite(difference) ? std::min(difference, 1.0) : 1;
    }
  }
  return lost / static_cast<double>(wanted);
}

}  // namespace foliot
