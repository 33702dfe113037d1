"""Pipelines: models in stages under one name and one deadline (docs/PIPELINES.md).

    import foliot

    p = foliot.Pipeline("animals", slo="150ms")
    photo = p.input("photo")
    image = p.step("decode", "decode", width=224, height=224)(bytes=photo).image
    cheap = p.model("cheap", "mobilenet")(image=image)
    fine = p.model("fine", "resnet", when=cheap.scores.maximum() < 0.8)(image=image)
    p.output("scores", fine.scores, cheap.scores)
    p.write("models")

writes models/animals/pipeline.toml. What needs no models is checked here; the server checks the rest.
"""

import json
import math
import os
import pathlib
import re

# As of the server (core/pipeline_info.h, pipeline/spec_check.cc).
STAGES_MAX = 32
CONDITIONS_MAX = 8
NAME_MAX = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_MAX}}}")
_STAGE_KEYS = ("name", "model", "step", "inputs", "when")


class PipelineError(ValueError):
    """Why a pipeline cannot be served, in one clear sentence."""


class Tensor:
    """An output of a stage, or an input of the call."""

    def __init__(self, pipeline, stage, name):
        self.pipeline = pipeline
        self.stage = stage  # None: the call's
        self.name = name

    def __str__(self):
        return self.name if self.stage is None else f"{self.stage.name}.{self.name}"

    def maximum(self):
        """The largest of its elements, to be compared."""
        return Value(self, {"value": "maximum"})

    def argmax(self):
        """The position of the first largest element, to be compared."""
        return Value(self, {"value": "argmax"})

    def element(self, position):
        """The element at this position, counted in row-major order, to be compared."""
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise PipelineError(f"element {position!r} of '{self}': a position is a whole number from 0 on")
        return Value(self, {"value": "element", "element": position})


class Value:
    """A number that is taken from a row of a stage's output. Compared with a number it is a Condition."""

    __hash__ = None

    def __init__(self, tensor, keys):
        if tensor.stage is None:
            raise PipelineError(f"'{tensor}' is an input of the call; conditions compare outputs of stages")
        self._tensor = tensor
        self._keys = keys

    def __lt__(self, limit):
        return self._compared("below", limit)

    def __le__(self, limit):
        return self._compared("at_most", limit)

    def __gt__(self, limit):
        return self._compared("above", limit)

    def __ge__(self, limit):
        return self._compared("at_least", limit)

    def __eq__(self, limit):
        return self._compared("equal", limit)

    def __ne__(self, limit):
        return self._compared("not_equal", limit)

    def _compared(self, comparison, limit):
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
            raise PipelineError(f"a condition compares '{self._tensor}' with {limit!r}; compare it with a number")
        return Condition(self._tensor, {"output": str(self._tensor), **self._keys, comparison: limit})


class Condition:
    """One comparison, on which depends whether a stage is visited."""

    def __init__(self, tensor, keys):
        self.tensor = tensor
        self.keys = keys

    def __bool__(self):
        raise PipelineError(f"a condition on '{self.tensor}' is a question for the server; write one comparison each, "
                            "as in when=[0.2 < a, a < 0.8]")


class Stage:
    """A stage. Its outputs are its attributes: stage.scores; or stage["scores.1"], whatever they are called."""

    def __init__(self, pipeline, name, keys, inputs, when):
        self.pipeline = pipeline
        self.name = name
        self.keys = keys
        self.inputs = inputs  # name -> list of Tensor
        self.when = when

    def __getitem__(self, output):
        if not isinstance(output, str) or not output:
            raise PipelineError(f"stage '{self.name}' has no output {output!r}; outputs have names")
        return Tensor(self.pipeline, self, output)

    def __getattr__(self, output):
        if output.startswith("__"):
            raise AttributeError(output)
        return self[output]

    @property
    def always_visited(self):
        fed = all(any(_is_always_there(source) for source in sources) for sources in self.inputs.values())
        return fed and not self.when


