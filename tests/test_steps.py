"""The built-in steps of pipelines: models that Foliot makes, one for each stage with a step (docs/STEPS.md)."""

import io
import subprocess

import numpy as np
import pytest
import tritonclient.http as http_client
from PIL import Image
from tritonclient.utils import InferenceServerException

from foliot_tools.server import foliot_binary
from foliot_tools.waiting import eventually
from test_exec_heap import allocations

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
WIDTH, HEIGHT = 64, 48

PIPELINE = f"""
[[stage]]
name = "decode"
step = "decode"
width = {WIDTH}
height = {HEIGHT}
fit = "FIT"
pad_value = 9
pixels_max = 1000000
bytes = [16384, 131072]
inputs = {{ bytes = "photo" }}

[[stage]]
name = "normalise"
step = "normalise"
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
inputs = {{ image = "decode.image" }}

[[output]]
name = "tensor"
from = "normalise.tensor"
"""


def write_pipeline(folder, fit="crop", name="photos"):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "pipeline.toml").write_text(PIPELINE.replace("FIT", fit))


def photo(seed, width, height, **options):
    """A JPEG with about as much detail as a photo."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (max(height // 16, 2), max(width // 16, 2), 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    image = Image.fromarray((smooth + random.integers(-10, 10, smooth.shape)).clip(0, 255).astype(np.uint8))
    if options.pop("grey", False):
        image = image.convert("L")
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def expected_image(jpeg, fit):
    """By Pillow: the definition in src/engine/device/cpu/jpeg_decoder.h."""
    image = Image.open(io.BytesIO(jpeg))
    width, height = image.size
    left, top, of_width, of_height, to_width, to_height = 0.0, 0.0, width, height, WIDTH, HEIGHT
    wide = width * HEIGHT > height * WIDTH
    if fit == "crop" and wide:
        of_width = height * WIDTH / HEIGHT
        left = (width - of_width) / 2
    elif fit == "crop":
        of_height = width * HEIGHT / WIDTH
        top = (height - of_height) / 2
    elif fit == "pad" and wide:
        to_height = max(int(height * WIDTH / width + 0.5), 1)
    elif fit == "pad":
        to_width = max(int(width * HEIGHT / height + 0.5), 1)
    scale = next(s for s in (8, 4, 2, 1) if s == 1 or (of_width >= s * to_width and of_height >= s * to_height))
    if scale > 1:
        image.draft("RGB", (width // scale, height // scale))
    image = image.convert("RGB")
    x, y = image.size[0] / width, image.size[1] / height
    box = (left * x, top * y, min((left + of_width) * x, image.size[0]), min((top + of_height) * y, image.size[1]))
    result = np.full((HEIGHT, WIDTH, 3), 9, np.uint8)
    x, y = (WIDTH - to_width) // 2, (HEIGHT - to_height) // 2
    resized = image.resize((to_width, to_height), Image.Resampling.BILINEAR, box=box)
    result[y:y + to_height, x:x + to_width] = np.asarray(resized)
    return result


def start(serve, repository, **options):
    server = serve(repository, **OPTIONS, **options)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    return server


def call(server, model, name, rows, output):
    tensor = http_client.InferInput(name, list(rows.shape), "UINT8")
    tensor.set_data_from_numpy(rows)
    with http_client.InferenceServerClient(server.http) as client:
        return client.infer(model, [tensor]).as_numpy(output)


def row_of(jpeg):
    return np.frombuffer(jpeg, np.uint8)[None]


@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
def test_decoding_agrees_with_pillow(serve, tmp_path, fit):
    write_pipeline(tmp_path / "models", fit)
    server = start(serve, tmp_path / "models")
    photos = [photo(1, 333, 555), photo(2, 640, 200, progressive=True), photo(3, 40, 30, subsampling=0, quality=95),
              photo(4, 300, 300, grey=True), photo(5, 129, 97, restart_marker_blocks=3)]
    for jpeg in photos:
        image = call(server, "photos.decode", "bytes", row_of(jpeg), "image")
        assert image.shape == (1, HEIGHT, WIDTH, 3)
        # Another release of libjpeg-turbo may round otherwise, and so does the middle of a crop.
        assert np.abs(image[0].astype(int) - expected_image(jpeg, fit)).max() <= 2


def test_a_damaged_row_fails_alone(serve, tmp_path):
    write_pipeline(tmp_path / "models")
    server = start(serve, tmp_path / "models")
    good = photo(1, 200, 100)
    for bad in (good[: len(good) // 2], b"no JPEG at all", photo(2, 1200, 900)[:130000], photo(3, 1500, 800, quality=20)):
        rows = np.zeros((3, 131072), np.uint8)
        for row, jpeg in enumerate((good, bad, good)):
            rows[row, : len(jpeg)] = np.frombuffer(jpeg, np.uint8)[:131072]
        with pytest.raises(InferenceServerException) as failure:
            call(server, "photos.decode", "bytes", rows, "image")
        assert "model" in str(failure.value)
        assert call(server, "photos.decode", "bytes", rows[:1], "image").any()
    assert server.alive()


def test_decoding_allocates_nothing(serve, tmp_path):
    write_pipeline(tmp_path / "models")
    server = start(serve, tmp_path / "models")
    for jpeg in (photo(1, 300, 200), photo(2, 300, 200, progressive=True), b"no JPEG"):
        try:
            call(server, "photos.decode", "bytes", row_of(jpeg), "image")
        except InferenceServerException:
            assert jpeg == b"no JPEG"
    assert allocations(server) == 0


def test_normalising_is_arithmetic(serve, tmp_path):
    write_pipeline(tmp_path / "models")
    server = start(serve, tmp_path / "models")
    image = np.random.default_rng(0).integers(0, 256, (2, HEIGHT, WIDTH, 3), dtype=np.uint8)
    tensor = call(server, "photos.normalise", "image", image, "tensor")
    expected = (image / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(tensor, expected.transpose(0, 3, 1, 2), atol=1e-5)


def test_steps_change_with_their_file(serve, tmp_path):
    folder = tmp_path / "models"
    write_pipeline(folder)
    server = start(serve, folder, watch="200ms")
    jpeg = photo(1, 100, 40)
    assert call(server, "photos.decode", "bytes", row_of(jpeg), "image")[0, 0, 0].tolist() != [9, 9, 9]
    write_pipeline(folder, "pad")
    eventually(lambda: call(server, "photos.decode", "bytes", row_of(jpeg), "image")[0, 0, 0].tolist() == [9, 9, 9])


def test_steps_can_be_listed_and_compiled(tmp_path):
    folder = tmp_path / "models"
    write_pipeline(folder)
    run = lambda *words: subprocess.run([foliot_binary(), *map(str, words)], capture_output=True, text=True, check=False)
    listed = run("models", folder)
    assert listed.returncode == 0, listed.stderr
    assert "photos.decode" in listed.stdout and "photos.normalise" in listed.stdout
    model = next((folder / ".foliot" / "steps").glob("photos.decode.*")) / "model.onnx"
    compiled = run("compile", model, "--batch-sizes", "1", "--output", tmp_path / "decode.foliot")
    assert compiled.returncode == 0, compiled.stderr
    assert "bytes=131072" in compiled.stdout


def test_a_wrong_option_is_named(tmp_path):
    folder = tmp_path / "models"
    write_pipeline(folder)
    file = folder / "photos" / "pipeline.toml"
    file.write_text(file.read_text().replace(f"width = {WIDTH}", "width = 0"))
    listed = subprocess.run([foliot_binary(), "models", folder], capture_output=True, text=True, check=False)
    assert "stage 'decode': step 'decode': width 0: must be 1 to 4096" in listed.stdout
