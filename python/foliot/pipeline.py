"""Pipelines: models in stages under one name and one deadline (docs/PIPELINES.md).

    import foliot

    p = foliot.Pipeline("animals", slo="150ms")
    photo = p.input("photo")
    image = p.step("decode", "decode", width=224, height=224)(bytes=photo).image
    cheap = p.model("cheap", "mobilenet")(image=image)
    fine = p.model("fine", "resnet", when=cheap.scores.maximum() < 0.8)(image=image)
    p.output("scores", fine.scores, cheap.scores)
    p.write("models")

writes models/animals/pipeline.toml. A stage that is visited for each element that another one counts:

    found = p.model("detect", "detector")(image=image)
    classes = p.model("classify", "resnet", for_each=found.count.at_most(16))(image=found.crops.each())

What needs no models is checked here; the server checks the rest.
"""

import json
import math
import os
import pathlib
import re

# As of the server (foundation/core/pipeline_info.h, answer/pipelines/spec_check.cc).
STAGES_MAX = 32
CONDITIONS_MAX = 8
SLOTS_MAX = 255
NAME_MAX = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_MAX}}}")
_STAGE_KEYS = ("name", "model", "step", "inputs", "when", "for_each")


class PipelineError(ValueError):
    """Why a pipeline cannot be served, in one clear sentence."""


class Tensor:
    """An output of a stage, or an input of the call."""

    def __init__(self, pipeline, stage, name, is_element=False):
        self.pipeline = pipeline
        self.stage = stage  # None: the call's
        self.name = name
        self.is_element = is_element

    def __str__(self):
        return (self.name if self.stage is None else f"{self.stage.name}.{self.name}") + ("[]" if self.is_element else "")

    def each(self):
        """One element of its first dimension, as an input of a stage with for_each."""
        return Tensor(self.pipeline, self.stage, self.name, is_element=True)

    def at_most(self, most):
        """As many elements as it says, and at most so many: what a stage's for_each is."""
        return Elements(self, most)

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
        if tensor.is_element or tensor.stage.for_each is not None:
            raise PipelineError(f"'{tensor}' differs for each element; conditions compare outputs of stages that are visited once")
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


