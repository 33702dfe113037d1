#include "answer/pipelines/pipeline_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "answer/pipelines/spec_check.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class PipelineFileTest : public testing::Test {
 protected:
  PipelineFileTest()
      : repository_(std::filesystem::path(testing::TempDir()) /
                    fmt::format("pipeline_file.{}", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(repository_);
  }
  ~PipelineFileTest() override { std::filesystem::remove_all(repository_); }

  std::filesystem::path write(const std::string& file, std::string_view text) {
    const std::filesystem::path path = repository_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  PipelineSpec read(std::string_view text) { return read_pipeline("animals", write("animals/pipeline.toml", text)); }
  // The error without the folder: "pipeline.toml:LINE: ...".
  std::string error_of(std::string_view text) {
    const std::string message = read(text).status.message();
    const size_t file = message.find("pipeline.toml");
    return file == std::string::npos ? message : message.substr(file);
  }

  const std::filesystem::path repository_;
};

constexpr std::string_view kCascade = R"(default_slo = "150ms"
cache = true
[[stage]]
name = "fine"
model = "resnet"
inputs = { image = "decode.image" }
when = [{ output = "cheap.scores.1", value = "maximum", below = 0.8 }]

[[stage]]
name = "decode"
step = "decode"
width = 224
scale = 0.5
mean = [0.4, 1]
resize = true
mode = "crop"
inputs = { bytes = "photo" }

[[stage]]
name = "cheap"
model = "mobilenet"
inputs = { image = "decode.image" }

[[output]]
name = "scores"
from = ["fine.scores", "cheap.scores"]

[[output]]
name = "fine"
from = "fine.scores"
fill = -1
)";

TEST_F(PipelineFileTest, ReadsStagesInTheOrderInWhichTheyDepend) {
  const PipelineSpec spec = read(kCascade);
  ASSERT_TRUE(spec.status.ok()) << spec.status.message();
  EXPECT_EQ(spec.name, "animals");
  EXPECT_EQ(spec.default_slo, Duration::milliseconds(150));
  EXPECT_TRUE(spec.cache);
  ASSERT_EQ(spec.stages.size(), 3U);

  const StageSpec& decode = spec.stages[0];
  EXPECT_EQ(decode.name, "decode");
  EXPECT_EQ(decode.step, "decode");
  EXPECT_EQ(decode.model, "animals.decode");
  EXPECT_EQ(decode.line, 9);
  EXPECT_THAT(decode.inputs.at("bytes"), ElementsAre(TensorName{"", "photo"}));
  const std::map<std::string, StepOption> options{{"width", int64_t{224}},
                                                  {"scale", 0.5},
                                                  {"mean", std::vector<double>{0.4, 1}},
                                                  {"resize", true},
                                                  {"mode", std::string("crop")}};
  EXPECT_EQ(decode.options, options);

  EXPECT_EQ(spec.stages[1].name, "cheap");
  EXPECT_EQ(spec.stages[1].model, "mobilenet");
  EXPECT_EQ(spec.stages[1].step, "");
  EXPECT_THAT(spec.stages[1].inputs.at("image"), ElementsAre(TensorName{"decode", "image"}));

  const StageSpec& fine = spec.stages[2];
  EXPECT_EQ(fine.name, "fine");
  ASSERT_EQ(fine.when.size(), 1U);
  EXPECT_EQ(fine.when[0].output, (TensorName{"cheap", "scores.1"}));
  EXPECT_EQ(fine.when[0].condition.value, StageCondition::Value::kMaximum);
  EXPECT_EQ(fine.when[0].condition.comparison, StageCondition::Comparison::kBelow);
  EXPECT_EQ(fine.when[0].condition.limit, 0.8);
  EXPECT_EQ(fine.when[0].line, 7);

  ASSERT_EQ(spec.outputs.size(), 2U);
  EXPECT_THAT(spec.outputs[0].from, ElementsAre(TensorName{"fine", "scores"}, TensorName{"cheap", "scores"}));
  EXPECT_EQ(spec.outputs[0].fill, std::nullopt);
  EXPECT_EQ(spec.outputs[1].fill, -1);
  EXPECT_THAT(always_visited(spec), ElementsAre(true, true, false));
}

