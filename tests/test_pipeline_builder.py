"""The builder of pipelines (python/foliot/pipeline.py): the pipeline.toml that it writes, and its checks."""

import tomllib

import foliot
import pytest


def cascade(**changes):
    """decode -> cheap, and fine where cheap is not sure."""
    p = foliot.Pipeline("animals", slo="150ms")
    image = p.step("decode", "decode", width=224, mean=[0.4, 1], crop=True)(bytes=p.input("photo")).image
    cheap = p.model("cheap", "mobilenet")(image=image)
    fine = p.model("fine", "resnet", when=changes.get("when", lambda s: s.maximum() < 0.8)(cheap["scores.1"]))(image=image)
    return p, image, cheap, fine


def test_writes_what_the_server_reads(tmp_path):
    p, _, cheap, fine = cascade()
    p.output("scores", fine.scores, cheap.scores)
    p.output("fine", fine.scores, fill=-1)
    path = p.write(tmp_path)
    assert path == tmp_path / "animals" / "pipeline.toml"
    assert [file.name for file in path.parent.iterdir()] == ["pipeline.toml"]
    assert tomllib.loads(path.read_text()) == {
        "default_slo": "150ms",
        "stage": [
            {"name": "decode", "step": "decode", "width": 224, "mean": [0.4, 1], "crop": True, "inputs": {"bytes": "photo"}},
            {"name": "cheap", "model": "mobilenet", "inputs": {"image": "decode.image"}},
            {"name": "fine", "model": "resnet", "inputs": {"image": "decode.image"},
             "when": [{"output": "cheap.scores.1", "value": "maximum", "below": 0.8}]},
        ],
        "output": [{"name": "scores", "from": ["fine.scores", "cheap.scores"]},
                   {"name": "fine", "from": "fine.scores", "fill": -1}],
    }


@pytest.mark.parametrize("when, keys", [
    (lambda s: s.maximum() <= 1, {"value": "maximum", "at_most": 1}),
    (lambda s: 1.5 < s.maximum(), {"value": "maximum", "above": 1.5}),
    (lambda s: s.argmax() >= 3, {"value": "argmax", "at_least": 3}),
    (lambda s: s.argmax() == 3, {"value": "argmax", "equal": 3}),
    (lambda s: s.element(7) != -1e-9, {"value": "element", "element": 7, "not_equal": -1e-9}),
])
def test_comparisons_become_conditions(when, keys):
    p, _, cheap, fine = cascade(when=when)
    p.output("scores", fine.scores, cheap.scores)
    written = tomllib.loads(p.text())["stage"][2]["when"]
    assert written == [{"output": "cheap.scores.1", **keys}]


def test_several_conditions_and_sources_are_lists():
    p, image, cheap, fine = cascade(when=lambda s: [0.2 < s.maximum(), s.maximum() < 0.8])
    last = p.model("last", "a b")(**{"input.1": [fine.scores, cheap.scores], 'a"b': image})
    p.output("y", last.y)
    stages = tomllib.loads(p.text())["stage"]
    assert len(stages[2]["when"]) == 2
    assert stages[3]["inputs"] == {"input.1": ["fine.scores", "cheap.scores"], 'a"b': "decode.image"}


def street(at_most=16):
    """A detector, and a classifier of each of what it finds."""
    p = foliot.Pipeline("street")
    found = p.model("detect", "detector")(image=p.input("photo"))
    return p, found, lambda name="classify", **inputs: p.model(name, "resnet", for_each=found.count.at_most(at_most))(**inputs)


def test_stages_can_be_visited_for_each_element():
    p, found, classify = street()
    classes = classify(image=found.crops.each(), context=found.features, hint=p.input("hints").each())
    p.output("scores", classes.scores)
    assert tomllib.loads(p.text())["stage"][1] == {
        "name": "classify", "model": "resnet", "for_each": {"count": "detect.count", "at_most": 16},
        "inputs": {"image": "detect.crops[]", "context": "detect.features", "hint": "hints[]"}}


@pytest.mark.parametrize("build, message", [
    (lambda p, f, c: c(image=f.crops), "stage 'classify' has for_each, and no input that differs for each element"),
    (lambda p, f, c: p.model("a", "m")(x=f.crops.each()), "stage 'a' takes 'detect.crops[]', and has no for_each="),
    (lambda p, f, c: p.model("a", "m", for_each=4), "stage 'a': for_each is 4; it must be elements such as"),
    (lambda p, f, c: f.count.at_most(0), "at_most of 'detect.count' is 0; it must be a whole number from 1 to 254"),
    (lambda p, f, c: p.input("n").at_most(3), "elements are counted by 'n'; an output of a stage counts them"),
    (lambda p, f, c: c(x=f.crops.each()).n.at_most(3), "of a stage that is itself visited for each element"),
    (lambda p, f, c: c(x=f.crops.each()).y.maximum(), "'classify.y' differs for each element"),
    (lambda p, f, c: [c(x=f.crops.each()), p.model("a", "m", for_each=f.count.at_most(3))], "must be equal"),
    (lambda p, f, c: p.output("y", c(x=f.crops.each()).y.each()), "'classify.y[]', which is no output of a stage as a whole"),
    (lambda p, f, c: [p.output(n, c(n, x=f.crops.each()).y) for n in map(str, range(16))] and p.text(),
     "a run may have 257 visits of its stages; at most 255"),
])
def test_errors_name_what_is_wrong_with_elements(build, message):
    p, found, classify = street()
    with pytest.raises(foliot.PipelineError) as error:
        build(p, found, classify)
    assert message in str(error.value)