class Elements:
    """How many elements there are: as many as an output of a stage says, and at most so many."""

    def __init__(self, count, at_most):
        if count.stage is None or count.is_element:
            raise PipelineError(f"elements are counted by '{count}'; an output of a stage counts them")
        if count.stage.for_each is not None:
            raise PipelineError(f"elements are counted by '{count}', of a stage that is itself visited for each element")
        if not isinstance(at_most, int) or isinstance(at_most, bool) or not 0 < at_most < SLOTS_MAX:
            raise PipelineError(f"at_most of '{count}' is {at_most!r}; it must be a whole number from 1 to {SLOTS_MAX - 1}")
        self.count = count
        self.at_most = at_most

    @property
    def keys(self):
        return {"count": str(self.count), "at_most": self.at_most}


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

    def __init__(self, pipeline, name, keys, inputs, when, for_each):
        self.pipeline = pipeline
        self.name = name
        self.keys = keys
        self.inputs = inputs  # name -> list of Tensor
        self.when = when
        self.for_each = for_each  # Elements, or None

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
        counted = self.for_each is None or self.for_each.count.stage.always_visited
        return fed and counted and not self.when


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

    def model(self, name, model, when=(), for_each=None):
        """A stage with a model of the repository. Call the result with the model's inputs."""
        if not isinstance(model, str) or not model or model == self.name:
            raise PipelineError(f"stage {name!r} has the model {model!r}; name a model of the repository")
        return self._stage(name, {"model": model}, when, for_each)

    def step(self, name, kind, when=(), for_each=None, **options):
        """A stage with a built-in step (docs/STEPS.md). Call the result with the step's inputs."""
        wrong = [option for option in options if option in _STAGE_KEYS]
        if wrong:
            raise PipelineError(f"stage {name!r}: a step has no option '{wrong[0]}'")
        return self._stage(name, {"step": kind, **options}, when, for_each)

    def output(self, name, *sources, fill=None):
        """An output of the answer: the first of these that was visited, or `fill` if none was."""
        called = f"output '{_checked_name('an output', name)}'"
        if name in self._outputs:
            raise PipelineError(f"{called} is there twice")
        sources = self._checked_sources(called, list(sources))
        for source in sources:
            if source.stage is None or source.is_element:
                raise PipelineError(f"{called} has '{source}', which is no output of a stage as a whole")
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
            if stage.for_each is not None:
                lines.append(f"for_each = {_toml(stage.for_each.keys)}")
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

    def _stage(self, name, keys, when, for_each):
        called = f"stage '{_checked_name('a stage', name)}'"
        conditions = list(when) if isinstance(when, (list, tuple)) else [when]
        for condition in conditions:
            if not isinstance(condition, Condition):
                raise PipelineError(f"{called}: when is {condition!r}; it must be a comparison such as "
                                    "stage.output.maximum() < 0.8")
            self._check_own(called, condition.tensor)
        if for_each is not None:
            self._check_for_each(called, for_each)

        def add(**inputs):
            if name in self._stages:
                raise PipelineError(f"{called} is there twice")
            if len(self._stages) == STAGES_MAX:
                raise PipelineError(f"{called} is one more than the {STAGES_MAX} stages that are allowed")
            if not inputs:
                raise PipelineError(f"{called} has no inputs; call it with those of its model: (INPUT=TENSOR)")
            taken = {input_name: self._checked_sources(f"{called}: the input '{input_name}'", sources)
                     for input_name, sources in inputs.items()}
            self._check_elements(called, for_each, taken)
            stage = self._stages[name] = Stage(self, name, keys, taken, conditions, for_each)
            return stage

        return add

    def _check_own(self, called, tensor):
        if not isinstance(tensor, Tensor):
            raise PipelineError(f"{called} has {tensor!r}, which is no tensor; name an output of a stage, as in stage.scores, "
                                "or an input of the call")
        if tensor.pipeline is not self:
            raise PipelineError(f"{called} has '{tensor}' of another pipeline, '{tensor.pipeline.name}'")

    def _check_for_each(self, called, for_each):
        if not isinstance(for_each, Elements):
            raise PipelineError(f"{called}: for_each is {for_each!r}; it must be elements such as stage.count.at_most(16)")
        self._check_own(called, for_each.count)
        for other in self._stages.values():
            if other.for_each is None or other.for_each.count.stage is not for_each.count.stage:
                continue
            if other.for_each.keys != for_each.keys:
                raise PipelineError(f"{called}: for_each is of '{for_each.count}', at most {for_each.at_most}, and that of stage "
                                    f"'{other.name}' of '{other.for_each.count}', at most {other.for_each.at_most}; all that "
                                    "count in one stage must be equal")

    @staticmethod
    def _check_elements(called, for_each, inputs):
        elements = [source for sources in inputs.values() for source in sources if source.is_element]
        if for_each is None and elements:
            raise PipelineError(f"{called} takes '{elements[0]}', and has no for_each=")
        if for_each is not None and not elements:
            raise PipelineError(f"{called} has for_each, and no input that differs for each element, as stage.output.each() does")
        for element in elements:
            own = element.stage.for_each if element.stage is not None else None
            if own is not None and own.keys != for_each.keys:
                raise PipelineError(f"{called} takes '{element}' of a stage with as many elements as '{own.count}' says, and has "
                                    f"for_each of '{for_each.count}'")

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
        slots = sum(1 if stage.for_each is None else stage.for_each.at_most for stage in self._stages.values())
        if slots > SLOTS_MAX:
            raise PipelineError(f"a run may have {slots} visits of its stages; at most {SLOTS_MAX} are allowed: lower at_most")
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
            if stage.for_each is not None:
                reached.add(stage.for_each.count.stage.name)


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