TEST_F(PipelineFileTest, ReadsEachKindOfCondition) {
  using Value = StageCondition::Value;
  using Comparison = StageCondition::Comparison;
  const std::tuple<const char*, Value, uint64_t, Comparison> cases[] = {
      {"below = 2", Value::kMaximum, 0, Comparison::kBelow},
      {"value = 'argmax', at_most = 2", Value::kArgmax, 0, Comparison::kAtMost},
      {"value = 'element', element = 7, above = 2", Value::kElement, 7, Comparison::kAbove},
      {"element = 8, at_least = 2", Value::kElement, 8, Comparison::kAtLeast},
      {"value = 'maximum', equal = 2", Value::kMaximum, 0, Comparison::kEqual},
      {"not_equal = 2", Value::kMaximum, 0, Comparison::kNotEqual},
  };
  for (const auto& [text, value, element, comparison] : cases) {
    const PipelineSpec spec = read(fmt::format(R"(
[[stage]]
name = "a"
model = "a"
inputs = {{ x = "x" }}
[[stage]]
name = "b"
model = "b"
inputs = {{ x = "a.y" }}
when = [{{ output = "a.y", {} }}]
[[output]]
name = "y"
from = ["b.y", "a.y"]
)",
                                               text));
    ASSERT_TRUE(spec.status.ok()) << text << ": " << spec.status.message();
    const StageCondition& condition = spec.stages[1].when[0].condition;
    EXPECT_EQ(condition.value, value) << text;
    EXPECT_EQ(condition.element, element) << text;
    EXPECT_EQ(condition.comparison, comparison) << text;
    EXPECT_EQ(condition.limit, 2) << text;
  }
}

// Stage "a" of model "a" takes "x" of the call, then these lines of its table, then output "y".
std::string with_lines(std::string_view lines, std::string_view output = "name = 'y'\nfrom = 'a.y'") {
  return fmt::format("[[stage]]\nname = 'a'\nmodel = 'a'\n{}\n[[output]]\n{}\n", lines, output);
}

TEST_F(PipelineFileTest, NamesWhatIsWrongWithAStage) {
  EXPECT_EQ(error_of(with_lines("inputs = { x = 'x' }")), "");
  EXPECT_THAT(error_of(""), HasSubstr("there are no stages; write a table [[stage]] for each"));
  EXPECT_THAT(error_of("stage = 3"), HasSubstr(":1: 'stage' must be a list of tables: [[stage]]"));
  EXPECT_THAT(error_of("slo = '3ms'\n" + with_lines("inputs = { x = 'x' }")),
              StartsWith("pipeline.toml:1: unknown key 'slo'"));
  EXPECT_THAT(error_of("default_slo = '0ms'"), HasSubstr(":1: 'default_slo' must be above 0"));
  EXPECT_THAT(error_of("[[stage]]\nmodel = 'a'"), HasSubstr(":1: a stage needs a name"));
  EXPECT_THAT(error_of("[[stage]]\nname = 'a.b'\nmodel = 'a'"),
              HasSubstr(":1: a stage's name has 1 to 64 letters, digits, '_' and '-', and 'a.b' does not"));
  EXPECT_THAT(error_of("[[stage]]\nname = 'a'"), HasSubstr(":1: stage 'a' needs a model or a step, and not both"));
  EXPECT_THAT(error_of(with_lines("step = 'decode'")),
              HasSubstr(":1: stage 'a' needs a model or a step, and not both"));
  EXPECT_THAT(error_of(with_lines("width = 3")), HasSubstr(":4: unknown key 'width'"));
  EXPECT_THAT(error_of(with_lines("")), HasSubstr(":1: stage 'a' has no inputs"));
  EXPECT_THAT(error_of(with_lines("inputs = 'x'")), HasSubstr(":4: 'inputs' must be a table"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = 3 }")), HasSubstr(":4: 'x' must be a text or a list of texts"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = '.y' }")), HasSubstr(":4: 'x' has '.y', which names no stage"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = 'b.y' }")),
              HasSubstr(":1: stage 'a': the input 'x' has 'b.y', and there is no stage 'b'; the stages are a"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = 'a.' }")), HasSubstr("'a.', which names no output"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = 'x y' }")),
              HasSubstr("'x y'; an input of the call has a name of 1 to 64 letters"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = ['x', 'x'] }")), HasSubstr("the input 'x' has 'x' twice"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = ['x', 'z'] }")),
              HasSubstr(":1: stage 'a': the input 'x' never takes 'z': it comes after 'x', which is always there"));
  EXPECT_THAT(error_of(with_lines("inputs = { x = 'a.y' }")),
              HasSubstr(":1: stage 'a' is in a cycle: a -> a; a pipeline has none"));
  EXPECT_THAT(error_of("[[stage]]\nname = 'a'\nmodel = 'animals'\ninputs = { x = 'x' }"),
              HasSubstr(":1: stage 'a' has the model 'animals', the pipeline itself"));
  EXPECT_THAT(error_of("[[stage]]\nname = 'a'\nstep = 'crop'\nsize = [1, 'b']"),
              HasSubstr(":4: 'size' must be a number, true, false, a text or a list of numbers"));
}