class Pipeline:
    """Stages and outputs, in the order in which they are added."""

    def __init__(self, name, slo=None, cache=False):
        if not isinstance(name, str) or not name or "/" in name or name.startswith("."):
            raise PipelineError(f"{name!r} is no name of a pipeline: it is that of a folder, not hidden and without '/'")
        if slo is not None and (not isinstance(slo, str) or not re.fullmatch(r"[0-9.]+ *[a-z]+", slo)):
            raise PipelineError(f"slo is {slo!r}; it must be a time with a unit, such as \"150ms\"")
        self.name = name
        self._slo = slo
        self._cache = cache
        self._stages = {}
        self._outputs = {}

    def input(self, name):
        """An input of the call; what it is like is for the models to say that take it."""
        return Tensor(self, None, _checked_name("an input of the call", name))

    def model(self, name, model, when=()):
        """A stage with a model of the repository. Call the result with the model's inputs."""
        if not isinstance(model, str) or not model or model == self.name:
            raise PipelineError(f"stage {name!r} has the model {model!r}; name a model of the repository")
        return self._stage(name, {"model": model}, when)

    def step(self, name, kind, when=(), **options):
        """A stage with a built-in step (docs/STEPS.md). Call the result with the step's inputs."""
        wrong = [option for option in options if option in _STAGE_KEYS]
        if wrong:
            raise PipelineError(f"stage {name!r}: a step has no option '{wrong[0]}'")
        return self._stage(name, {"step": kind, **options}, when)

    def output(self, name, *sources, fill=None):
        """An output of the answer: the first of these that was visited, or `fill` if none was."""
        called = f"output '{_checked_name('an output', name)}'"
        if name in self._outputs:
            raise PipelineError(f"{called} is there twice")
        sources = self._checked_sources(called, list(sources))
        for source in sources:
            if source.stage is None:
                raise PipelineError(f"{called} has '{source}', an input of the call; outputs come from stages")
        if fill is not None and not _is_number(fill):
            raise PipelineError(f"{called}: fill is {fill!r}; it must be a number")
        if fill is None and not any(_is_always_there(source) for source in sources):
            raise PipelineError(f"{called} may come from no stage, where all of its sources are skipped; say with fill=NUMBER "
                                "what its elements are then")
        self._outputs[name] = {"from": [str(source) for source in sources], "fill": fill,
                               "stages": [source.stage for source in sources]}

    def text(self):
        """The pipeline.toml. Raises PipelineError for what can be seen without the models."""
        self._check_whole()
        settings = (("default_slo", self._slo), ("cache", True if self._cache else None))
        lines = [f"{key} = {_toml(value)}" for key, value in settings if value is not None]
        for stage in self._stages.values():
            lines += ["", "[[stage]]", f"name = {_toml(stage.name)}"]
            lines += [f"{_toml_key(key)} = {_toml(value)}" for key, value in stage.keys.items()]
            inputs = {name: _one_or_all([str(source) for source in sources]) for name, sources in stage.inputs.items()}
            lines.append(f"inputs = {_toml(inputs)}")
            if stage.when:
                lines.append(f"when = {_toml([condition.keys for condition in stage.when])}")
        for name, output in self._outputs.items():
            lines += ["", "[[output]]", f"name = {_toml(name)}", f"from = {_toml(_one_or_all(output['from']))}"]
            if output["fill"] is not None:
                lines.append(f"fill = {_toml(output['fill'])}")
        return "\n".join(lines).lstrip("\n") + "\n"

    def write(self, repository):
        """Writes NAME/pipeline.toml in this repository, whole or not at all, and returns its path."""
        text = self.text()
        folder = pathlib.Path(repository) / self.name
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f".pipeline.toml.{os.getpid()}"
        new.write_text(text, encoding="utf-8")
        return new.replace(folder / "pipeline.toml")

    def _stage(self, name, keys, when):
        called = f"stage '{_checked_name('a stage', name)}'"
        conditions = list(when) if isinstance(when, (list, tuple)) else [when]
        for condition in conditions:
            if not isinstance(condition, Condition):
                raise PipelineError(f"{called}: when is {condition!r}; it must be a comparison such as "
                                    "stage.output.maximum() < 0.8")
            self._check_own(called, condition.tensor)

        def add(**inputs):
            if name in self._stages:
                raise PipelineError(f"{called} is there twice")
            if len(self._stages) == STAGES_MAX:
                raise PipelineError(f"{called} is one more than the {STAGES_MAX} stages that are allowed")
            if not inputs:
                raise PipelineError(f"{called} has no inputs; call it with those of its model: (INPUT=TENSOR)")
            taken = {input_name: self._checked_sources(f"{called}: the input '{input_name}'", sources)
                     for input_name, sources in inputs.items()}
            stage = self._stages[name] = Stage(self, name, keys, taken, conditions)
            return stage

        return add

    def _check_own(self, called, tensor):
        if not isinstance(tensor, Tensor):
            raise PipelineError(f"{called} has {tensor!r}, which is no tensor; name an output of a stage, as in stage.scores, "
                                "or an input of the call")
        if tensor.pipeline is not self:
            raise PipelineError(f"{called} has '{tensor}' of another pipeline, '{tensor.pipeline.name}'")

    def _checked_sources(self, called, sources):
        sources = sources if isinstance(sources, list) else [sources]
        if not sources:
            raise PipelineError(f"{called} has no source")
        for position, source in enumerate(sources):
            self._check_own(called, source)
            if str(source) in [str(earlier) for earlier in sources[:position]]:
                raise PipelineError(f"{called} has '{source}' twice")
            if position > 0 and _is_always_there(sources[position - 1]):
                raise PipelineError(f"{called} never takes '{source}': it comes after '{sources[position - 1]}', which is "
                                    "always there; put it first")
        return sources

    def _check_whole(self):
        if not self._stages:
            raise PipelineError(f"pipeline '{self.name}' has no stages")
        if not self._outputs:
            raise PipelineError(f"pipeline '{self.name}' has no outputs")
        conditions = {}
        for stage in self._stages.values():
            for condition in stage.when:
                asked = conditions.setdefault(condition.tensor.stage.name, [])
                if condition.keys not in asked:
                    asked.append(condition.keys)
        for name, asked in conditions.items():
            if len(asked) > CONDITIONS_MAX:
                raise PipelineError(f"{len(asked)} conditions compare outputs of stage '{name}'; at most {CONDITIONS_MAX} are "
                                    "allowed")
        reached = {stage.name for output in self._outputs.values() for stage in output["stages"]}
        for stage in reversed(self._stages.values()):
            if stage.name not in reached:
                raise PipelineError(f"stage '{stage.name}' is unreachable: no output depends on it")
            reached |= {source.stage.name for sources in stage.inputs.values() for source in sources if source.stage}
            reached |= {condition.tensor.stage.name for condition in stage.when}


def _checked_name(what, name):
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise PipelineError(f"{what} has a name of 1 to {NAME_MAX} letters, digits, '_' and '-', and {name!r} is none")


def _is_always_there(tensor):
    return tensor.stage is None or tensor.stage.always_visited


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _one_or_all(values):
    return values[0] if len(values) == 1 else values


def _toml_key(key):
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value):
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or _is_number(value):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(element) for element in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(element)}' for key, element in value.items())} }}"
    raise PipelineError(f"{value!r} cannot be written; options are numbers, True, False, texts and lists of numbers")