def error_of(build, **changes):
    p, image, cheap, fine = cascade(**changes)
    with pytest.raises(foliot.PipelineError) as error:
        build(p, image, cheap, fine)
    return str(error.value)


@pytest.mark.parametrize("build, message", [
    (lambda p, i, c, f: p.input("a.b"), "an input of the call has a name of 1 to 64 letters"),
    (lambda p, i, c, f: p.model("a.b", "m"), "a stage has a name of 1 to 64 letters"),
    (lambda p, i, c, f: p.model("a", "animals"), "has the model 'animals'; name a model of the repository"),
    (lambda p, i, c, f: p.step("a", "crop", inputs=3), "a step has no option 'inputs'"),
    (lambda p, i, c, f: p.model("cheap", "m")(x=i), "stage 'cheap' is there twice"),
    (lambda p, i, c, f: p.model("a", "m")(), "stage 'a' has no inputs"),
    (lambda p, i, c, f: p.model("a", "m")(x=c), "stage 'a': the input 'x' has <foliot.pipeline.Stage object"),
    (lambda p, i, c, f: p.model("a", "m")(x=[]), "stage 'a': the input 'x' has no source"),
    (lambda p, i, c, f: p.model("a", "m")(x=[f.y, f.y]), "stage 'a': the input 'x' has 'fine.y' twice"),
    (lambda p, i, c, f: p.model("a", "m")(x=[c.y, f.y]), "never takes 'fine.y': it comes after 'cheap.y'"),
    (lambda p, i, c, f: p.model("a", "m")(x=foliot.Pipeline("b").input("x")), "has 'x' of another pipeline, 'b'"),
    (lambda p, i, c, f: p.model("a", "m", when=True), "when is True; it must be a comparison such as"),
    (lambda p, i, c, f: p.model("a", "m", when=0.2 < c.y.maximum() < 0.8), "write one comparison each"),
    (lambda p, i, c, f: c.y.maximum() < "a", "compares 'cheap.y' with 'a'; compare it with a number"),
    (lambda p, i, c, f: c.y.element(-1), "element -1 of 'cheap.y'"),
    (lambda p, i, c, f: p.input("x").maximum(), "'x' is an input of the call; conditions compare outputs of stages"),
    (lambda p, i, c, f: p.output("y", f.y), "output 'y' may come from no stage"),
    (lambda p, i, c, f: p.output("y"), "output 'y' has no source"),
    (lambda p, i, c, f: p.output("y", p.input("x")), "output 'y' has 'x', which is no output of a stage"),
    (lambda p, i, c, f: p.output("y", c.y, fill="a"), "fill is 'a'; it must be a number"),
    (lambda p, i, c, f: [p.output("y", c.y), p.output("y", c.y)], "output 'y' is there twice"),
    (lambda p, i, c, f: p.text(), "pipeline 'animals' has no outputs"),
    (lambda p, i, c, f: [p.output("y", c.y), p.text()], "stage 'fine' is unreachable"),
    (lambda p, i, c, f: foliot.Pipeline("a").text(), "pipeline 'a' has no stages"),
    (lambda p, i, c, f: foliot.Pipeline("a/b"), "'a/b' is no name of a pipeline"),
    (lambda p, i, c, f: foliot.Pipeline("a", slo=150), "slo is 150; it must be a time with a unit"),
])
def test_errors_name_what_is_wrong(build, message):
    assert message in error_of(build)


def test_stages_and_conditions_have_limits():
    p = foliot.Pipeline("long")
    tensor = p.input("x")
    for i in range(32):
        tensor = p.model(f"s{i}", "m")(x=tensor).y
    with pytest.raises(foliot.PipelineError, match="stage 's32' is one more than the 32 stages"):
        p.model("s32", "m")(x=tensor)

    many = [lambda s, count=count: [s.maximum() < limit for limit in range(count)] for count in (8, 9)]
    p, _, cheap, fine = cascade(when=many[0])
    p.output("y", fine.y, cheap.y)
    p.text()
    p, _, cheap, fine = cascade(when=many[1])
    p.output("y", fine.y, cheap.y)
    with pytest.raises(foliot.PipelineError, match="9 conditions compare outputs of stage 'cheap'; at most 8"):
        p.text()


def test_settings_are_at_the_top():
    p = foliot.Pipeline("a", cache=True)
    p.output("y", p.model("s", "m")(x=p.input("x")).y)
    written = tomllib.loads(p.text())
    assert written["cache"] is True
    assert "default_slo" not in written


def test_options_are_what_toml_can_write():
    p = foliot.Pipeline("a")
    p.output("y", p.step("s", "crop", size={"a": {1}})(x=p.input("x")).y)
    with pytest.raises(foliot.PipelineError, match="cannot be written"):
        p.text()