TEST_F(PipelineFileTest, NamesWhatIsWrongWithAnOutput) {
  const std::string inputs = "inputs = { x = 'x' }";
  EXPECT_THAT(error_of("[[stage]]\nname = 'a'\nmodel = 'a'\n" + inputs), HasSubstr("there are no outputs"));
  EXPECT_THAT(error_of(with_lines(inputs, "from = 'a.y'")), HasSubstr(":5: an output needs a name"));
  EXPECT_THAT(error_of(with_lines(inputs, "name = 'y'")), HasSubstr(":5: an output needs a source"));
  EXPECT_THAT(error_of(with_lines(inputs, "name = 'y.z'\nfrom = 'a.y'")),
              HasSubstr(":5: an output's name has 1 to 64"));
  EXPECT_THAT(error_of(with_lines(inputs, "name = 'y'\nfrom = 'b.y'")),
              HasSubstr(":5: output 'y' has 'b.y', and there is no stage 'b'; the stages are a"));
  EXPECT_THAT(error_of(with_lines(inputs, "name = 'y'\nfrom = 'x'")),
              HasSubstr(":5: output 'y' has 'x', which is an input of the call"));
  EXPECT_THAT(error_of(with_lines(inputs, "name = 'y'\nfrom = 'a.y'\nfill = 'a'")),
              HasSubstr(":8: 'fill' must be a number"));
  EXPECT_THAT(error_of(with_lines(inputs, "name = 'y'\nfrom = 'a.y'\n[[output]]\nname = 'y'\nfrom = 'a.y'")),
              HasSubstr(":8: output 'y' is there twice"));
}

// Stages "a" and "b" in a row, "b" on this condition.
std::string with_condition(std::string_view condition, std::string_view output = "name = 'y'\nfrom = ['b.y', 'a.y']") {
  return fmt::format(
      "[[stage]]\nname = 'a'\nmodel = 'a'\ninputs = {{ x = 'x' }}\n"
      "[[stage]]\nname = 'b'\nmodel = 'b'\ninputs = {{ x = 'a.y' }}\nwhen = [{}]\n[[output]]\n{}\n",
      condition, output);
}

TEST_F(PipelineFileTest, NamesWhatIsWrongWithACondition) {
  EXPECT_EQ(error_of(with_condition("{ output = 'a.y', below = 1 }")), "");
  EXPECT_THAT(error_of(with_condition("{ below = 1 }")), HasSubstr(":9: a condition needs an output"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y' }")),
              HasSubstr(":9: a condition needs a comparison: one of below,"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', below = 1, above = 0 }")),
              HasSubstr(":9: 'above' is a second comparison, beside 'below'"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', below = nan }")), HasSubstr(":9: 'below' must be a number"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', element = -1, below = 1 }")),
              HasSubstr(":9: 'element' must be a whole number from 0"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', value = 'element', below = 1 }")),
              HasSubstr(":9: 'value' is \"element\"; say which"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', value = 'maximum', element = 1, below = 1 }")),
              HasSubstr(":9: 'element' belongs to value = \"element\""));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', value = 'mean', below = 1 }")),
              HasSubstr(":9: 'value' is 'mean'; it must be"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', least = 1 }")), HasSubstr(":9: "));
  EXPECT_THAT(
      error_of(with_condition("{ output = 'c.y', below = 1 }")),
      HasSubstr(":9: stage 'b': a condition has the output 'c.y', and there is no stage 'c'; the stages are a, b"));
  EXPECT_THAT(error_of(with_condition("{ output = 'x', below = 1 }")),
              HasSubstr(":9: stage 'b': a condition has the output 'x', which is an input of the call"));
  EXPECT_THAT(error_of(with_condition("{ output = 'b.y', below = 1 }")), HasSubstr("is in a cycle: b -> b"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', below = 1 }", "name = 'y'\nfrom = 'b.y'")),
              HasSubstr(":10: output 'y' may come from no stage, where all of its sources are skipped; say with "
                        "`fill = NUMBER`"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', below = 1 }", "name = 'y'\nfrom = 'a.y'")),
              HasSubstr(":5: stage 'b' is unreachable: no output depends on it"));
  EXPECT_THAT(error_of(with_condition("{ output = 'a.y', below = 1 }", "name = 'y'\nfrom = ['a.y', 'b.y']")),
              HasSubstr(":10: output 'y' never takes 'b.y': it comes after 'a.y', which is always there"));

  const auto conditions = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("{{ output = 'a.y', below = {} }},", i);
    return text;
  };
  EXPECT_EQ(error_of(with_condition(conditions(8))), "");
  EXPECT_EQ(error_of(with_condition(conditions(8) + conditions(8))), "");
  EXPECT_THAT(error_of(with_condition(conditions(9))),
              HasSubstr(":9: more than 8 conditions compare outputs of stage 'a'; at most 8 are allowed"));
}

// "a" counts, and "b" is visited for each element; at lines 1 and 5, for_each at line 9.
std::string with_elements(std::string_view for_each, std::string_view inputs = "{ x = 'a.boxes[]', whole = 'a.y' }",
                          std::string_view rest = "[[output]]\nname = 'y'\nfrom = 'b.y'") {
  return fmt::format(
      "[[stage]]\nname = 'a'\nmodel = 'a'\ninputs = {{ x = 'x' }}\n"
      "[[stage]]\nname = 'b'\nmodel = 'b'\ninputs = {}\nfor_each = {}\n{}\n",
      inputs, for_each, rest);
}

TEST_F(PipelineFileTest, ReadsStagesThatAreVisitedForEachElement) {
  const PipelineSpec spec = read(with_elements("{ count = 'a.count', at_most = 254 }"));
  EXPECT_EQ(spec.status.message(), "");
  ASSERT_TRUE(spec.stages[1].for_each.has_value());
  EXPECT_EQ(spec.stages[1].for_each->count, (TensorName{"a", "count"}));
  EXPECT_EQ(spec.stages[1].for_each->at_most, 254u);
  EXPECT_EQ(spec.stages[1].for_each->line, 9);
  EXPECT_EQ(spec.stages[1].inputs.at("x").front(), (TensorName{"a", "boxes", true}));
  EXPECT_EQ(spec.stages[1].inputs.at("whole").front(), (TensorName{"a", "y"}));
  EXPECT_EQ(to_string(spec.stages[1].inputs.at("x").front()), "a.boxes[]");
  EXPECT_THAT(always_visited(spec), ElementsAre(true, true));
}

TEST_F(PipelineFileTest, AStageComesAfterTheOneThatCountsForIt) {
  const PipelineSpec spec = read(
      "[[stage]]\nname = 'b'\nmodel = 'b'\ninputs = { x = 'images[]' }\n"
      "for_each = { count = 'a.count', at_most = 3 }\n"
      "[[stage]]\nname = 'a'\nmodel = 'a'\ninputs = { x = 'x' }\n[[output]]\nname = 'y'\nfrom = 'b.y'\n");
  EXPECT_EQ(spec.status.message(), "");
  EXPECT_EQ(spec.stages[0].name, "a");
}

TEST_F(PipelineFileTest, NamesWhatIsWrongWithElements) {
  const std::string_view good = "{ count = 'a.count', at_most = 4 }";
  EXPECT_EQ(error_of(with_elements(good)), "");
  EXPECT_THAT(error_of(with_elements("{ at_most = 4 }")), HasSubstr(":9: for_each needs the output that counts"));
  EXPECT_THAT(error_of(with_elements("{ count = 'a.count' }")), HasSubstr(":9: for_each needs the most elements"));
  EXPECT_THAT(error_of(with_elements("{ count = 'a.count', at_most = 0 }")),
              HasSubstr(":9: 'at_most' must be a whole number from 1 to 254"));
  EXPECT_THAT(error_of(with_elements("{ count = 'a.count', at_most = 4, most = 4 }")), HasSubstr(":9: "));
  EXPECT_THAT(error_of(with_elements("{ count = 'a.count', at_most = 255 }")),
              HasSubstr(":9: 'at_most' must be a whole number from 1 to 254"));
  EXPECT_THAT(
      error_of(with_elements("{ count = 'c.count', at_most = 4 }")),
      HasSubstr(":9: stage 'b': for_each has the count 'c.count', and there is no stage 'c'; the stages are a, b"));
  EXPECT_THAT(error_of(with_elements("{ count = 'x', at_most = 4 }")), HasSubstr("'x', which is no output of a stage"));
  EXPECT_THAT(error_of(with_elements("{ count = 'b.count', at_most = 4 }")),
              HasSubstr("'b.count' of a stage that is itself visited for each element"));
  EXPECT_THAT(error_of(with_elements(good, "{ x = 'a.boxes' }")),
              HasSubstr(":5: stage 'b' has for_each, and no input that differs for each element: write"));
  const std::string_view last = "[[stage]]\nname = 'c'\nmodel = 'c'\n";
  EXPECT_THAT(
      error_of(with_elements(good, "{ x = 'a.boxes[]' }",
                             fmt::format("{}inputs = {{ x = 'b.y[]' }}\n[[output]]\nname = 'y'\nfrom = 'c.y'", last))),
      HasSubstr(":10: stage 'c': the input 'x' has 'b.y[]', which takes it element by element; that needs for_each"));
  EXPECT_THAT(error_of(with_elements(good, "{ x = 'a.boxes[]' }", "[[output]]\nname = 'y'\nfrom = 'b.y[]'")),
              HasSubstr(":10: output 'y' has 'b.y[]'; only inputs of stages with for_each"));
  EXPECT_THAT(
      error_of(with_elements(
          good, "{ x = 'a.boxes[]' }",
          fmt::format("{}inputs = {{ x = 'x' }}\nwhen = [{{ output = 'b.y', below = 1 }}]\n[[output]]\nname = "
                      "'y'\nfrom = 'c.y'\nfill = 0",
                      last))),
      HasSubstr(":14: stage 'c': a condition has the output 'b.y' of stage 'b', which is visited for each element"));
  const auto second = [&](std::string_view for_each, std::string_view input = "a.boxes[]") {
    return error_of(
        with_elements(good, "{ x = 'a.boxes[]' }",
                      fmt::format("{}inputs = {{ x = '{}' }}\nfor_each = {}\n[[output]]\nname = 'y'\nfrom = "
                                  "['c.y']\n[[output]]\nname = 'z'\nfrom = 'b.y'",
                                  last, input, for_each)));
  };
  EXPECT_EQ(second(good), "");
  EXPECT_EQ(second(good, "b.y[]"), "");
  EXPECT_THAT(second("{ count = 'a.count', at_most = 5 }"),
              HasSubstr("for_each is of 'a.count', at most 4, and that of stage 'c' of 'a.count', at most 5"));
  EXPECT_THAT(second("{ count = 'a.faces', at_most = 4 }"), HasSubstr("must have the same count and at_most"));
}

TEST_F(PipelineFileTest, LimitsTheVisitsOfARun) {
  const auto with = [](int at_most) {
    std::string text =
        with_elements(fmt::format("{{ count = 'a.count', at_most = {} }}", at_most), "{ x = 'a.boxes[]' }");
    return text + "[[stage]]\nname = 'c'\nmodel = 'c'\ninputs = { x = 'b.y' }\n[[output]]\nname = 'z'\nfrom = 'c.y'\n";
  };
  EXPECT_EQ(error_of(with(253)), "");
  EXPECT_THAT(error_of(with(254)), HasSubstr("a run may have 256 visits of its stages"));
  EXPECT_THAT(error_of(with(254)), HasSubstr("at most 255 are allowed: lower at_most"));
}

// A chain of stages "s0", "s1", ... that ends at the output.
std::string chain(int stages, std::string_view first = "x") {
  std::string text;
  for (int i = 0; i < stages; ++i) {
    const std::string source = i == 0 ? std::string(first) : fmt::format("s{}.y", i - 1);
    text += fmt::format("[[stage]]\nname = 's{}'\nmodel = 'm'\ninputs = {{ x = '{}' }}\n", i, source);
  }
  return text + fmt::format("[[output]]\nname = 'y'\nfrom = 's{}.y'\n", stages - 1);
}

TEST_F(PipelineFileTest, NamesAllStagesOfACycle) {
  EXPECT_THAT(error_of(chain(3, "s1.y")), HasSubstr("pipeline.toml:1: stage 's0' is in a cycle: s0 -> s1 -> s0;"));
  EXPECT_THAT(error_of(chain(4, "s3.y")), HasSubstr("s0 -> s1 -> s2 -> s3 -> s0;"));
}

TEST_F(PipelineFileTest, LimitsTheNumberOfStages) {
  EXPECT_EQ(error_of(chain(32)), "");
  EXPECT_THAT(error_of(chain(33)), HasSubstr("pipeline.toml:129: there are 33 stages; at most 32 are allowed"));
  EXPECT_THAT(error_of(chain(1) + chain(1)), HasSubstr(":8: stage 's0' is there twice, first at line 1"));
}

TEST_F(PipelineFileTest, FindsThePipelinesOfARepository) {
  write("b/pipeline.toml", kCascade);
  write("a/pipeline.toml", "stage = ");
  write("c/model.onnx", "");
  write("d/pipeline.toml", kCascade);
  write("d/application.toml", "");
  write(".hidden/pipeline.toml", kCascade);
  const auto pipelines = scan_pipelines(repository_);
  ASSERT_TRUE(pipelines.ok());
  ASSERT_EQ(pipelines->size(), 3U);
  EXPECT_THAT((*pipelines)[0].status.message(), HasSubstr("a/pipeline.toml:1: "));
  EXPECT_TRUE((*pipelines)[1].status.ok());
  EXPECT_EQ((*pipelines)[1].stages[0].model, "b.decode");
  EXPECT_THAT((*pipelines)[2].status.message(), HasSubstr("has pipeline.toml and application.toml"));
  EXPECT_EQ(scan_pipelines(repository_ / "none").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace foliot
